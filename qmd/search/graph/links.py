"""The links of notes: those in a note, those that lead to it, and those that lead nowhere."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from qmd.parse.formats import format_of
from qmd.parse.lines import split_lines
from qmd.search.lookup.link_targets import LinkTarget, LinkTargets
from qmd.search.lookup.similar import NearestNames
from qmd.store.sql.links import KeyedDocument, StoredLink
from qmd.system import cancellation
from qmd.values import Filters, graph
from qmd.values.text import NOTE_SUFFIXES, link_key, link_keys_to, link_path

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentInfo
    from qmd.values.documents import Link


#: The most characters of a line that a backlink shows.
MAX_LINE = 240
#: Links that are resolved in one call.
LINKS_AT_ONCE = 5000
_NO_DOCUMENT = -1  # the id of a note that is not stored


def links_in(reader: Reader, document: DocumentInfo, *, limit: int) -> graph.NoteLinks:
    """The first ``limit`` links in a note, in the order of its text, and where each leads."""
    stored = reader.links.of_documents([document.id])
    shown = stored[:limit]
    targets = LinkTargets(reader, document.collection).resolve(shown, check_sections=True)
    return graph.NoteLinks(document.file, _note_links(shown, targets), len(stored))


def targets_of(
    reader: Reader, collection: str, path: str, links: Sequence[Link], *, check_sections: bool
) -> tuple[graph.NoteLink, ...]:
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


def _note_links(
    links: Sequence[StoredLink], targets: Sequence[LinkTarget]
) -> tuple[graph.NoteLink, ...]:
    return tuple(
        graph.NoteLink(
            link.line,
            link.kind,
            written_target(link),
            target.kind,
            None if target.path is None else f"{link.collection}/{target.path}",
            link.relation,
        )
        for link, target in zip(links, targets, strict=True)
    )


def backlinks_to(reader: Reader, document: DocumentInfo, *, limit: int) -> graph.Backlinks:
    """The first ``limit`` links in other notes that lead to a note, by file and line."""
    incoming = links_to(reader, document)
    shown = incoming[:limit]
    lines = _Lines(reader)
    links = tuple(
        graph.Backlink(
            f"{link.collection}/{link.path}",
            link.line,
            lines.around(link),
            link.kind,
            written_target(link),
            link.relation,
        )
        for link in shown
    )
    return graph.Backlinks(document.file, links, len(incoming))


def links_to(reader: Reader, document: DocumentInfo) -> list[StoredLink]:
    """All links in other notes that lead to a note, by path and the order of the text."""
    candidates = reader.links.to_keys(document.collection, link_keys_to(document.path))
    return [
        link
        for link, target in resolved_links(reader, document.collection, candidates)
        if target.document_id == document.id and link.document_id != document.id
    ]


def linked_documents(reader: Reader, document: DocumentInfo, others: Sequence[int]) -> set[int]:
    """Those of some other documents that link to a document, or to which it links."""
    stored = reader.links.of_documents([document.id, *others])
    links = [link for link in stored if link.collection == document.collection]
    linked = set()
    for link, target in resolved_links(reader, document.collection, links):
        if link.document_id == document.id and target.document_id is not None:
            linked.add(target.document_id)
        elif target.document_id == document.id:
            linked.add(link.document_id)
    return linked.intersection(others)


def neighbourhood(
    reader: Reader, document: DocumentInfo, *, steps: int, most: int
) -> graph.Neighbourhood:
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
    return graph.Neighbourhood(
        tuple(
            graph.NeighbourNote(
                each.file, each.title, chosen[each.id], tuple(tags.get(each.id, ()))
            )
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
    for link, target in resolved_links(reader, collection, stored):
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
    for link, target in resolved_links(reader, collection, stored):
        if target.document_id in ids:
            yield link.document_id, target.document_id


def resolved_links(
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


def broken_links(reader: Reader, *, collection: str | None = None, limit: int) -> graph.BrokenLinks:
    """
    The links that lead nowhere, by file and line.

    The time grows with the number of links. Links of the two usual forms, a bare name and the path
    from the root, are checked without resolving them.

    Raises:
        CollectionNotFoundError.
    """
    shown: list[graph.BrokenLink] = []
    total = 0
    copies = _copies(reader, collection)
    for name in collection_names(reader, collection):
        nearest = NearestNames(reader, name)
        for link, target in _broken(reader, name):
            if link.document_id in copies:
                continue
            total += 1
            if len(shown) < limit:
                shown.append(_describe(link, target, nearest))
    return graph.BrokenLinks(tuple(shown), total)


def _broken(reader: Reader, collection: str) -> Iterator[tuple[StoredLink, LinkTarget]]:
    paths = reader.graph.file_paths(collection)
    links = (
        link for link in reader.graph.doubtful_links(collection) if not _is_at_its_path(link, paths)
    )
    for link, target in resolved_links(reader, collection, links, check_sections=True):
        if target.kind in ("nothing", "section missing"):
            yield link, target


def _is_at_its_path(link: StoredLink, paths: set[str]) -> bool:
    """Whether a file is just at the path that a link without a heading or block names."""
    path = link_path(link.kind, link.target)
    if link.heading or link.block or not path:
        return not (link.heading or link.block)
    if path.startswith("/"):
        path = path[1:]
    elif path.startswith(("./", "../")):
        path = posixpath.normpath(posixpath.join(posixpath.dirname(link.path), path))
    return path in paths or any(path + suffix in paths for suffix in NOTE_SUFFIXES)


def _describe(link: StoredLink, target: LinkTarget, nearest: NearestNames) -> graph.BrokenLink:
    file = f"{link.collection}/{link.path}"
    written = written_target(link)
    if target.path is not None:
        place = f"{link.collection}/{target.path}"
        return graph.BrokenLink(file, link.line, link.kind, written, "section", place)
    path = link_path(link.kind, link.target) or ""
    suffix = posixpath.splitext(path)[1].lower()
    is_note = suffix in ("", *NOTE_SUFFIXES) or " " in suffix
    missing: graph.MissingPart = "note" if is_note else "attachment"
    return graph.BrokenLink(file, link.line, link.kind, written, missing, nearest.to(path))


def orphans(reader: Reader, *, collection: str | None = None, limit: int) -> graph.Orphans:
    """
    The documents to which no other document links, by collection and path.

    Embeds count as links. Photos, PDFs and other files that are no notes are left out.

    Raises:
        CollectionNotFoundError.
    """
    ids: list[int] = []
    copies = _copies(reader, collection)
    for name in collection_names(reader, collection):
        ids += (each for each in _unlinked(reader, name) if each not in copies)
    shown = reader.documents.by_ids(ids[:limit])
    return graph.Orphans(tuple(map(graph.Orphan, shown)), len(ids))


def _unlinked(reader: Reader, collection: str) -> list[int]:
    """
    The ids of the documents of a collection that no other document links to, by path.

    Most documents are settled by their first link; only of the others all links are resolved.
    """
    left = [
        document
        for document in reader.graph.without_plain_links(collection)
        if format_of(document.path).is_note
    ]
    first = reader.graph.one_link_to_each(collection, _link_keys(left))
    left = _without_targets(reader, collection, left, first)
    every = reader.links.to_keys(collection, _link_keys(left))
    left = _without_targets(reader, collection, left, every)
    return [document.document_id for document in left]


def _link_keys(documents: Sequence[KeyedDocument]) -> set[str]:
    """The keys of all links that may lead to one of these documents."""
    return {key for document in documents for key in link_keys_to(document.path)}


def _without_targets(
    reader: Reader,
    collection: str,
    documents: Sequence[KeyedDocument],
    links: Sequence[StoredLink],
) -> list[KeyedDocument]:
    """Those of the documents to which none of these links leads from another document."""
    cancellation.check()
    linked = {
        target.document_id
        for link, target in resolved_links(reader, collection, links)
        if target.document_id != link.document_id
    }
    return [document for document in documents if document.document_id not in linked]


def _copies(reader: Reader, collection: str | None) -> set[int]:
    """The documents of files that a collection further inside has, too, if all are listed."""
    each_once = reader.select(Filters())
    if collection is not None or each_once.is_all:
        return set()
    every = reader.documents.selected_ids(reader.all_documents)
    return {*every} - {*reader.documents.selected_ids(each_once)}


def collection_names(reader: Reader, collection: str | None) -> list[str]:
    """One collection, which must exist, or (None) all of them."""
    if collection is not None:
        return [reader.collections.by_name(collection).name]
    return sorted(each.name for each in reader.collections.all())
