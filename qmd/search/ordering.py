"""Lists, sorts and groups documents by what their properties and times say, instead of by rank."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from difflib import get_close_matches
from typing import TYPE_CHECKING

from qmd.engine_text import engine_text
from qmd.errors import NotFoundError
from qmd.search.query.dates import moment
from qmd.store.sql.documents import Order
from qmd.system import clock
from qmd.values import DocumentInfo, Filters
from qmd.values.conditions import parse_filter
from qmd.values.graph import RecentChange, RecentChanges
from qmd.values.properties import MAX_VALUE, fold_key
from qmd.values.search import LEAST_DEPTH

if TYPE_CHECKING:
    from qmd.search.candidates import Candidate
    from qmd.store import Reader
    from qmd.store.sql.recent import RecentDocument
    from qmd.values import Revision, SearchRequest


def parse_order(reader: Reader, sort: str) -> Order:
    """
    Read an order: ``date``, ``title`` or a property, with ``-`` in front for descending order.

    Raises:
        NotFoundError: No document has the property.
    """
    name = sort.strip()
    descending = name.startswith(("-", "－"))
    name = name.lstrip("-－+ ")
    if name == "date":
        return Order("date", descending=descending)
    if name == "title":
        return Order("title", descending=descending)
    return Order("property", existing_key(reader, name), descending)


def existing_key(reader: Reader, name: str) -> str:
    """The key that a name means. Raises NotFoundError: No document has such a property."""
    key = fold_key(name)
    if key and reader.properties.existing_keys([key]):
        return key
    keys = [summary.key for summary in reader.properties.summaries(reader.all_documents)]
    near = get_close_matches(key, keys, n=3)
    hint = (
        engine_text("Did you mean: {names}", names=", ".join(near))
        if near
        else "'qmd properties' lists what there is."
    )
    raise NotFoundError(
        engine_text("No document has the property {name}.", name=f"{name!r}"), hint=hint
    )


def missing_property(reader: Reader, filters: Sequence[str]) -> str | None:
    """Says which filter is by a property that no document has; None if none is."""
    for text in filters:
        condition, is_negated = parse_filter(text)
        try:
            if not is_negated:
                existing_key(reader, condition.key)
        except NotFoundError as error:
            return f"{error} {error.hint}"
    return None


def to_judge(
    reader: Reader, request: SearchRequest, candidates: Sequence[Candidate]
) -> list[Candidate]:
    """
    The candidates that decide what a sorted reply shows, best first: the first of the order, up to
    the limit, and the best, with which all scores are compared.

    With a minimum of score or relevance, any may be dropped, so all of them decide.

    Raises:
        NotFoundError: As `parse_order`.
    """
    order = parse_order(reader, request.sort or "")
    if request.limit is None or request.min_score or request.min_relevance:
        return list(candidates)
    document_ids = [each.document_id for each in candidates]
    first = reader.documents.ordered_ids(document_ids, order)[: request.limit]
    decisive = {*first, *document_ids[:LEAST_DEPTH]}
    return [each for each in candidates if each.document_id in decisive]


def arranged(
    reader: Reader, request: SearchRequest, judged: Sequence[Candidate]
) -> tuple[list[Candidate], dict[int, str]]:
    """
    Sort and group the hits of a reply.

    Args:
        judged: Best first.

    Returns:
        At most ``request.limit`` hits, and the groups of documents by id.

    Raises:
        NotFoundError: As `parse_order`; or no document has the property to group by.
    """
    by_id = {each.document_id: each for each in judged}
    ids = list(by_id)
    if request.sort is not None:
        ids = reader.documents.ordered_ids(ids, parse_order(reader, request.sort))
    ids = ids[: request.limit]
    names: dict[int, str] = {}
    if request.group_by is not None:
        names = group_names(reader, existing_key(reader, request.group_by), ids)
        ids = in_groups(ids, names)
    return [by_id[document_id] for document_id in ids], names


def group_names(reader: Reader, key: str, document_ids: Sequence[int]) -> dict[int, str]:
    """
    Document id → the value that it is grouped by; no entry without a value.

    A list is one value: its elements with commas between them.
    """
    values = reader.properties.written(key, document_ids)
    names = {document_id: ", ".join(filter(None, each)) for document_id, each in values.items()}
    return {document_id: name[:MAX_VALUE] for document_id, name in names.items() if name}


def in_groups(document_ids: Sequence[int], names: dict[int, str]) -> list[int]:
    """
    Put those of one group together.

    Groups are in the order of their first documents; those that are in no group come last. Letter
    case does not tell groups apart.
    """
    groups: dict[str, list[int]] = {}
    for document_id in document_ids:
        groups.setdefault(names.get(document_id, "").casefold(), []).append(document_id)
    ungrouped = groups.pop("", [])
    return [each for group in groups.values() for each in group] + ungrouped


def list_documents(
    reader: Reader,
    collection: str | None,
    folder: str,
    *,
    filters: Filters,
    sort: str | None,
    group_by: str | None,
    limit: int | None,
    offset: int,
) -> list[DocumentInfo]:
    """As `qmd.kb.documents.DocumentMethods.documents`, for the documents below a folder."""
    key = None if group_by is None else existing_key(reader, group_by)
    order = None if sort is None else parse_order(reader, sort)
    if order is None and key is not None:
        order = Order("property", key)
    infos = reader.documents.below(
        collection,
        folder,
        # Who names a collection asks for all that it has.
        selection=reader.select(filters, one_per_file=collection is None),
        order=order,
        limit=limit,
        offset=offset,
    )
    if key is None:
        return infos
    by_id = {info.id: info for info in infos}
    names = group_names(reader, key, list(by_id))
    return [
        replace(by_id[document_id], group=names.get(document_id))
        for document_id in in_groups(list(by_id), names)
    ]


#: What the time of a change calls a program that is not a tool of qmd.
DISK = "disk"
#: A photo, and a content in another encoding, has another hash than its text. Its tool is told by
#: the time instead: the writer records a change right before the file gets its time.
_AT_ONCE = timedelta(seconds=2)


def recent_changes(
    reader: Reader, *, since: str | None = None, collection: str | None = None, limit: int
) -> RecentChanges:
    """
    The documents whose files changed last, the latest first.

    Args:
        since: A span such as ``7d`` or a date, as `qmd.search.query.dates`; None for any time.

    Raises:
        CollectionNotFoundError.
        InputError: ``since`` is neither a span nor a date.
    """
    if collection is not None:
        ids = [reader.collections.by_name(collection).id]
    else:
        ids = [each.id for each in reader.collections.all()]
    start = None if since is None else moment(since, datetime.now(timezone.utc))
    # Of a file in several collections, the document of the innermost one is listed.
    selection = reader.select(Filters(), one_per_file=collection is None)
    documents = reader.recent.latest(ids, selection, since=start, limit=limit)
    changes = tuple(_change(reader, document) for document in documents)
    return RecentChanges(changes, reader.recent.count_since(ids, selection, start))


def _change(reader: Reader, recent: RecentDocument) -> RecentChange:
    """A document with the tool whose change left the file as it is now, if a tool did."""
    path = os.path.realpath(recent.absolute_path)
    for revision in reader.revisions.history(path):
        if revision.path == path:  # else it was moved away
            if _is_its_content(reader, revision, recent):
                return RecentChange(recent.info, revision.tool, revision.session)
            break
    return RecentChange(recent.info, DISK)


def _is_its_content(reader: Reader, revision: Revision, recent: RecentDocument) -> bool:
    """Whether the document shows the content that this newest change of the file left."""
    document = recent.info
    is_text = revision.kind != "metadata" and recent.encoding == "utf-8"
    # With a byte order mark, the file is longer than its text and has another hash.
    if is_text and document.bytes == reader.documents.text_bytes(document.id):
        return revision.hash_after == recent.hash
    return _is_close(revision.created, document.modified)


def _is_close(created: str, modified: str) -> bool:
    difference = _time(modified) - _time(created)
    return abs(difference) <= _AT_ONCE


def _time(stored: str) -> datetime:
    return clock.parse(stored)
