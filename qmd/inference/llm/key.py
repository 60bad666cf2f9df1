"""Where the key of a language model comes from: the environment, or a file of one's own."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path

from qmd.errors import ConfigError

VARIABLES = ("QMD_LLM_API_KEY", "DEEPSEEK_API_KEY")
_MAX_BYTES = 4096


def read_key(
    environ: Mapping[str, str],
    key_file: Path | None = None,
    *,
    variables: Sequence[str] = VARIABLES,
) -> str | None:
    """
    The key, or None if there is none: a server of one's own needs none.

    An environment variable beats the file. No message ever holds the key.

    Raises:
        ConfigError: The file is not there, not readable, open to others, or holds no key; or
            what stands there cannot be a key.
    """
    for name in variables:
        if environ.get(name, "").strip():
            return _checked(environ[name], name)
    if key_file is None:
        return None
    return _checked(_read(key_file), str(key_file))


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
