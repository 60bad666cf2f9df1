"""Reads ``config.toml``, and checks the names and the types of the values."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from qmd.config.table import SETTINGS, Setting
from qmd.errors import ConfigError
from qmd.system.settings_file import read_settings, toml_values
from qmd.values.location import is_url

MAX_CONFIG_BYTES = 1024 * 1024

_ARRAY = ("an array of strings", '["…", "…"]')
_STRING = ("a string", '"…"')


def read_config_file(file: Path) -> dict[str, list[str]]:
    """
    Setting → its value as one or more texts; empty if there is no file.

    A path relative to the file's directory is joined to it, and ``~`` is the home directory.

    Raises:
        ConfigError: The file is unreadable, is no TOML, or holds an unknown or ill-typed key.
    """
    if os.path.realpath(file) == os.devnull:
        return {}
    data = read_settings(file, MAX_CONFIG_BYTES, ConfigError)
    try:
        table = toml_values((data or b"").decode())
    except ValueError as error:
        raise ConfigError(
            f"{file} is not TOML: {error}",
            hint="Mend the file, for example: db = '~/qmd.sqlite'",
        ) from error
    values: dict[str, list[str]] = {}
    for key, value in table.items():
        if key not in SETTINGS:
            raise ConfigError(f"Unknown setting in {file}: {key}", hint=_suggestion(key))
        values[key] = _texts(SETTINGS[key], value, file)
    return values


def _texts(setting: Setting, value: object, file: Path) -> list[str]:
    """
    The texts of a setting's value.

    Raises:
        ConfigError: The value has another type than the setting.
    """
    if setting.kind == "seconds" and type(value) in (int, float):
        return [str(value)]
    if setting.kind == "switch" and type(value) in (bool, int):
        return [str(value).lower()]
    items = value if setting.is_list and isinstance(value, list) else [value]
    texts = [item for item in items if isinstance(item, str) and item]
    if not texts or len(texts) < len(items):
        kind, example = _ARRAY if setting.is_list else _STRING
        raise ConfigError(
            f"Setting {setting.name} in {file} must be {kind} that is not empty.",
            hint=f"For example: {setting.name} = {example}; "
            "a line that is not there means the default.",
        )
    return [_beside(file, setting, text) for text in texts]


def _beside(file: Path, setting: Setting, text: str) -> str:
    """A path relative to the folder of the file; any other text as it is."""
    if not setting.is_path or (setting.kind == "database" and is_url(text)):
        return text
    return str(file.parent / os.path.expanduser(text))  # noqa: PTH111


def _suggestion(key: str) -> str:
    similar_names = difflib.get_close_matches(key, SETTINGS, n=1)
    if similar_names:
        return f"Did you mean: {similar_names[0]}"
    return "Known settings: " + ", ".join(SETTINGS)
