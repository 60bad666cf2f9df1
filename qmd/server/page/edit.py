"""The editor of a note, at ``/edit/…``, with its preview, and the choice after a conflict."""

from __future__ import annotations

from dataclasses import dataclass, replace
from urllib.parse import quote_plus

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from qmd.errors import (
    CollectionNotFoundError,
    FileChangedError,
    InputError,
    InvalidPathError,
    NotFoundError,
    QmdError,
)
from qmd.files.edits.merge import Choice, Part, PartKind, conflicts, merge, merged_text
from qmd.kb import KnowledgeBase
from qmd.render import NoLinks, Options, render_note
from qmd.server.page.browser import Form, FormNotice
from qmd.server.page.forms import WRITE_S
from qmd.server.page.links import PageLinks, address
from qmd.server.page.site import Site
from qmd.server.security import MAX_BODY_BYTES
from qmd.values.edits import EditedNote, NoteSource

_MAX_FORM = MAX_BODY_BYTES - 100_000  # bytes of a form, as sent, with room for what is typed


def routes(site: Site) -> list[Route]:
    editor = _Editor(site)
    return [
        site.route(
            "/edit/{file:file}", editor.answer, ("GET", "POST"), stale=editor.after_stale_token
        ),
        site.route("/part/preview", editor.preview, ("POST",)),
    ]


class _Editor:
    """Answers the requests of the editor."""

    def __init__(self, site: Site) -> None:
        self._site = site

    async def answer(self, request: Request) -> Response:
        if request.method == "POST":
            return await self._carry_out(request)
        source = await self._source(request)
        return self._page(request, source)

    async def after_stale_token(self, request: Request) -> Response:
        """Show what was typed once more, with a token that is valid."""
        form = self._site.form(request)
        try:
            source = await self._source(request)
        except NotFoundError as error:
            return self._gone(request, form, error, http_status=403)
        problem = self._site.text(request, "edit.stale")
        return self._page(request, source, form=form, problem=problem, http_status=403)

    async def preview(self, request: Request) -> Response:
        return self._site.page(request, "edit_preview.html", preview=await self._rendered(request))

    # -- saving ------------------------------------------------------------------------

    async def _carry_out(self, request: Request) -> Response:
        form = self._site.form(request)
        if "text" not in form or "docid" not in form:
            raise InputError("The form lacks the text of the note, or what it was.")
        action, text, docid = form.get("action", "save"), form.get("text"), form.get("docid")
        if action == "preview":
            html = await self._rendered(request)
            return self._page(request, await self._source(request), form=form, preview=html)
        if action == "theirs":
            return self._site.redirect(f"/note/{address(_file(request))}")
        if action in ("choices", "by_hand"):
            source = await self._source(request)
            if source.docid != docid:  # changed once more
                return self._conflict(request, source, form)
            text = merged_text(merge(_base(form), text, source.text), choices_in(form))
            if action == "by_hand":
                return self._page(request, source, text=text)
        try:
            saved = await self._save(request, text, docid)
        except FileChangedError:
            return self._conflict(request, await self._source(request), form)
        except NotFoundError as error:
            return self._gone(request, form, error)
        except QmdError as error:
            if wants_json(request):
                raise
            source = await self._source(request)
            return self._page(
                request,
                source,
                form=form,
                problem=self._site.error_text(request, error),
                http_status=error.http_status,
            )
        return self._saved(request, saved, form)

    async def _save(self, request: Request, text: str, docid: str) -> EditedNote:
        site, file = self._site, _file(request)
        site.require_notes(request)
        return await site.run(
            request,
            lambda: site.kb.replace_note(file, text, if_docid=docid),
            timeout_s=WRITE_S,
        )

    def _saved(self, request: Request, saved: EditedNote, form: Form) -> Response:
        line = form.get("line")
        where = f"?line={line}" if line.isdecimal() and line.isascii() and len(line) < 8 else ""
        note = f"/note/{address(saved.file)}{where}"
        stays = wants_json(request) and not form.get("leave")
        if saved.written and not stays:
            words = self._site.text(request, "edit.saved")
            if saved.problem:
                words = f"{words} {self._site.translated(request, saved.problem)}"
            self._site.notify(request, FormNotice(words, saved.change))
        if wants_json(request):
            return JSONResponse({"docid": saved.docid, "written": saved.written, "address": note})
        return self._site.redirect(note)

    # -- pages -------------------------------------------------------------------------

    async def _source(self, request: Request) -> NoteSource:
        site, file = self._site, _file(request)
        source = await site.run(request, lambda: site.kb.note_source(file))
        if site.read_only:
            return replace(source, refusal=site.text(request, "edit.read_only"))
        return source

    def _page(
        self,
        request: Request,
        source: NoteSource,
        *,
        form: Form | None = None,
        text: str | None = None,
        problem: str | None = None,
        preview: str | None = None,
        http_status: int = 200,
    ) -> Response:
        """
        The editor.

        Args:
            form: What the person has sent, which is shown again.
            text: A text that is not saved yet; without it that of the form or of the note.
        """
        docid, base = source.docid, source.text
        if form is not None and "text" in form:
            text = form.get("text") if text is None else text
            docid, base = form.get("docid"), form.get("base")
        shown = source.text if text is None else text
        is_too_long = _sent_bytes(shown) > _MAX_FORM
        return self._site.page(
            request,
            "edit.html",
            http_status=http_status,
            source=source,
            text=shown,
            docid=docid,
            base=base if _sent_bytes(base, shown) <= _MAX_FORM else None,
            problem=problem,
            preview=preview,
            is_too_long=is_too_long,
            is_new_text=text is not None,
            gone=None,
        )

    def _conflict(self, request: Request, source: NoteSource, form: Form) -> Response:
        """Both texts, and what to do. Nothing was written."""
        text = form.get("text")
        base = _base(form)
        if _sent_bytes(base or "", text) > _MAX_FORM:
            base = None
        parts = merge(base, text, source.text)
        return self._site.page(
            request,
            "edit_conflict.html",
            http_status=409,
            source=source,
            text=text,
            base=base,
            parts=shown_parts(parts),
            conflicts=conflicts(parts),
        )

    def _gone(
        self, request: Request, form: Form, error: NotFoundError, *, http_status: int = 404
    ) -> Response:
        """The note is not there any more: what was typed may become a new note."""
        file, text = _file(request), form.get("text")
        collection, _, path = file.partition("/")
        folder, _, name = path.rpartition("/")
        return self._site.page(
            request,
            "edit.html",
            http_status=http_status,
            source=NoteSource(file, text, "", None),
            text=text,
            docid="",
            base=None,
            problem=self._site.error_text(request, error),
            preview=None,
            is_too_long=False,
            is_new_text=True,
            gone={"collection": collection, "folder": folder, "name": name},
        )

    async def _rendered(self, request: Request) -> str:
        """The HTML of what was typed, which `qmd.render` has made safe."""
        site, form = self._site, self._site.form(request)
        text = form.get("text")
        file = request.path_params.get("file") or form.get("file")
        return await site.run(request, lambda: _html(site.kb, file, text))


