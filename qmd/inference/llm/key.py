"""Where the key of a language model comes from: the environment, or a file of one's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

from qmd.errors import ConfigError

VARIABLE = "QMD_LLM_API_KEY"
"""The key of the server that `llm_url` names, whichever that is."""

#: Variables of other programs, too: their keys go to the host they belong to, and to no other.
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
    The key for the server at ``url``, or None if there is none: one of one's own needs none.

    ``variable`` comes first, then ``DEEPSEEK_API_KEY`` if the server is DeepSeek's, then the
    file. No message ever holds the key.

    Raises:
        ConfigError: The file is not there, not readable, open to others, or holds no key; or
            what stands there cannot be a key.
    """
    names = [name for name, host in _BELONG_TO.items() if _is_host(url, host)]
    for name in (variable, *names):
        if environ.get(name, "").strip():
            return _checked(environ[name], name)
    if key_file is None:
        return None
    return _checked(_read(key_file), str(key_file))


def _is_host(url: str, host: str) -> bool:
    """Whether the server is this host, and proves it by TLS."""
    try:
        parts = urlsplit(url.strip())
        return parts.scheme == "https" and parts.hostname == host and "@" not in parts.netloc
    except ValueError:
        return False


def _read(path: Path) -> str:
    try:
        # Not blocking: a pipe in the place of the file must not hang us.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise ConfigError(
            f"Cannot read the key file {path}: {error.strerror}",
            hint="Put the key into that file, or name another one: llm_key_file, QMD_LLM_KEY_FILE.",
        ) from None
    try:
        # What was opened is what is judged: the name may mean another file a moment later.
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise ConfigError(f"The key file {path} is not a file.", hint="Name a plain file.")
        if os.name == "posix" and found.st_mode & 0o077:
            raise ConfigError(
                f"Others may read the key file {path} (mode {stat.S_IMODE(found.st_mode):04o}).",
                hint=f"Keep it to yourself: chmod 600 {path}",
            )
        if os.name == "posix" and found.st_uid not in (os.geteuid(), 0):
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
