"""
Tells browsers apart, and makes the tokens without which no form is taken.

Each browser gets a cookie, a random value that this process has signed. The token of its forms is
an HMAC of that value, with a salt that is new in each page: a compressed page whose length somebody
measures reveals nothing of the next one. Another site can neither read the token nor let the
browser send the cookie with a form (``SameSite=Lax``). A program on another port of this machine
is of the same site, and can set a cookie of this name; it cannot sign one, and its pages are told
by the headers that browsers add to each request.

The cookie is not ``Strict``: else a link from another site would load a page without it, a new
cookie would take its place, and the forms in all other tabs would be refused.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal
from urllib.parse import parse_qsl

import anyio.to_thread
from starlette.requests import Request
from starlette.responses import Response

from qmd.engine_text import engine_text
from qmd.errors import InputError, WritesForbiddenError
from qmd.server.sessions import cookies, set_cookie

FIELD = "csrf"
HEADER = "x-csrf-token"
FILE_TYPE = "application/octet-stream"

#: The methods that change nothing, and need no token.
READS = ("GET", "HEAD")

_SALT_BYTES = 16
_DIGEST_LENGTH = 64  # characters of a SHA-256 in hexadecimal
_COOKIE = "qmd_page"
_MAX_FIELDS = 2_000
_LONG = 64_000  # bytes of a form that is parsed beside the event loop


@dataclass(frozen=True, slots=True)
class Browser:
    """
    The browser that sends a request.

    Attributes:
        cookie: The signed random value in its cookie.
        token: What its forms must contain.
        is_new: Whether the response has to set the cookie.
    """

    cookie: str
    token: str
    is_new: bool

    @property
    def session(self) -> str:
        """The session that its changes belong to; the cookie cannot be told from it."""
        return f"page-{hashlib.sha256(self.cookie.encode()).hexdigest()[:8]}"


#: The notices of so many browsers wait for their next page; the oldest are dropped.
MAX_BROWSERS = 200

MAX_NOTICES = 5  # of one browser


@dataclass(frozen=True, slots=True)
class FormNotice:
    """
    A sentence above the next page.

    Attributes:
        text: In the language of the person.
        change: The number of the change that an undo button takes back; None for no button.
        kind: "warn" if something went wrong after what was done.
        is_undo: Whether ``change`` was an undo itself, so that the button does again what it undid.
    """

    text: str
    change: int | None = None
    kind: Literal["ok", "warn"] = "ok"
    is_undo: bool = False


class Browsers:
    """
    Makes and checks the cookies and tokens of one server process, and keeps what waits to be said.

    Use it on the event loop only.
    """

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)
        self._notices: OrderedDict[str, list[FormNotice]] = OrderedDict()  # by the cookie

    def browser(self, request: Request) -> Browser:
        cookie = next(filter(self._is_signed, cookies(request.scope, _COOKIE)), None)
        is_new = cookie is None
        if cookie is None:
            value = secrets.token_urlsafe(32)
            cookie = f"{value}.{self._mac('cookie', value)}"
        return Browser(cookie, self._token(cookie, secrets.token_hex(_SALT_BYTES)), is_new)

    def remember(self, browser: Browser, request: Request, response: Response) -> None:
        """Set the cookie of a new browser."""
        if browser.is_new:
            set_cookie(response, request, _COOKIE, browser.cookie, "lax")

    def has_token(self, browser: Browser, request: Request, form: Form) -> bool:
        """
        Whether a request that changes something brings the token of its browser.

        It does not if it is of another page, or if the token was made for another cookie or by an
        earlier process.
        """
        sent = request.headers.get(HEADER) or form.get(FIELD)
        salt, _, _ = sent.partition(".")
        token = self._token(browser.cookie, salt)
        return not browser.is_new and hmac.compare_digest(sent.encode(), token.encode())

    def notify(self, browser: Browser, notice: FormNotice) -> None:
        """Show a notice above the next page of a browser."""
        waiting = [*self.notices(browser), notice]
        self._notices[browser.cookie] = waiting[-MAX_NOTICES:]
        while len(self._notices) > MAX_BROWSERS:
            self._notices.popitem(last=False)

    def notices(self, browser: Browser) -> list[FormNotice]:
        """Those that wait for a browser, which are shown once."""
        return self._notices.pop(browser.cookie, [])

    def _token(self, cookie: str, salt: str) -> str:
        return f"{salt}.{self._mac('token', salt, cookie)}"

    def _is_signed(self, cookie: str) -> bool:
        value, _, mac = cookie.partition(".")
        if not value or len(mac) != _DIGEST_LENGTH:
            return False
        return hmac.compare_digest(mac.encode(), self._mac("cookie", value).encode())

    def _mac(self, purpose: str, *parts: str) -> str:
        """An HMAC in hexadecimal. No part holds a line break."""
        message = "\n".join((purpose, *parts))
        return hmac.new(self._key, message.encode(), hashlib.sha256).hexdigest()


def require_own_page(request: Request) -> None:
    """
    Refuse a request that a page of another origin sends, also of another port of this machine.

    Browsers say where a request comes from: in Sec-Fetch-Site, or, where the page was not loaded
    from this machine or over TLS, in Origin. A program that sends neither needs a token still.

    Raises:
        WritesForbiddenError: It comes from such a page.
    """
    site = request.headers.getlist("sec-fetch-site")
    if site:
        is_own = site == ["same-origin"]
    else:
        origins = request.headers.getlist("origin")
        host = request.headers.get("host", "").lower()
        is_own = not origins or [each.lower() for each in origins] in (
            [f"http://{host}"],
            [f"https://{host}"],
        )
    if not is_own:
        raise WritesForbiddenError(
            "Origin not allowed: this form was not sent by a page of this server."
        )


class Form:
    """The fields of a form, in the order in which they were sent."""

    def __init__(self, fields: Mapping[str, list[str]] | None = None) -> None:
        self._fields = dict(fields or {})

    def get(self, name: str, otherwise: str = "") -> str:
        """The first value of a field; ``otherwise`` if it was not sent."""
        return self._fields.get(name, [otherwise])[0]

    def all(self, name: str) -> list[str]:
        return self._fields.get(name, [])

    def __contains__(self, name: str) -> bool:
        return name in self._fields


async def read_form(request: Request) -> Form:
    """
    The fields of a form in a request; none if its body is of another type.

    Line ends become LF: browsers send CRLF, whatever the text had. (`request.form()` replaces bytes
    that are no UTF-8 without a word, and a note would be saved with them.)

    Raises:
        InputError: It has too many fields, or is not UTF-8.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return Form()
    body = await request.body()
    if len(body) > _LONG:  # 4 MiB take half a second
        return await anyio.to_thread.run_sync(_parsed, body)
    return _parsed(body)


async def read_file(request: Request) -> bytes:
    """The bytes of a file that a script sends; none if the body is of another type."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return await request.body() if kind == FILE_TYPE else b""


def _parsed(body: bytes) -> Form:
    """Raises InputError."""
    try:
        pairs = parse_qsl(
            body.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError as error:  # UnicodeDecodeError is one
        raise InputError(engine_text("The form cannot be read: {error}", error=error)) from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Form(fields)
