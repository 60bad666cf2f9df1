"""
The forms of the page as a table: an address, what it does, and who may send it.

::

    FormRoute("/overview/collection/remove", _remove, "administrator")

The action runs on a worker thread, and returns the address that the browser loads when it is done,
or a page. What the person can mend in the form is said above the same form, with what was typed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.server.page.browser import Form, FormNotice
from qmd.server.page.site import Site


class Shown(NamedTuple):
    """A page that a form leads to."""

    template: str
    values: Mapping[str, object]
    http_status: int = 200


WRITE_S = 60.0
"""The most seconds that a form which writes may take."""


class Sent:
    """A form that was sent: the fields, the person, and the knowledge base it is for."""

    def __init__(self, site: Site, request: Request) -> None:
        self.site = site
        self.request = request
        self.form: Form = site.form(request)
        self.path: Mapping[str, str] = request.path_params
        self.notice: FormNotice | None = None

    @property
    def kb(self) -> KnowledgeBase:
        return self.site.kb

    def __getitem__(self, field: str) -> str:
        """The first value of a field; "" if it was not sent."""
        return self.form.get(field)

    def text(self, name: str, /, **values: object) -> str:
        """A text of the page in the language of the person."""
        return self.site.text(self.request, name, **values)

    @staticmethod
    def number(text: str) -> int | None:
        """The number that a field or an address has; None for any other text."""
        return int(text) if text.isascii() and text.isdecimal() and len(text) < 16 else None

    def notify(
        self,
        words: str,
        problem: str | None = None,
        change: int | None = None,
        *,
        undo: bool = False,
    ) -> None:
        """Show a sentence above the next page, with what went wrong after the ``change``."""
        more = self.site.translated(self.request, problem) if problem else ""
        self.notice = FormNotice(f"{words} {more}".strip(), change, is_undo=undo)


@dataclass(frozen=True, slots=True)
class FormRoute:
    """
    A form.

    Attributes:
        act: Does what the form asks for. Returns an address on this server or a page.
        sender: Who may send it: anybody, who may write notes here, or only the administrator.
        again: The page of the form, which is shown again with an error; None for a page that says
            the error alone.
    """

    path: str
    act: Callable[[Sent], str | Shown]
    sender: Literal["anybody", "writer", "administrator"] = "anybody"
    again: Callable[[Sent], Shown] | None = None


def form_routes(site: Site, forms: Iterable[FormRoute]) -> list[Route]:
    return [_route(site, form) for form in forms]


def _route(site: Site, form: FormRoute) -> Route:
    async def answer(request: Request) -> Response:
        if form.sender != "anybody":
            site.require_writes(administrator=form.sender == "administrator")
        sent, problem = Sent(site, request), None
        try:
            done = await site.run(request, lambda: form.act(sent), timeout_s=WRITE_S)
        except QmdError as error:
            again, problem = form.again, error
            if again is None or error.http_status >= 500:
                raise
            shown = await site.run(request, lambda: again(sent))
            done = shown._replace(http_status=error.http_status)
        if sent.notice is not None:
            site.notify(request, sent.notice)
        if isinstance(done, str):
            return site.redirect(done)
        return site.page(
            request, done.template, done.values, http_status=done.http_status, problem=problem
        )

    return site.route(form.path, answer, ("POST",))
