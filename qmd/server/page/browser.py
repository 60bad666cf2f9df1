"""
Tells browsers apart, and makes the tokens without which no form is taken.

Each browser gets a cookie with a random value. The token of its forms is an HMAC of that value
with a key of this process. Another site can neither read the token nor send the cookie, which is
``SameSite=Strict``; `qmd.server.security` refuses its requests besides.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import Response

from qmd.errors import InputError
from qmd.server.endpoints.definition import RestError

FIELD = "csrf"
HEADER = "x-csrf-token"

_COOKIE_LENGTH = 43  # characters of `secrets.token_urlsafe(32)`
_MAX_FIELDS = 2_000


@dataclass(frozen=True, slots=True)
class Browser:
    """
    The browser that sends a request.

    Attributes:
        cookie: The random value in its cookie.
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


class Browsers:
    """Makes and checks the cookies and tokens of one server process."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def browser(self, request: Request) -> Browser:
        cookie = request.cookies.get(_cookie_name(request), "")
        is_new = len(cookie) != _COOKIE_LENGTH or not cookie.isascii()
        if is_new:
            cookie = secrets.token_urlsafe(32)
        token = hmac.new(self._key, cookie.encode(), hashlib.sha256).hexdigest()
        return Browser(cookie, token, is_new)

    @staticmethod
    def remember(browser: Browser, request: Request, response: Response) -> None:
        """Set the cookie of a new browser."""
        if browser.is_new:
            response.set_cookie(
                _cookie_name(request), browser.cookie, httponly=True, samesite="strict", path="/"
            )

    @staticmethod
    def check(browser: Browser, request: Request, form: Form) -> None:
        """
        Check the token of a request that changes something.

        Raises:
            RestError: The token is missing or wrong (403).
        """
        sent = request.headers.get(HEADER) or form.get(FIELD)
        if browser.is_new or not hmac.compare_digest(sent.encode(), browser.token.encode()):
            raise RestError(
                403,
                "This form is no longer valid: the server was restarted, or the browser keeps no "
                "cookies.\n\nLoad the page again, and send the form once more.",
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

    Line ends become LF: browsers send CRLF, whatever the text had.

    Raises:
        InputError: It has too many fields, or is not UTF-8.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        return Form()
    try:
        pairs = parse_qsl(
            (await request.body()).decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_FIELDS,
        )
    except ValueError as error:  # UnicodeDecodeError is one
        raise InputError(f"The form cannot be read: {error}") from None
    fields: dict[str, list[str]] = {}
    for name, value in pairs:
        fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
    return Form(fields)


def _cookie_name(request: Request) -> str:
    _, port = request.scope.get("server") or ("", 0)
    return f"qmd_page_{port}"
