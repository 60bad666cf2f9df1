"""Which server, which model, how long to wait."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from qmd.errors import ConfigError

DEFAULT_URL = "https://api.deepseek.com"
DEFAULT_MODEL = "deepseek-chat"
DEFAULT_TIMEOUT_S = 120.0

_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True, slots=True)
class LlmSettings:
    """
    ``key`` is None for a server that asks for none; it is in no ``repr`` and no error.

    ``timeout_s`` is the longest wait for the next piece of an answer.

    Raises:
        ConfigError: The address is none, or holds a password; the time is no time.
    """

    url: str = DEFAULT_URL
    model: str = DEFAULT_MODEL
    key: str | None = field(default=None, repr=False)
    timeout_s: float = DEFAULT_TIMEOUT_S

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

    @property
    def host(self) -> str:
        return urlsplit(self.url).hostname or ""

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, where no proxy is asked."""
        return self.host in _LOOPBACK


def _checked(url: str) -> str:
    hint = f"For example: {DEFAULT_URL} or http://localhost:11434/v1 (Ollama)."
    try:
        parts = urlsplit(url.strip())
        port = parts.port  # which raises when it is none
        (parts.hostname or "").encode("idna")  # as the resolver will
    except ValueError:
        raise ConfigError("The address of the language model is not a URL.", hint=hint) from None
    if "@" in parts.netloc:
        raise ConfigError(
            "The address of the language model must hold no user name and no password.",
            hint="A key goes into QMD_LLM_API_KEY or a file named by QMD_LLM_KEY_FILE.",
        )
    wrong = (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or not url.strip().isprintable()
        or " " in url.strip()
    )
    if wrong:
        raise ConfigError(f"Not the address of a language model: {url}", hint=hint)
    if parts.query or parts.fragment:
        raise ConfigError(
            "The address of the language model must have no query (?) and no fragment (#).",
            hint=hint,
        )
    # Manuals print the address of the call; the base is what stands in front of it.
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return f"{parts.scheme}://{parts.netloc}{path}"