def _html(kb: KnowledgeBase, file: str, text: str) -> str:
    """The preview of a text; its links lead nowhere if the collection is not known."""
    try:
        options = Options(breaks_lines=kb.breaks_lines(file.partition("/")[0]))
        return render_note(text, PageLinks(kb, file), options).html
    except (CollectionNotFoundError, InvalidPathError):
        return render_note(text, NoLinks()).html


def _file(request: Request) -> str:
    file: str = request.path_params["file"]
    return file


def _base(form: Form) -> str | None:
    """The text that the person began with; None if it was too long for the form."""
    return form.get("base") if "base" in form else None


def _sent_bytes(*texts: str) -> int:
    """The length of texts in a form, each of whose lines ends with CR LF."""
    return sum(len(quote_plus(text)) + 3 * text.count("\n") for text in texts)


def wants_json(request: Request) -> bool:
    """Whether a script has sent the form."""
    return request.headers.get("accept", "").startswith("application/json")


# --- two edits of one note beside each other ------------------------------------------


_CONTEXT_LINES = 3
_MAX_CHOICES = 10_000


@dataclass(frozen=True, slots=True)
class ShownPart:
    """
    A part as the page shows it; texts are lists of lines.

    Attributes:
        number: That of a conflict, from 0.
        left_out: How many lines between ``base`` and ``mine`` are not shown, if all are the same.
    """

    kind: PartKind
    base: list[str]
    mine: list[str]
    theirs: list[str]
    number: int = 0
    left_out: int = 0


def shown_parts(parts: list[Part]) -> list[ShownPart]:
    """What the page shows: of lines that are the same only those next to a change."""
    shown: list[ShownPart] = []
    number = 0
    for at, part in enumerate(parts):
        base, mine, theirs = (
            text.removesuffix("\n").split("\n") if text else []
            for text in (part.base, part.mine, part.theirs)
        )
        if part.kind == "same":
            head = base[:_CONTEXT_LINES] if at else []
            tail = base[-_CONTEXT_LINES:] if at < len(parts) - 1 else []
            if len(head) + len(tail) >= len(base):
                shown.append(ShownPart("same", base, [], []))
            else:
                left_out = len(base) - len(head) - len(tail)
                shown.append(ShownPart("same", head, tail, [], left_out=left_out))
        else:
            shown.append(ShownPart(part.kind, base, mine, theirs, number))
        number += part.kind == "conflict"
    return shown


def choices_in(form: Form) -> dict[int, Choice]:
    """What the person chose for each conflict; "mine" for those without a choice."""
    choices: dict[int, Choice] = {}
    for number in range(_MAX_CHOICES):
        chosen = form.get(f"choice-{number}")
        if not chosen:
            break
        choices[number] = "theirs" if chosen == "theirs" else "both" if chosen == "both" else "mine"
    return choices
