"""
Settings: command-line flag, then environment, then ``config.toml``, then default.

Only the faces read this module; everything below is handed plain values. The file lies in
the user's config directory (``~/.config/qmd/config.toml`` on Linux), and the values are::

    db = "~/notes/index.sqlite"      # QMD_DB
    model = "multilingual-e5-small"  # QMD_MODEL
    cache_dir = "~/.cache/qmd"       # QMD_CACHE_DIR

A relative path in the file is relative to the file's directory, elsewhere to the working
directory.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from qmd.errors import ConfigError

# name: (what it is, whether it is a path)
SETTINGS: dict[str, tuple[str, bool]] = {
    "db": ("the database file", True),
    "model": ("the embedding model; unset means the embedded one", False),
    "cache_dir": ("where models are kept", True),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """The values in force; ``sources`` says of each where it came from."""

    db: Path
    model: str | None
    cache_dir: Path
    config_file: Path
    sources: Mapping[str, str]


def env_name(setting: str) -> str:
    return f"QMD_{setting.upper()}"


def load_settings(
    *,
    db: str | None = None,
    index: str | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """
    Find every setting.

    Args:
        db: The flag ``--db``.
        index: The flag ``--index``: the database of this name beside the default one.
        environ: Instead of the process's environment.

    Raises:
        ConfigError: The file is unreadable, is no TOML, or holds an unknown or ill-typed key.
        InputError: ``index`` is no file name.
    """
    environ = os.environ if environ is None else environ
    config_file = user_dir("config", environ) / "config.toml"
    in_file = _read(config_file)
    values: dict[str, str] = {}
    sources: dict[str, str] = {}
    for name, (_, is_path) in SETTINGS.items():
        if environ.get(env_name(name)):
            values[name], sources[name] = environ[env_name(name)], env_name(name)
        elif name in in_file:
            value = in_file[name]
            if is_path:
                value = str(config_file.parent / os.path.expanduser(value))  # noqa: PTH111
            values[name], sources[name] = value, str(config_file)
        else:
            sources[name] = "default"
    if db is not None:
        values["db"], sources["db"] = db, "--db"
    elif index is not None:
        values["db"], sources["db"] = str(_named_index(index, environ)), "--index"
    return Settings(
        db=_path(values.get("db")) or user_dir("data", environ) / "index.sqlite",
        model=values.get("model"),
        cache_dir=_path(values.get("cache_dir")) or user_dir("cache", environ),
        config_file=config_file,
        sources=sources,
    )


def user_dir(kind: str, environ: Mapping[str, str] | None = None) -> Path:
    """
    The user's ``config``, ``data`` or ``cache`` directory for qmd, as platformdirs has it.

    On Linux it is worked out here: importing platformdirs takes as long as a whole search.
    """
    environ = os.environ if environ is None else environ
    if sys.platform == "linux" and "ANDROID_DATA" not in environ:
        base = environ.get(f"XDG_{kind.upper()}_HOME", "").strip()
        if not os.path.isabs(base):  # noqa: PTH117 - the XDG rule: a relative path is ignored
            default = {"config": ".config", "data": ".local/share", "cache": ".cache"}[kind]
            base = os.path.join(os.path.expanduser("~"), default)  # noqa: PTH111, PTH118
        return Path(base) / "qmd"
    import platformdirs

    directory: Path = getattr(platformdirs, f"user_{kind}_path")("qmd", appauthor=False)
    return directory


def _path(value: str | None) -> Path | None:
    if not value:
        return None
    return Path(os.path.abspath(os.path.expanduser(value)))  # noqa: PTH100, PTH111


def _named_index(name: str, environ: Mapping[str, str]) -> Path:
    if not name or name.startswith(".") or any(c in name for c in "/\\\0"):
        from qmd.errors import InputError

        raise InputError(
            f"Not a name for an index: {name!r}",
            hint="--index takes a plain name such as 'work'; a path goes to --db.",
        )
    return user_dir("data", environ) / f"{name}.sqlite"


def _read(file: Path) -> dict[str, str]:
    try:
        data = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(
            f"Cannot read {file}: {error.strerror}", hint="Make the file readable or move it away."
        ) from error
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    try:
        found = tomllib.loads(data.decode("utf-8-sig"))
    except (UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(
            f"{file} is not TOML: {error}", hint="Mend the file, for example: db = '~/qmd.sqlite'"
        ) from error
    for key, value in found.items():
        if key not in SETTINGS:
            raise ConfigError(f"Unknown setting in {file}: {key}", hint=_known(key))
        if not isinstance(value, str) or not value:
            raise ConfigError(
                f"Setting {key} in {file} must be a string that is not empty.",
                hint=f'For example: {key} = "…"; a line that is not there means the default.',
            )
    return found


def _known(key: str) -> str:
    import difflib

    near = difflib.get_close_matches(key, SETTINGS, n=1)
    if near:
        return f"Did you mean: {near[0]}"
    return "Known settings: " + ", ".join(SETTINGS)
