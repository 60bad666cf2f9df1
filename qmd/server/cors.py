"""
Lets pages of named origins use the server: cross-origin resource sharing (the Fetch standard).

A browser shows a page of another origin no answer, and asks first (a preflight) before it sends
one's token or JSON, unless the server names the origin. Cookies are never shared: such a page sends
the token, if there is one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import urlsplit

from starlette.types import Message, Send

from qmd.errors import InputError

_MAX_AGE_S = 600  # how long a browser remembers the answer to a preflight
_METHODS = b"GET, HEAD, POST, PUT, DELETE"
#: The headers of answers that scripts may read, beside those that they always may.
_EXPOSED = b"Mcp-Session-Id, Mcp-Protocol-Version, Retry-After, WWW-Authenticate, Allow, Qmd-Error"
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^/?#@*\s,]+")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def allowed_origins(texts: Iterable[str]) -> frozenset[str]:
    """
    The origins as browsers send them: in lower case, without a default port.

    Raises:
        InputError: One is no origin, or stands for all.
    """
    return frozenset(map(_origin, texts))


def _origin(text: str) -> str:
    origin = text.strip().lower().rstrip("/")
    if not origin.isascii() or _ORIGIN.fullmatch(origin) is None:
        raise InputError(
            f"Not an origin: {text!r}",
            hint="Name each one as a browser shows it, such as https://chat.example.org or "
            "http://localhost:6274; there is none for all.",
        )
    return origin.removesuffix(_DEFAULT_PORTS.get(urlsplit(origin).scheme, "/"))


def is_preflight(method: str, headers: Mapping[bytes, bytes | None]) -> bool:
    """Whether a browser asks what a page may send."""
    return method == "OPTIONS" and b"access-control-request-method" in headers


async def answer_preflight(headers: Mapping[bytes, bytes | None], send: Send) -> None:
    """Allow what a page of an allowed origin asks for; its request is then checked like others."""
    answer = [
        (b"access-control-allow-methods", _METHODS),
        (b"access-control-max-age", str(_MAX_AGE_S).encode()),
    ]
    names = headers.get(b"access-control-request-headers")
    if names:
        answer.append((b"access-control-allow-headers", names))
    if headers.get(b"access-control-request-private-network") == b"true":
        answer.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": answer})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def readable_by(origin: bytes, send: Send) -> Send:
    """A `Send` whose answers a page of this origin may read."""

    async def wrapped(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [
                *message.get("headers", ()),
                (b"access-control-allow-origin", origin),
                (b"access-control-expose-headers", _EXPOSED),
                (b"vary", b"Origin"),
            ]
            message = {**message, "headers": headers}
        await send(message)

    return wrapped
