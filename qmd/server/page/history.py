"""The earlier contents of a file, at ``/history/COLLECTION/PATH``, and restoring one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.errors import DecodeError, NotFoundError, QmdError, ReadOnlyError
from qmd.kb import KnowledgeBase
from qmd.parse.decode import decode
from qmd.server.page.diff_rows import ShownDiff, diff_rows
from qmd.server.page.forms import FormRoute, Sent, form_routes
from qmd.server.page.links import note_address
from qmd.server.page.site import Site
from qmd.values import Revision

MAX_COMPARED = 2_000_000
"""Bytes of a content that is compared; of a longer one no difference is shown."""


@dataclass(frozen=True, slots=True)
class ShownHistory:
    """
    What the template shows.

    Attributes:
        name: As the address has it: ``collection/path`` of the file.
        exists: Whether the index has a document of this name.
        chosen: The revision of the change whose difference is shown; None if none has a content.
        diff: None if the contents cannot be compared.
        with_now: Whether it is compared with the present text, and not with the content that
            the tool wrote.
    """

    name: str
    exists: bool
    revisions: Sequence[Revision]
    chosen: Revision | None
    diff: ShownDiff | None
    with_now: bool


def routes(site: Site) -> list[Route]:
    async def history(request: Request) -> Response:
        name = request.path_params["file"]
        number = Sent.number(request.query_params.get("revision", ""))
        with_now = request.query_params.get("with") == "now"
        shown = await site.run(
            request, lambda: read_history(site.kb, name, number, with_now=with_now)
        )
        may_write = await site.run(request, lambda: site.may_write_in(name.partition("/")[0]))
        return site.page(request, "history.html", history=shown, read_only=not may_write)

    address = "/history/{file:file}"
    return [site.route(address, history), *form_routes(site, [FormRoute(address, _restore)])]


def _restore(sent: Sent) -> str:
    if sent.site.read_only:
        raise ReadOnlyError("This server only reads.")
    name, number = sent.path["file"], sent.number(sent["revision"])
    if number is None:
        raise NotFoundError("The form names no revision.")
    restored = sent.kb.revisions.restore(name, number)
    sent.notify(sent.text("history.restored", n=number), restored.problem)
    return note_address(name)


def read_history(
    kb: KnowledgeBase, name: str, number: int | None, *, with_now: bool
) -> ShownHistory:
    """
    The revisions of a file, and the difference that one of them makes.

    Args:
        number: The change whose difference is shown; None for the newest that has a content.

    Raises:
        NotFoundError: No such change of the file is kept.
        AmbiguousNameError, OutsideRootsError, CollectionNotFoundError: As `FileHistory.history`.
    """
    revisions = kb.revisions.history(name)
    present = _present(kb, name)
    with_content = [each for each in revisions if each.kind == "content"]
    chosen = next(iter(with_content), None)
    if number is not None:
        chosen = kb.revisions.before(revisions, number)
        if chosen is None:
            raise NotFoundError(f"No change {number} of {name} is kept.")
    diff = None
    if chosen is not None and chosen.kind == "content":
        before = _text(kb, name, chosen)
        after = present
        at = with_content.index(chosen)
        if not with_now and at:
            after = _text(kb, name, with_content[at - 1])
        if before is not None:
            diff = diff_rows(before, after or "")
    return ShownHistory(name, present is not None, revisions, chosen, diff, with_now)


def _present(kb: KnowledgeBase, name: str) -> str | None:
    """The text of the document with just this name; None if there is none, or it is too long."""
    try:
        read = kb.get(name)
    except QmdError:
        return None
    is_it = read.document.file == name and len(read.text) <= MAX_COMPARED
    return read.text if is_it else None


def _text(kb: KnowledgeBase, name: str, revision: Revision) -> str | None:
    """The text of a revision; None if it is not text, or too long."""
    if revision.bytes > MAX_COMPARED:
        return None
    try:
        return decode(kb.revisions.content(name, revision.number)).text
    except (DecodeError, NotFoundError):
        return None
