"""What all views share: the knowledge base, threads, templates, languages and errors."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from qmd import __version__
from qmd.agent.chat import Chats
from qmd.errors import QmdError, ScopeError, WritesForbiddenError
from qmd.kb import KnowledgeBase
from qmd.kb.scoped import ScopedKnowledgeBase, require_writing_token
from qmd.server.activity import Activity, SearchKind, caller_named
from qmd.server.failures import failure_of
from qmd.server.jobs import Jobs
from qmd.server.page import templating
from qmd.server.page.browser import (
    HEADER,
    READS,
    Browser,
    Browsers,
    Form,
    FormNotice,
    read_file,
    read_form,
    require_own_page,
)
from qmd.server.sessions import IN_SESSION, Sessions
from qmd.server.streams import Compressed
from qmd.server.workers import CallQueue, while_connected
from qmd.system.session import in_session
from qmd.values.writing import Language

T = TypeVar("T")

Handler = Callable[[Request], Awaitable[Response]]

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; "
    "connect-src 'self'; manifest-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'"
)

#: The most seconds that a view may take.
READ_S = 30.0

_READERS = 4  # calls of the page that run at once
_PAINTERS = 2  # calls that decode pictures; more only wait for each other, and take memory
_MAX_WAITING = 200
_PHOTOS_S = 30.0  # how long the page trusts that there are photos, or none
_STALE = "This form was no longer valid: the server was restarted, or the browser keeps no cookies."
_SEND_AGAIN = "Load the page again, and send the form once more."
_MIN_GZIP = 1_000  # bytes; smaller responses are sent as they are


class Problem(NamedTuple):
    """Why something was not done, and what to do next."""

    message: str
    hint: str | None = None


class Site:
    """
    Shared by the views of one server.

    Args:
        read_only: The server refuses what changes files or the index.
        chats: The conversations with the agent; None for those of this page alone.
        activity: Remembers the requests for pages, with those of the other faces.
        jobs: The jobs of the server, which hear of work from its start on; None for new ones.
        editor: The setting, see `qmd.system.editors`.
        sessions: The browsers that are logged in; None if nobody can log in.
    """

    def __init__(
        self,
        kb: KnowledgeBase,
        *,
        read_only: bool = False,
        activity: Activity | None = None,
        chats: Chats | None = None,
        jobs: Jobs | None = None,
        editor: str | None = None,
        sessions: Sessions | None = None,
    ) -> None:
        self.kb = kb
        self.sessions = sessions
        self.chats = chats or Chats(kb, may_write=not read_only)
        self.read_only = read_only
        self.activity = activity or Activity()
        self.editor = editor
        self.jobs = jobs or Jobs(kb)
        self.static = templating.static_files()
        self.texts = templating.page_texts()
        self._engine_texts = templating.engine_texts()
        self._has_photos = False
        self._photos_until = 0.0  # of the monotonic clock
        self._browsers = Browsers()
        self._queue = CallQueue(_READERS, max_waiting=_MAX_WAITING)
        self._picture_queue = CallQueue(_PAINTERS, max_waiting=_MAX_WAITING)

    @property
    def may_administer(self) -> bool:
        """Whether the person may change collections and the index, and not only notes."""
        return not isinstance(self.kb, ScopedKnowledgeBase)

    @property
    def can_change(self) -> bool:
        """Whether the person may change the index or files."""
        return self.may_administer and not self.read_only and self.kb.policy.writable

    def require_writes(self, *, administrator: bool) -> None:
        """
        Raises WritesForbiddenError, ScopeError: nothing may be changed here, or only notes.

        OutsideRootsError: The person's token only reads.
        """
        require_writing_token(self.kb)
        if self.read_only or not self.kb.policy.writable:
            raise WritesForbiddenError(
                "This server is read-only.",
                hint="Start it without --read-only to allow what changes the index.",
            )
        if administrator and not self.may_administer:
            raise ScopeError("This is for the administrator; your token opens notes alone.")

    def may_write_in(self, collection: str) -> bool:
        """Whether the person may change files of a collection; it asks the database."""
        return not self.read_only and any(
            each.name == collection for each in self.kb.writable_collections()
        )

    @property
    def why_read_only(self) -> str:
        """The key of the text that says why nothing may be written, where that is so."""
        only_reads = isinstance(self.kb, ScopedKnowledgeBase) and not self.kb.scope.write
        return "edit.read_only_token" if only_reads else "edit.read_only"

    @property
    def _scope_name(self) -> str:
        """The name of the client's token; "" for the administrator's."""
        return self.kb.scope.name if isinstance(self.kb, ScopedKnowledgeBase) else ""

    # -- routes ------------------------------------------------------------------------

    def route(
        self,
        path: str,
        handler: Handler,
        methods: Sequence[str] = ("GET",),
        *,
        stale: Callable[[Request, QmdError], Awaitable[Response]] | None = None,
        compress: bool = True,
    ) -> Route:
        """
        A route of the page. An error of qmd becomes a page with its message and hint.

        Before ``handler`` runs, a POST must bring the token of the page, in a field of its form or
        in a header. The form is in ``request.state.form`` then, and what the handler writes
        through `run` belongs to the session of the browser.

        Args:
            stale: Answers a form whose token is no longer valid, and changes nothing; None for
                the page of the error.
            compress: Whether a large response is compressed where the browser takes it.
        """

        async def answer(request: Request) -> Response:
            browser = self.browser(request)
            is_stale = False
            try:
                if request.method not in READS:
                    require_own_page(request)
                    request.state.form = await read_form(request)
                    request.state.file = await read_file(request)
                    is_stale = not self._browsers.has_token(browser, request, request.state.form)
                if not is_stale:
                    response = await self._recorded(path, handler, request)
                elif stale is not None:
                    response = await stale(request, WritesForbiddenError(_STALE))
                else:
                    raise WritesForbiddenError(_STALE, hint=_SEND_AGAIN)
            except ClientDisconnect:
                return Response(status_code=400)  # the client has left and does not read it
            except Exception as error:  # noqa: BLE001 - logged and shown
                response = self.error(request, error)
            if is_stale:
                # Only scripts of this page can read it; they send their request once more.
                response.headers[HEADER] = browser.token
            self._browsers.remember(browser, request, response)
            return response

        gzip = Middleware(Compressed, minimum_size=_MIN_GZIP, compresslevel=5)
        return Route(path, answer, methods=list(methods), middleware=[gzip] if compress else None)

    async def _recorded(self, path: str, handler: Handler, request: Request) -> Response:
        """Answer a request and remember it; one for a part of a page only if it searched."""
        client = caller_named("page", "", "", self.browser(request).session)
        with self.activity.recorded(client, path) as outcome:
            outcome.is_remembered = not path.startswith("/part/")
            response = await handler(request)
            outcome.is_ok = response.status_code < 400
            searched: tuple[SearchKind, int] | None = getattr(request.state, "searched", None)
            if searched is not None:
                outcome.kind, outcome.hits = searched
                outcome.is_remembered = True
        return response

    @staticmethod
    def note_search(request: Request, kind: SearchKind, hits: int) -> None:
        """Tell the record of calls that the request searched, and how many hits it gave."""
        request.state.searched = (kind, hits)

    async def run(
        self,
        request: Request,
        work: Callable[[], T],
        *,
        timeout_s: float = READ_S,
        paints: bool = False,
    ) -> T:
        """
        Run ``work`` on a thread, in the session of the request's browser.

        Args:
            paints: The work decodes a picture, for as long as whoever made the picture chose. It
                waits for other such work only, and no other work waits for it.

        Raises:
            ClientDisconnect: The browser has left; the work is cancelled.
            TimeoutError: It took longer than ``timeout_s``.
            qmd.server.workers.TooBusyError: Too many calls wait.
        """
        session = self.browser(request).session

        def job() -> T:
            with in_session(session, face="page"):
                self._look_for_photos()
                return work()

        queue = self._picture_queue if paints else self._queue
        return await while_connected(request, lambda: queue.run(job, timeout_s=timeout_s))

    def _look_for_photos(self) -> None:
        """Learn whether the menu leads to photos; now and then, as it asks the database."""
        if time.monotonic() >= self._photos_until:
            self._has_photos = self.kb.has_photos()
            self._photos_until = time.monotonic() + _PHOTOS_S

    # -- what a request says -----------------------------------------------------------

    def browser(self, request: Request) -> Browser:
        browser: Browser | None = getattr(request.state, "browser", None)
        if browser is None:
            browser = request.state.browser = self._browsers.browser(request)
        return browser

    @staticmethod
    def form(request: Request) -> Form:
        """The form of a POST."""
        form: Form = request.state.form
        return form

    @staticmethod
    def language(request: Request) -> Language:
        """What the person chose at the foot of the page, else what the browser prefers."""
        chosen = request.query_params.get("lang") or request.cookies.get("qmd_lang", "")
        for language in templating.LANGUAGES:
            if chosen == language:
                return language
        return templating.language_of(request.headers.get("accept-language", ""))

    # -- responses ---------------------------------------------------------------------

    def page(
        self,
        request: Request,
        template: str,
        values: Mapping[str, object] = MappingProxyType({}),
        *,
        http_status: int = 200,
        **more: object,
    ) -> Response:
        """A page, or a part of one, from a template. Templates escape all values."""
        language = self.language(request)
        html = self.html(request, template, {**values, **more})
        headers = {
            "content-security-policy": CONTENT_SECURITY_POLICY,
            "content-language": language,
            "vary": "accept-language, cookie",
            # With "no-referrer" browsers would send forms with the origin "null".
            "referrer-policy": "same-origin",
            "cross-origin-opener-policy": "same-origin",
        }
        response = Response(html, http_status, media_type="text/html", headers=headers)
        if request.query_params.get("lang") == language and _is_own_link(request):
            response.set_cookie(
                "qmd_lang", language, max_age=31536000, httponly=True, samesite="strict"
            )
        return response

    def text(self, request: Request, name: str, /, **values: object) -> str:
        """A text of the page in the language of the person."""
        return self.texts.text(self.language(request), name, **values)

    def translated(self, request: Request, sentence: str) -> str:
        """A sentence of the engine in the language of the person, see `EngineTexts`."""
        return self._engine_texts.translated(sentence, self.language(request))

    def problem(self, request: Request, error: QmdError) -> Problem:
        """What is wrong, in the language of the person, for above a form that is shown again."""
        hint = None if error.hint is None else self.translated(request, error.hint)
        return Problem(self.translated(request, error.message), hint)

    def notify(self, request: Request, notice: FormNotice) -> None:
        """Show a notice above the next page that this browser loads."""
        self._browsers.notify(self.browser(request), notice)

    def html(self, request: Request, template: str, values: Mapping[str, object]) -> str:
        """The HTML of a page, or of a part of one."""
        return templating.rendered_template(
            template,
            self.language(request),
            {
                "csrf": self.browser(request).token,
                "notices": lambda: self._browsers.notices(self.browser(request)),
                "path": request.url.path,
                "problem": None,
                "is_login": False,
                "read_only": self.read_only,
                "why_read_only": self.why_read_only,
                "has_photos": self._has_photos,
                "may_administer": self.may_administer,
                "can_change": self.can_change,
                # The name of the token of a person who can log out; None for others.
                "logged_in": self._scope_name
                if getattr(request.state, IN_SESSION, False)
                else None,
                "version": __version__,
                **values,
            },
        )

    @staticmethod
    def redirect(address: str) -> Response:
        """
        The response to a form that was carried out: the browser loads ``address``.

        Raises:
            ValueError: It is no path on this server.
        """
        if not address.startswith("/") or address[1:2] in ("/", "\\"):
            raise ValueError(f"no path on this server: {address!r}")
        return RedirectResponse(address, 303)

    def error(self, request: Request, error: Exception) -> Response:
        """A page that says what went wrong, and what to do next."""
        failure = failure_of(error)
        message, hint = failure.parts
        if failure.is_of_http:
            message = self.text(request, f"base.error_{failure.status}")
        else:
            message = self.translated(request, message)
        hint = hint and self.translated(request, hint)
        is_part = request.url.path.startswith("/part/")
        template = "error_part.html" if is_part else "error.html"
        return self.page(request, template, http_status=failure.status, message=message, hint=hint)


def _is_own_link(request: Request) -> bool:
    """Whether the person has followed a link of this page, or typed the address."""
    return request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
