"""
Reads the settings: from a command-line option, else the environment, ``config.toml``, the default.

Only the command line uses this package; the layers below get plain values. `table` lists the
settings. The file is in the user's config directory (``~/.config/qmd/config.toml`` on Linux); a
relative path in it is relative to that directory, elsewhere to the working directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from qmd.config.table import SETTINGS, Configuration, Setting
from qmd.errors import ConfigError
from qmd.system.user_dirs import named_database, user_dir
from qmd.values.location import DatabaseLocation, database_location, is_url

__all__ = ["SETTINGS", "Configuration", "Setting", "load_settings"]


def load_settings(
    *,
    db: str | None = None,
    index: str | None = None,
    flags: Mapping[str, str | Sequence[str] | None] | None = None,
    environ: Mapping[str, str] | None = None,
) -> Configuration:
    """
    The value of every setting.

    Args:
        db: The option ``--db``.
        index: The option ``--index``: the database of this name beside the default one.
        flags: Setting → value of its option. None and empty values count as absent.
        environ: The environment; None for that of the process.

    Raises:
        ConfigError: The file is unreadable, is no TOML, or holds an unknown or ill-typed key; or
            the text of a number or a switch is invalid.
        InputError: ``index`` is not a valid file name.
    """
    environ = os.environ if environ is None else environ
    config_file = user_dir("config", environ) / "config.toml"
    file_values = _file_values(config_file)
    values: dict[str, Any] = {}
    sources: dict[str, str] = {}
    for name, setting in SETTINGS.items():
        texts, source = _option_or_variable(setting, (flags or {}).get(name), environ)
        if not texts and name in file_values:
            texts, source = file_values[name], str(config_file)
        values[name], sources[name] = _value(setting, texts, source), source
    if db is not None:
        values["db"], sources["db"] = _database(db), "--db"
    elif index is not None:
        values["db"], sources["db"] = named_database(index, environ), "--index"
    values["db"] = values["db"] or user_dir("data", environ) / "index.sqlite"
    values["cache_dir"] = values["cache_dir"] or user_dir("cache", environ)
    return Configuration(values, sources, config_file)


def _file_values(config_file: Path) -> dict[str, list[str]]:
    """
    Setting → texts in the file; empty if there is no file.

    Raises:
        ConfigError: As `read_config_file`.
    """
    try:
        os.stat(config_file)  # noqa: PTH116 - cheaper than importing the reader
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError:
        pass  # the reader raises an error with a message
    from qmd.config.file import read_config_file  # imported late: most commands need no TOML

    return read_config_file(config_file)


def _option_or_variable(
    setting: Setting, flag: str | Sequence[str] | None, environ: Mapping[str, str]
) -> tuple[list[str], str]:
    """The texts of a setting's option, else of its variable, and the source; [] without either."""
    if flag:
        return [flag] if isinstance(flag, str) else list(flag), setting.option
    variable = environ.get(setting.variable)
    if variable:
        texts = [variable]
        if setting.is_list:
            separator = os.pathsep if setting.is_path else None
            texts = [text for text in variable.split(separator) if text]
        return texts, setting.variable
    return [], "default"


def _value(setting: Setting, texts: Sequence[str], source: str) -> object:
    """
    A setting's value from its texts; no texts mean unset.

    Raises:
        ConfigError: The text of a number, a switch or a choice is invalid.
    """
    if setting.is_list:
        return tuple(map(_absolute, texts) if setting.is_path else texts)
    text = texts[0] if texts else ""
    if setting.choices:
        return _choice(text or setting.default, setting.choices, source)
    if setting.kind == "path_as_written":
        return Path(text or "data")
    if setting.kind == "switch":
        return _switch(text or "false", source)
    if setting.kind in _NUMBERS:
        return _NUMBERS[setting.kind](text, source) if texts else None
    if setting.kind == "database":
        return _database(text)
    return _absolute(text) if setting.kind == "path" else text or None


def _database(text: str) -> DatabaseLocation | None:
    """Raises ConfigError: The URL of a server is malformed."""
    return database_location(text) if is_url(text) else _absolute(text)


def _absolute(text: str) -> Path | None:
    """The absolute path; None for an empty text."""
    return Path(os.path.abspath(os.path.expanduser(text))) if text else None  # noqa: PTH100, PTH111


def _seconds(text: str, source: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 < seconds < float("inf"):
        raise ConfigError(f"Not a number of seconds in {source}: {text}", hint="For example: 120")
    return seconds


def _count(text: str, source: str) -> int:
    if not (text.strip().isdecimal() and 0 < len(text.strip()) < 12 and int(text)):
        raise ConfigError(f"Not a whole number in {source}: {text}", hint="For example: 32768")
    return int(text)


#: How the text of a number is read, by the kind of its setting.
_NUMBERS: dict[str, Callable[[str, str], float]] = {"seconds": _seconds, "count": _count}


def _choice(text: str, choices: Sequence[str], source: str) -> str:
    word = text.strip().lower()
    if word not in choices:
        raise ConfigError(
            f"Not one of {', '.join(choices)} in {source}: {text}",
            hint=f"For example: {choices[0]}",
        )
    return word


def _switch(text: str, source: str) -> bool:
    word = text.strip().lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ConfigError(f"Neither true nor false in {source}: {text}", hint="Give true or false.")
