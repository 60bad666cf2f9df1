"""Finds the key of a model server in the environment, or in a file of the user."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from qmd.errors import ConfigError

VARIABLE = "QMD_LLM_API_KEY"
"""The key of the server that `llm_url` names, whichever that is."""

#: Variables that other programs use, too, and the only host that gets their keys.
_BELONG_TO = {"DEEPSEEK_API_KEY": "api.deepseek.com"}
_MAX_BYTES = 4096


def read_key(
    environ: Mapping[str, str],
    key_file: Path | None = None,
    *,
    url: str,
    variable: str = VARIABLE,
) -> str | None:
    """
    The key for the server at ``url``; None if there is none, as for servers that need none.

    ``variable`` is read first, then ``DEEPSEEK_API_KEY`` if the server is DeepSeek's, then the
    file. No message ever holds the key.

    Raises:
        ConfigError: The file does not exist, cannot be read, is open to others, or holds no key;
            or the text in the variable or the file cannot be a key.
    """
    names = [name for name, host in _BELONG_TO.items() if _is_host(url, host)]
    for name in (variable, *names):
        if environ.get(name, "").strip():
            return _checked(environ[name], name)
    if key_file is None:
        return None
    return _checked(_read(key_file), str(key_file))


def variables_with_keys(environ: Mapping[str, str]) -> list[str]:
    """The variables that hold the key of a model server."""
    return sorted(
        name
        for name, value in environ.items()
        if value.strip() and (name in _BELONG_TO or re.fullmatch(r"QMD_[A-Z]+_API_KEY", name))
    )


def _is_host(url: str, host: str) -> bool:
    """Whether ``url`` names this host, and TLS will prove it."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme == "https" and parts.hostname == host and "@" not in parts.netloc
    except ValueError:
        return False


def _read(path: Path) -> str:
    try:
        # Not blocking: a pipe in the place of the file would otherwise hang the process.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ConfigError(
            f"Cannot read the key file {path}: {error.strerror}",
            hint="Put the key into that file, or name another one: llm_key_file, QMD_LLM_KEY_FILE.",
        ) from None
    try:
        # The opened file is judged, since the name may lead to another one a moment later.
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"The key file {path} is not a file.", hint="Name a plain file.")
        if os.name == "posix" and status.st_mode & 0o077:
            raise ConfigError(
                f"Others may read the key file {path} (mode {stat.S_IMODE(status.st_mode):04o}).",
                hint=f"Keep it to yourself: chmod 600 {path}",
            )
        if os.name == "posix" and status.st_uid not in (os.geteuid(), 0):
            raise ConfigError(
                f"The key file {path} belongs to somebody else.",
                hint="Copy the key into a file of your own with mode 600.",
            )
        data = os.read(descriptor, _MAX_BYTES + 1)
    finally:
        os.close(descriptor)
    return data.decode("utf-8-sig", "replace") if len(data) <= _MAX_BYTES else ""


def _checked(value: str, source: str) -> str:
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"There is no usable key in {source}.",
            hint="A key is one word of plain characters, for example sk-0123…",
        )
    return key
