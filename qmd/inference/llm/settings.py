"""Which server and model to ask, with which key, and how long to wait for it."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from qmd.errors import ConfigError
from qmd.inference.llm.key import VARIABLE

DEFAULT_URL = "https://api.deepseek.com"
DEFAULT_MODEL = "deepseek-chat"
DEFAULT_TIMEOUT_S = 120.0


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
