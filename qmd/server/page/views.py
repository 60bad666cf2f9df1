"""
The views of the page as a table: an address, what it shows, what its form does, who may send it.

::

    PageView("/overview/collection/remove", act=_remove, sender="administrator")

A view runs on a worker thread. It returns a page, the address that the browser loads next, or a
response of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.server.page.browser import READS, Form, FormNotice
from qmd.server.page.site import READ_S, Site

#: The most seconds that a form may take.
WRITE_S = 60.0


_NO_FORM = Form()


class Shown(NamedTuple):
    """A page, or a part of one."""

    template: str
    values: Mapping[str, object] = MappingProxyType({})
    http_status: int = 200


class Visit:
    """
    A request of a person: what it asks for, and the knowledge base that answers.

    Attributes:
        path: The parts of the address that have names.
        problem: Why the form was not carried out, when it is shown again.
    """

    def __init__(self, site: Site, request: Request) -> None:
        self.site = site
        self.request = request
        self.path: Mapping[str, str] = request.path_params
        self.problem: QmdError | None = None
        self.notice: FormNotice | None = None

    @property
    def kb(self) -> KnowledgeBase:
        return self.site.kb

    @property
    def form(self) -> Form:
        """The form that was sent; one without fields for a page."""
        form: Form = getattr(self.request.state, "form", _NO_FORM)
        return form

    @property
    def sent_file(self) -> bytes:
        """The bytes of a file that a script has sent instead of a form."""
        sent: bytes = getattr(self.request.state, "file", b"")
        return sent

    def __getitem__(self, field: str) -> str:
        """The first value of a field of the form; "" if it was not sent."""
        return self.form.get(field)

    def query(self, name: str, otherwise: str = "") -> str:
        """A parameter of the address."""
        return self.request.query_params.get(name, otherwise)

    @property
    def file(self) -> str:
        """The ``collection/path`` in the address."""
        return self.path["file"]

    @property
    def is_part(self) -> bool:
        """Whether a script asks for a part of a page."""
        return self.request.url.path.startswith("/part/")

    @property
    def wants_json(self) -> bool:
        """Whether a script has sent the form."""
        return self.request.headers.get("accept", "").startswith("application/json")

    def page_number(self, name: str = "page", *, most: int = 100_000) -> int:
        """The page of a long list, or the part of a long text, that the address asks for."""
        return min(max(1, self.number(self.query(name)) or 1), most)

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
        more = self.site.translated(self.request, problem or "")
        kind: Literal["ok", "warn"] = "warn" if problem else "ok"
        self.notice = FormNotice(f"{words} {more}".strip(), change, kind, is_undo=undo)


#: An address on this server that the browser loads next, a page, or a response of its own.
Answer = str | Shown | Response


@dataclass(frozen=True, slots=True)
class PageView:
    """
    What is at an address.

    Attributes:
        show: Answers GET.
        act: Does what a form asks for.
        sender: Who may send the form: anybody, who may write notes, or only the administrator.
        again: Shows the form once more if it was not carried out, with what was typed and what is
            wrong; None, or an error of its own, for a page that says alone what is wrong.
        compress: Whether a large response is compressed where the browser takes it.
    """

    path: str
    show: Callable[[Visit], Answer] | None = None
    act: Callable[[Visit], Answer] | None = None
    sender: Literal["anybody", "writer", "administrator"] = "anybody"
    again: Callable[[Visit], Answer] | None = None
    timeout_s: float = READ_S
    compress: bool = True


def view_routes(site: Site, views: Iterable[PageView]) -> list[Route]:
    return [_route(site, view) for view in views]


def _route(site: Site, view: PageView) -> Route:
    async def show(request: Request) -> Response:
        assert view.show is not None
        return await run(request, view.show, view.timeout_s)

    async def send(request: Request) -> Response:
        try:
            if view.sender != "anybody":
                site.require_writes(administrator=view.sender == "administrator")
            assert view.act is not None
            return await run(request, view.act, max(view.timeout_s, WRITE_S))
        except QmdError as error:
            if view.again is None:
                raise
            return await show_again(request, error)

    async def show_again(request: Request, error: QmdError) -> Response:
        assert view.again is not None
        try:
            return await run(request, view.again, view.timeout_s, error)
        except QmdError:  # what the form is about is not there any more
            raise error from None

    async def run(
        request: Request,
        work: Callable[[Visit], Answer],
        timeout_s: float,
        problem: QmdError | None = None,
    ) -> Response:
        visit = Visit(site, request)
        visit.problem = problem
        done = await site.run(request, lambda: work(visit), timeout_s=timeout_s)
        if visit.notice is not None:
            site.notify(request, visit.notice)
        if isinstance(done, str):
            return site.redirect(done)
        if isinstance(done, Response):
            return done
        status, values = done.http_status, dict(done.values)
        if problem is not None:
            status = problem.http_status if problem.http_status < 500 else 409
            values["problem"] = site.problem(request, problem)
        return site.page(request, done.template, values, http_status=status)

    async def answer(request: Request) -> Response:
        return await (show if request.method in READS else send)(request)

    reads = () if view.show is None else READS
    sends = () if view.act is None else ("POST",)
    stale = None if view.again is None else show_again
    return site.route(view.path, answer, (*reads, *sends), stale=stale, compress=view.compress)
