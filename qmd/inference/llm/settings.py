"""Which server and model to ask, with which key, and how long to wait for it."""

from __future__ import annotations

import ipaddress
import math
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from qmd.errors import ConfigError

DEFAULT_URL = "https://api.deepseek.com"
DEFAULT_MODEL = "deepseek-chat"
DEFAULT_TIMEOUT_S = 120.0

#: The key of the server that `llm_url` names, whichever that is.
VARIABLE = "QMD_LLM_API_KEY"


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """
    How to ask one server.

    Args:
        key: None for a server that needs none; it is in no ``repr`` and in no error.
        timeout_s: The longest wait for the next piece of an answer.
        key_variable: The environment variable that messages name for the key.
        allow_insecure_key: Whether the key may leave this machine over plain http.

    Raises:
        ConfigError: ``url`` is no address, or holds a password; ``timeout_s`` is not above 0; or
            the key would leave this machine over plain http without ``allow_insecure_key``.
    """

    url: str = DEFAULT_URL
    model: str = DEFAULT_MODEL
    key: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S
    key_variable: str = VARIABLE
    allow_insecure_key: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "url", _checked(self.url))
        if not self.model.strip():
            raise ConfigError(
                "The name of the language model is empty.", hint=f"For example: {DEFAULT_MODEL}"
            )
        if not (math.isfinite(self.timeout_s) and self.timeout_s > 0):
            raise ConfigError(
                f"Not a time to wait for the language model: {self.timeout_s:g} s.",
                hint=f"Give seconds above 0, for example {DEFAULT_TIMEOUT_S:g}.",
            )
        is_readable = self.url.startswith("http:") and not self.is_loopback
        if self.key is not None and is_readable and not self.allow_insecure_key:
            raise ConfigError(
                f"A key is not sent to {self.url}: over plain http others can read it.",
                hint=f"Use https://, or unset {self.key_variable} if the server needs no key. "
                "--allow-insecure-key (QMD_ALLOW_INSECURE_KEY, allow_insecure_key) sends it.",
            )

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    def require_key(self) -> None:
        """Raises ConfigError where the server answers nobody without a key, and there is none."""
        if self.key is not None or self.host not in _ANSWER_WITH_KEY:
            return
        names = [self.key_variable]
        if self.key_variable == VARIABLE:
            names = [*(name for name, host in _BELONG_TO.items() if host == self.host), VARIABLE]
        hint = f"Set {' or '.join(names)}"
        if self.key_variable == VARIABLE:
            hint += (
                ", name a file of mode 600 that holds it by QMD_LLM_KEY_FILE, or ask a model of"
                " your own: --llm-url http://localhost:11434/v1 --llm-model NAME"
            )
        raise ConfigError(
            f"{_ANSWER_WITH_KEY[self.host]} ({self.url}) wants a key, and there is none.", hint=hint
        )

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, so that no proxy is used."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def _checked(url: str) -> str:
    """The address without a slash at the end. Raises ConfigError."""
    hint = f"For example: {DEFAULT_URL} or http://localhost:11434/v1 (Ollama)."
    try:
        parts = urlsplit(url.strip())
        port = parts.port  # raises ValueError when it is no number
        (parts.hostname or "").encode("idna")  # as the resolver will
    except ValueError:
        raise ConfigError("The address of the language model is not a URL.", hint=hint) from None
    if "@" in parts.netloc:
        raise ConfigError(
            "The address of the language model must hold no user name and no password.",
            hint=f"A key goes into {VARIABLE} or a file named by QMD_LLM_KEY_FILE.",
        )
    is_wrong = (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or not url.strip().isprintable()
        or " " in url.strip()
    )
    if is_wrong:
        raise ConfigError(f"Not the address of a language model: {url}", hint=hint)
    if parts.query or parts.fragment:
        raise ConfigError(
            "The address of the language model must have no query (?) and no fragment (#).",
            hint=hint,
        )
    # Manuals print the address of the call, which begins with the address of the server.
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{parts.netloc}{path}"


# --- the key, in the environment or in a file of the user ---------------------------------


#: Variables that other programs use, too, and the only host that gets their keys.
_BELONG_TO = {"DEEPSEEK_API_KEY": "api.deepseek.com"}
#: Servers that answer no request without a key, and their names.
_ANSWER_WITH_KEY = {"api.deepseek.com": "DeepSeek", "api.openai.com": "OpenAI"}
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
            return _checked_key(environ[name], name)
    if key_file is None:
        return None
    return _checked_key(_read_key_file(key_file), str(key_file))


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


def _read_key_file(path: Path) -> str:
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


def _checked_key(value: str, source: str) -> str:
    key = value.strip()
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ConfigError(
            f"There is no usable key in {source}.",
            hint="A key is one word of plain characters, for example sk-0123…",
        )
    return key
