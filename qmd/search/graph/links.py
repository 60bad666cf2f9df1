"""The links in a note, and the links in other notes that lead to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from qmd.parse.lines import split_lines
from qmd.search.lookup.link_targets import LinkTargets
from qmd.store.sql.links import StoredLink
from qmd.values.graph import Backlink, Backlinks, Neighbourhood, NeighbourNote, NoteLink, NoteLinks
from qmd.values.names import link_key, link_keys_to

if TYPE_CHECKING:
    from collections.abc import Iterator

    from qmd.search.lookup.link_targets import LinkTarget
    from qmd.store import Reader
    from qmd.values import DocumentInfo
    from qmd.values.documents import Link

#: The most characters of a line that a backlink shows.
MAX_LINE = 240
#: Links that are resolved in one call.
LINKS_AT_ONCE = 5000
_NO_DOCUMENT = -1  # the id of a note that is not stored


def links_in(reader: Reader, document: DocumentInfo, *, limit: int) -> NoteLinks:
    """The first ``limit`` links in a note, in the order of its text, and where each leads."""
    stored = reader.links.of_documents([document.id])
    shown = stored[:limit]
    targets = LinkTargets(reader, document.collection).resolve(shown, check_sections=True)
    return NoteLinks(document.file, _note_links(shown, targets), len(stored))


def targets_of(
    reader: Reader, collection: str, path: str, links: Sequence[Link], *, check_sections: bool
) -> tuple[NoteLink, ...]:
    """Where links would lead if they stood in the note at a path of a collection."""
    document = reader.documents.by_path(collection, path)
    document_id = _NO_DOCUMENT if document is None else document.id
    stored = [
        StoredLink(
            document_id,
            collection,
            path,
            number,
            link.kind,
            link.target,
            link_key(link.kind, link.target),
            link.text,
            link.heading,
            link.block,
            link.line,
            link.relation,
        )
        for number, link in enumerate(links)
    ]
    targets = LinkTargets(reader, collection).resolve(stored, check_sections=check_sections)
    return _note_links(stored, targets)


def _note_links(links: Sequence[StoredLink], targets: Sequence[LinkTarget]) -> tuple[NoteLink, ...]:
    return tuple(
        NoteLink(
            link.line,
            link.kind,
            written_target(link),
            target.kind,
            None if target.path is None else f"{link.collection}/{target.path}",
            link.relation,
        )
        for link, target in zip(links, targets, strict=True)
    )


def backlinks_to(reader: Reader, document: DocumentInfo, *, limit: int) -> Backlinks:
    """The first ``limit`` links in other notes that lead to a note, by file and line."""
    incoming = links_to(reader, document)
    shown = incoming[:limit]
    lines = _Lines(reader)
    links = tuple(
        Backlink(
            f"{link.collection}/{link.path}",
            link.line,
            lines.around(link),
            link.kind,
            written_target(link),
            link.relation,
        )
        for link in shown
    )
    return Backlinks(document.file, links, len(incoming))


def links_to(reader: Reader, document: DocumentInfo) -> list[StoredLink]:
    """All links in other notes that lead to a note, by path and the order of the text."""
    candidates = reader.links.to_keys(document.collection, link_keys_to(document.path))
    return [
        link
        for link, target in resolved(reader, document.collection, candidates)
        if target.document_id == document.id and link.document_id != document.id
    ]


def linked_documents(reader: Reader, document: DocumentInfo, others: Sequence[int]) -> set[int]:
    """Those of some other documents that link to a document, or to which it links."""
    stored = reader.links.of_documents([document.id, *others])
    links = [link for link in stored if link.collection == document.collection]
    linked = set()
    for link, target in resolved(reader, document.collection, links):
        if link.document_id == document.id and target.document_id is not None:
            linked.add(target.document_id)
        elif target.document_id == document.id:
            linked.add(link.document_id)
    return linked.intersection(others)


def neighbourhood(
    reader: Reader, document: DocumentInfo, *, steps: int, most: int
) -> Neighbourhood:
    """
    The documents at most ``steps`` links away in either direction, and the links among them.

    Args:
        most: At most so many documents; of those of a step the ones with most links stay.
    """
    chosen = {document.id: 0}
    links: dict[tuple[int, int], None] = {}
    left_out, frontier = set[int](), [document]
    for step in range(1, steps + 1):
        near = Counter[int]()
        for pair in _links_of(reader, document.collection, frontier):
            links[pair] = None
            near.update(each for each in pair if each not in chosen)
        nearest = sorted(near, key=lambda each: (-near[each], each))
        room = max(0, most - len(chosen))
        left_out.update(nearest[room:])
        chosen |= dict.fromkeys(nearest[:room], step)
        frontier = reader.documents.by_ids(nearest[:room])
    links |= dict.fromkeys(_links_from(reader, document.collection, frontier))
    places = {each: place for place, each in enumerate(chosen)}
    tags = reader.tags.of_documents(list(chosen))
    return Neighbourhood(
        tuple(
            NeighbourNote(each.file, each.title, chosen[each.id], tuple(tags.get(each.id, ())))
            for each in reader.documents.by_ids(list(chosen))
        ),
        tuple(
            (places[source], places[target])
            for source, target in links
            if source in places and target in places and source != target
        ),
        len(left_out),
    )


def _links_from(
    reader: Reader, collection: str, documents: Sequence[DocumentInfo]
) -> Iterator[tuple[int, int]]:
    """The first thousands of links in some documents to others, as ids; some come twice."""
    stored = reader.links.of_documents([each.id for each in documents])[:LINKS_AT_ONCE]
    for link, target in resolved(reader, collection, stored):
        if target.document_id is not None:
            yield link.document_id, target.document_id


def _links_of(
    reader: Reader, collection: str, documents: Sequence[DocumentInfo]
) -> Iterator[tuple[int, int]]:
    """
    The links from and to some documents of a collection, as ids of documents; some come twice.

    Of a note that thousands link to, the first thousands are read.
    """
    yield from _links_from(reader, collection, documents)
    ids = {each.id for each in documents}
    keys = {key for each in documents for key in link_keys_to(each.path)}
    stored = reader.links.to_keys(collection, sorted(keys), limit=LINKS_AT_ONCE)
    for link, target in resolved(reader, collection, stored):
        if target.document_id in ids:
            yield link.document_id, target.document_id


def resolved(
    reader: Reader,
    collection: str,
    links: Iterable[StoredLink],
    *,
    check_sections: bool = False,
) -> Iterator[tuple[StoredLink, LinkTarget]]:
    """Links of one collection, each with what it leads to; thousands are resolved at a time."""
    targets = LinkTargets(reader, collection)
    remaining = iter(links)
    while batch := list(islice(remaining, LINKS_AT_ONCE)):
        yield from zip(batch, targets.resolve(batch, check_sections=check_sections), strict=True)


def written_target(link: StoredLink) -> str:
    """The target as it is written, with its heading or block."""
    heading = f"#{link.heading}" if link.heading else ""
    block = f"#^{link.block}" if link.block else ""
    return f"{link.target}{heading}{block}"


class _Lines:
    """Lines of documents; each text is split once while links of the same document follow."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._document_id: int | None = None
        self._lines: list[str] = []

    def around(self, link: StoredLink) -> str:
        """The line of a link; of a long line the part around the link."""
        if link.document_id != self._document_id:
            self._lines = split_lines(self._reader.documents.text(link.document_id))
            self._document_id = link.document_id
        line = self._lines[link.line - 1] if link.line <= len(self._lines) else ""
        line = line.strip()
        if len(line) <= MAX_LINE:
            return line
        at = max(0, line.find(link.target))
        start = max(0, min(at - MAX_LINE // 3, len(line) - MAX_LINE))
        end = start + MAX_LINE
        return f"{'…' if start else ''}{line[start:end]}{'…' if end < len(line) else ''}"
