"""
What went wrong, as HTTP says it: one shape for all errors, JSON for programs, a page for browsers.

`failure_of` says what an exception is to a client; what refuses a request before any route has its
failures below. A browser gets the bare page of `Failure` only where the page itself cannot answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from html import escape

from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmd.errors import QmdError, VectorIndexMissingError
from qmd.operations import texts
from qmd.operations.error_meanings import MEANINGS
from qmd.server.endpoints.definition import RestError
from qmd.server.workers import TooBusyError

_log = logging.getLogger(__name__)

#: The code of an error. Not in the body, which has two fields and no other by its specification.
CODE_HEADER = "Qmd-Error"

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
class Failure:
    """
    What a request is answered that was refused, or that failed.

    Attributes:
        detail: What is wrong and, after an empty line, what to do next.
        error: What the engine said, whose message and hint the page translates.
        is_of_http: The page has a text of its own for the status.
    """

    status: int
    detail: str
    headers: Mapping[str, str] = field(default_factory=dict)
    error: QmdError | None = None
    is_of_http: bool = False

    @property
    def parts(self) -> tuple[str, str | None]:
        """The message and the hint."""
        if self.error is not None:
            return self.error.message, self.error.hint
        message, _, hint = self.detail.partition("\n\n")
        return message, hint or None

    def body(self, *, as_page: bool = False) -> bytes:
        if as_page:
            text = "".join(f"<p>{escape(part)}</p>" for part in self.detail.split("\n\n"))
            return (
                '<!doctype html><html lang="en"><meta charset="utf-8">'
                f"<title>qmd: {self.status}</title>{text}</html>\n"
            ).encode()
        value = {"detail": self.detail, "status_code": self.status}
        try:
            return json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # the client sent half of a surrogate pair
            return json.dumps(value).encode()

    def response(self, *, as_page: bool = False) -> Response:
        """For where a route has been reached. The code of the error is in a header."""
        headers = dict(self.headers)
        if self.error is not None:
            headers[CODE_HEADER] = self.error.code
        kind = "text/html" if as_page else "application/json"
        return Response(self.body(as_page=as_page), self.status, headers, kind)

    async def refuse(
        self,
        send: Send,
        before_close: Callable[[], Awaitable[None]] | None = None,
        *,
        as_page: bool = False,
    ) -> None:
        """For where the body was not read; ``before_close`` runs before the connection closes."""
        response = self.response(as_page=as_page)
        # On an open connection the unread rest of the body would count as the next request.
        response.headers["connection"] = "close"
        headers = response.raw_headers
        await send({"type": "http.response.start", "status": self.status, "headers": headers})
        await send({"type": "http.response.body", "body": response.body, "more_body": True})
        if before_close is not None:
            await before_close()
        await send({"type": "http.response.body", "body": b"", "more_body": False})


def wants_page(scope: Scope) -> bool:
    """Whether a browser requests a page."""
    return scope["method"] == "GET" and any(
        name == b"accept" and b"text/html" in value for name, value in scope["headers"]
    )


def failure_of(error: Exception) -> Failure:
    """What a client is told of an exception. What it is not told goes to the log."""
    match error:
        case RestError():
            return Failure(error.status, str(error))
        case HTTPException():
            headers = error.headers or {}
            is_of_http = error.status_code in (404, 405)
            return Failure(error.status_code, error.detail, headers, is_of_http=is_of_http)
        case TooBusyError():
            detail = "Too many requests are waiting. Try again in a moment."
            return Failure(503, detail, {"retry-after": "1"}, is_of_http=True)
        case TimeoutError():
            detail = "The request took too long."
            return Failure(503, detail, {"retry-after": "5"}, is_of_http=True)
        case QmdError() if error.http_status != 500 or type(error) in MEANINGS:
            is_missing = isinstance(error, VectorIndexMissingError)
            detail = VectorIndexMissingError.prescribed if is_missing else texts.error_text(error)
            return Failure(error.http_status, detail, error=error)
        case QmdError():
            _log.error("a request failed", exc_info=error)
            return Failure(error.http_status, texts.INTERNAL)
        case _:
            _log.error("a request failed", exc_info=error)
            return Failure(500, texts.INTERNAL)


WRONG_HOST = Failure(
    403,
    "Host not allowed: this server answers to its own names only (localhost).\n\n"
    "If this is the name of a proxy, start the server with --allow-host NAME.",
)
WRONG_ORIGIN = Failure(403, "Origin not allowed: pages of other sites may not use qmd.")
WRONG_PAGE = Failure(403, "Origin not allowed: this is no page of this server.")
OTHER_USERS_SESSION = Failure(
    403,
    "Links of 'qmd open' and sessions of the administrator are valid for programs of the user who "
    "started this server only.\n\n"
    "Behind a proxy that another user runs, start the server with --allow-other-users.",
)
MISSING_TOKEN = Failure(401, UNAUTHORIZED, {"www-authenticate": 'Bearer realm="qmd"'})
UNKNOWN_TOKEN = Failure(
    401,
    "This token is not valid: it has expired, was revoked, or is none of this server.\n\n"
    "Ask the administrator of the server for another: qmd server token create",
    {"www-authenticate": 'Bearer realm="qmd", error="invalid_token"'},
)
OPENS_NOTHING = Failure(
    403,
    "This token opens no collection.",
    {"www-authenticate": 'Bearer realm="qmd", error="insufficient_scope"'},
)
NO_LOOKUP = Failure(503, "The token cannot be checked now. Try again in a moment.")
OLD_LINK = Failure(
    403, "This link was opened before, or is older than a minute.\n\nRun 'qmd open' again."
)
STOPPING = Failure(
    503,
    "The server stops, and has ended this request; what was finished stays.\n\n"
    "Ask again in a moment.",
    {"retry-after": "5"},
)


class AnswerEnded:
    """
    ASGI middleware that answers a request which the stopping server ends.

    uvicorn cancels what is not done in time. It would answer with a bare 500, and log the trace of
    each.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_begun = False

        async def send_and_note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._app(scope, receive, send_and_note)
        except asyncio.CancelledError:
            if not has_begun:
                await STOPPING.refuse(send, as_page=wants_page(scope))
