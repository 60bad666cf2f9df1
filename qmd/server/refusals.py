"""Responses to requests that are not answered, and the texts that say what to do next."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from html import escape

from starlette.types import Send

UNAUTHORIZED = (
    "A token is required: send 'Authorization: Bearer TOKEN'.\n\nIn a browser: run 'qmd open' in "
    "a terminal, which opens this page. If you have just come by its link, reload the page."
)
OTHER_USER = (
    "Another user's server: without a token it answers programs of the user who started it "
    "(and of root) only.\n\nStart it with --token auto or --token TOKEN and send that token, or "
    "let all users of this machine in with --allow-other-users."
)
UNKNOWN_USER = (
    "It cannot be told which user's program asks: it had closed its connection, or its user is "
    "not of this container. Without a token this server answers programs of the user who "
    "started it only.\n\nKeep the connection open until the answer has come, or start the "
    "server with --token TOKEN or --allow-other-users."
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error response to a request that is not answered."""

    status: int
    detail: str
    headers: tuple[tuple[bytes, bytes], ...] = ()

    async def __call__(
        self,
        send: Send,
        before_close: Callable[[], Awaitable[None]] | None = None,
        *,
        as_page: bool = False,
    ) -> None:
        """Send the refusal; ``before_close`` runs before the connection is closed."""
        body = (error_page if as_page else error_body)(self.status, self.detail)
        kind = b"text/html; charset=utf-8" if as_page else b"application/json"
        headers = [
            (b"content-type", kind),
            (b"content-length", str(len(body)).encode()),
            # On an open connection the unread rest of the body would count as the next request.
            (b"connection", b"close"),
            *self.headers,
        ]
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": body, "more_body": True})
        if before_close is not None:
            await before_close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


WRONG_HOST = Refusal(
    403,
    "Host not allowed: this server answers to its own names only (localhost).\n\n"
    "If this is the name of a proxy, start the server with --allow-host NAME.",
)
WRONG_ORIGIN = Refusal(403, "Origin not allowed: pages of other sites may not use qmd.")
WRONG_PAGE = Refusal(403, "Origin not allowed: this is no page of this server.")
CHALLENGE = ((b"www-authenticate", b'Bearer realm="qmd"'),)
MISSING_TOKEN = Refusal(401, UNAUTHORIZED, CHALLENGE)
UNKNOWN_TOKEN = Refusal(
    401,
    "This token is not valid: it has expired, was revoked, or is none of this server.\n\n"
    "Ask the administrator of the server for another: qmd server token create",
    ((b"www-authenticate", b'Bearer realm="qmd", error="invalid_token"'),),
)
OPENS_NOTHING = Refusal(
    403,
    "This token opens no collection.",
    ((b"www-authenticate", b'Bearer realm="qmd", error="insufficient_scope"'),),
)
NO_LOOKUP = Refusal(503, "The token cannot be checked now. Try again in a moment.")


def error_body(status: int, detail: str) -> bytes:
    """The body of an error response: JSON of the same shape for all errors over HTTP."""
    return json.dumps({"detail": detail, "status_code": status}, ensure_ascii=False).encode()


def error_page(status: int, detail: str) -> bytes:
    """The body of an error response for a browser: a page."""
    text = "".join(f"<p>{escape(part)}</p>" for part in detail.split("\n\n"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8">'
        f"<title>qmd: {status}</title>{text}</html>\n"
    ).encode()
