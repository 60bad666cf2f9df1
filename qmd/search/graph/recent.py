"""What changed last, and who wrote it."""

from __future__ import annotations

import os
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

from qmd.search.query.dates import moment
from qmd.system import clock
from qmd.values import Filters
from qmd.values.graph import RecentChange, RecentChanges

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.recent import RecentDocument
    from qmd.values import Revision

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
