"""Reads the configuration files of other programs, within limits of size and depth."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

from qmd import parse
from qmd.errors import InputError, NotFoundError
from qmd.system.settings_file import read_settings
from qmd.values.imports import NotTaken

#: Bytes of a configuration file; real ones have a few thousand.
MAX_BYTES = 1024 * 1024
#: Collections, projects or vaults in one file.
MAX_FOLDERS = 1_000
_MAX_SHOWN = 80  # characters of a value in a message


def read_bytes(path: Path) -> bytes:
    """
    The content of a configuration file.

    Raises:
        NotFoundError: There is no such file.
        InputError: It cannot be read, or is too long.
    """
    data = read_settings(path, MAX_BYTES)
    if data is None:
        raise NotFoundError(f"There is no file {path}.", hint="Give the file's path.")
    return data


def read_json(path: Path) -> Mapping[str, object]:
    """The object in a JSON file. Raises NotFoundError, or InputError as `read_bytes` does."""
    try:
        value = json.loads(read_bytes(path).decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is no JSON: {error}", hint="Mend it, then try again.") from error
    return mapping(value, path)


def read_yaml(path: Path) -> Mapping[str, object]:
    """The mapping in a YAML file. Raises NotFoundError, or InputError as `read_bytes` does."""
    yaml = parse.yaml_values
    try:
        value, _ = yaml.YamlReader().read(read_bytes(path).decode("utf-8-sig"))
    except (yaml.YAMLError, yaml.YamlRefused, UnicodeDecodeError) as error:
        text = " ".join(str(error).split())
        raise InputError(f"{path} is no YAML: {text}", hint="Mend it, then try again.") from error
    return mapping({} if value is None else value, path)


def mapping(value: object, path: Path) -> Mapping[str, object]:
    """A value that must be a mapping. Raises InputError."""
    if not isinstance(value, dict):
        raise InputError(f"{path} holds no settings: it is no mapping of names to values.")
    return {str(key): each for key, each in value.items()}


def entries(value: object, path: Path) -> dict[str, object]:
    """
    The named folders of a file. Raises InputError for too many, or if it is no mapping.

    None stands for no folders.
    """
    folders = dict(mapping({} if value is None else value, path))
    if len(folders) > MAX_FOLDERS:
        raise InputError(f"{path} names {len(folders):,} folders, more than {MAX_FOLDERS:,}.")
    return folders


def absolute(text: str, base: Path | None = None) -> str | None:
    """The path in a setting, ``~`` being the home; None for one that is relative to nothing."""
    expanded = os.path.expanduser(text)  # noqa: PTH111 - Path.expanduser raises an error
    if base is not None:
        return str(base / expanded)
    return expanded if os.path.isabs(expanded) else None  # noqa: PTH117


def unknown_keys(values: Mapping[str, object], keys: frozenset[str], owner: str) -> list[NotTaken]:
    """
    What a newer version of the program, or a person, wrote beside the keys that are read.

    Args:
        owner: What the settings are of, in front of each key: "notes: ", or "".
    """
    return [
        NotTaken(f"{owner}{key}", "qmd does not know this setting.")
        for key in values
        if key not in keys
    ]


def shown(value: object) -> str:
    """A value in a message: one line, cut."""
    text = " ".join(str(value).split())
    return text if len(text) <= _MAX_SHOWN else text[:_MAX_SHOWN] + "…"
