"""Links that lead nowhere, and documents to which no link leads."""

from __future__ import annotations

import posixpath
from typing import TYPE_CHECKING

from qmd.parse.formats import format_of
from qmd.search.graph.links import resolved, written_target
from qmd.search.lookup.similar import NearestNames
from qmd.system import cancellation
from qmd.values import Filters
from qmd.values.graph import BrokenLink, BrokenLinks, MissingPart, Orphan, Orphans
from qmd.values.names import NOTE_SUFFIXES, link_keys_to, link_path

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from qmd.search.lookup.link_targets import LinkTarget
    from qmd.store import Reader
    from qmd.store.sql.graph import KeyedDocument
    from qmd.store.sql.links import StoredLink


def broken_links(reader: Reader, *, collection: str | None = None, limit: int) -> BrokenLinks:
    """
    The links that lead nowhere, by file and line.

    The time grows with the number of links. Links of the two usual forms, a bare name and the path
    from the root, are checked without resolving them.

    Raises:
        CollectionNotFoundError.
    """
    shown: list[BrokenLink] = []
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
    return BrokenLinks(tuple(shown), total)


def _broken(reader: Reader, collection: str) -> Iterator[tuple[StoredLink, LinkTarget]]:
    paths = reader.graph.file_paths(collection)
    links = (
        link for link in reader.graph.doubtful_links(collection) if not _is_at_its_path(link, paths)
    )
    for link, target in resolved(reader, collection, links, check_sections=True):
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


def _describe(link: StoredLink, target: LinkTarget, nearest: NearestNames) -> BrokenLink:
    file = f"{link.collection}/{link.path}"
    written = written_target(link)
    if target.path is not None:
        place = f"{link.collection}/{target.path}"
        return BrokenLink(file, link.line, link.kind, written, "section", place)
    path = link_path(link.kind, link.target) or ""
    suffix = posixpath.splitext(path)[1].lower()
    is_note = suffix in ("", *NOTE_SUFFIXES) or " " in suffix
    missing: MissingPart = "note" if is_note else "attachment"
    return BrokenLink(file, link.line, link.kind, written, missing, nearest.to(path))


def orphans(reader: Reader, *, collection: str | None = None, limit: int) -> Orphans:
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
    return Orphans(tuple(map(Orphan, shown)), len(ids))


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
        for link, target in resolved(reader, collection, links)
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
