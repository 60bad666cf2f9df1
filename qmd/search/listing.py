"""Lists documents instead of ranking them: sorted by what they say, tasks, photos."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, timezone
from difflib import get_close_matches
from typing import TYPE_CHECKING

from qmd.engine_text import engine_text
from qmd.errors import InputError, NotFoundError
from qmd.parse.formats import is_photo
from qmd.search import query
from qmd.search.query import moment
from qmd.store.sql.documents import Order
from qmd.store.sql.properties import TaskFilter
from qmd.system import clock
from qmd.values import DocumentInfo, Filters
from qmd.values.documents import PRIORITIES, ListedTask, TaskList, TaskStatus
from qmd.values.graph import RecentChange, RecentChanges
from qmd.values.photos import ListedPhoto, PhotoChoices, PhotoFilter, PhotoList
from qmd.values.properties import MAX_VALUE, fold_key, parse_filter
from qmd.values.search import LEAST_DEPTH

if TYPE_CHECKING:
    from qmd.search.candidates import Candidate
    from qmd.store import Reader, Selection
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
        else "GET /properties and the tool properties list what there is; in the shell"
        " 'qmd properties' does."
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
        since: A span such as ``7d`` or a date, as `qmd.search.query`; None for any time.

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
    return abs(clock.parse(document.modified) - clock.parse(revision.created)) <= _AT_ONCE


_OPEN: tuple[TaskStatus, ...] = ("open", "doing")
_DONE: tuple[TaskStatus, ...] = ("done", "cancelled")
#: How many days from today the words reach.
_AHEAD = {
    **dict.fromkeys(("overdue", "逾期", "过期"), -1),
    **dict.fromkeys(("today", "今天"), 0),
    **dict.fromkeys(("tomorrow", "明天"), 1),
    **dict.fromkeys(("week", "一周"), 7),
    **dict.fromkeys(("month", "一个月"), 30),
}
_HINT = "Write overdue, today, tomorrow, week, month, none, 3d, 2026-12 or 2026-12-01."


def task_list(
    reader: Reader,
    *,
    statuses: Sequence[TaskStatus],
    due: str | None,
    tags: Sequence[str],
    collection: str | None,
    limit: int,
    today: date,
) -> TaskList:
    """
    The tasks of the documents of a collection, or of all.

    Raises:
        CollectionNotFoundError: There is no such collection.
        InputError: ``due`` is no day.
    """
    selection = reader.select(Filters(collections=(collection,) if collection else ()))
    names = [tag.strip().lstrip("#").strip("/").lower() for tag in tags]
    which = _due_by(TaskFilter(statuses, names), due, today)
    listed = reader.tasks.listed(selection, which, limit=limit)
    infos = {each.id: each for each in reader.documents.by_ids([number for number, _ in listed])}
    return TaskList(
        tuple(
            ListedTask(
                infos[number],
                task.line,
                task.text,
                task.status,
                due=task.due,
                priority=PRIORITIES[task.priority - 1] if task.priority else None,
                scheduled=task.scheduled,
                start=task.start,
                finished=task.finished,
                tags=task.tags,
            )
            for number, task in listed
        ),
        reader.tasks.count(selection, which),
    )


def task_statuses(*, is_open: bool, done: bool) -> tuple[TaskStatus, ...]:
    """What is listed: tasks that are open, done or both; those that are open without either."""
    if done:
        return (*_OPEN, *_DONE) if is_open else _DONE
    return _OPEN


def _due_by(which: TaskFilter, due: str | None, today: date) -> TaskFilter:
    """
    The filter with the last day when tasks are due.

    Raises:
        InputError.
    """
    text = (due or "").strip().lower()
    if not text:
        return which
    if text in ("none", "any"):
        return which._replace(has_due=text == "any")
    ahead = _AHEAD.get(text)
    span = query.span(text)
    try:
        if ahead is not None:
            last = today + timedelta(days=ahead)
        elif span is not None:
            last = today + span
        elif len(text) == len("2026-12"):
            first = date.fromisoformat(f"{text}-01")
            last = (first + timedelta(days=31)).replace(day=1) - timedelta(days=1)
        else:
            last = date.fromisoformat(query.filter_date(text)[:10])
    except (InputError, ValueError, OverflowError):
        raise InputError(
            engine_text("No day is written so: {text}", text=repr(text[:60])), hint=_HINT
        ) from None
    return which._replace(last=last.isoformat())


_KINDS = ("JPG", "PNG", "HEIC")
_LATEST_FIRST = Order("date", descending=True)
#: The photos whose values are counted, and among which the one before and after is looked for.
MAX_COUNTED = 20_000
_MAX_CHOICES = 40  # values of each kind


def list_photos(reader: Reader, chosen: PhotoFilter, *, limit: int, offset: int) -> PhotoList:
    """
    Raises:
        InputError: The date is none.
    """
    selection = _selection(reader, chosen)
    infos = reader.documents.below(
        None, selection=selection, order=_LATEST_FIRST, limit=limit, offset=offset
    )
    photos = _listed(reader, [info for info in infos if is_photo(info.path)])
    return PhotoList(photos, reader.documents.count_selected(selection), _choices(reader))


def has_photos(reader: Reader) -> bool:
    selection = _selection(reader, PhotoFilter())
    return bool(reader.documents.below(None, selection=selection, limit=1))


def photos_beside(reader: Reader, file: str, chosen: PhotoFilter) -> tuple[str, str]:
    """The photos before and after one in the list; "" where there is none."""
    infos = reader.documents.below(
        None, selection=_selection(reader, chosen), order=_LATEST_FIRST, limit=MAX_COUNTED
    )
    files = ["", *(info.file for info in infos if is_photo(info.path)), ""]
    if file not in files:
        return "", ""
    at = files.index(file)
    return files[at - 1], files[at + 1]


def _selection(reader: Reader, chosen: PhotoFilter) -> Selection:
    conditions = [
        f"{key}:{value}"
        for key, value in (
            ("people", chosen.person),
            ("tags", chosen.tag),
            ("location", chosen.place),
            ("date", chosen.date),
        )
        if value
    ]
    kinds = [parse_filter(f"kind:{kind}")[0] for kind in _KINDS]
    return reader.select(Filters(properties=tuple(conditions)), either=[kinds])


def _listed(reader: Reader, infos: Sequence[DocumentInfo]) -> tuple[ListedPhoto, ...]:
    dates = reader.properties.written("date", [info.id for info in infos])
    return tuple(
        ListedPhoto(info.file, info.title, info.docid, next(iter(dates.get(info.id, ())), ""))
        for info in infos
    )


def _choices(reader: Reader) -> PhotoChoices:
    infos = reader.documents.below(
        None, selection=_selection(reader, PhotoFilter()), limit=MAX_COUNTED
    )
    ids = [info.id for info in infos if is_photo(info.path)]

    def values(key: str) -> Iterable[str]:
        return (value for each in reader.properties.written(key, ids).values() for value in each)

    years = Counter(value[:4] for value in values("date"))
    return PhotoChoices(
        people=_most(Counter(values("people"))),
        tags=_most(Counter(values("tags"))),
        places=_most(Counter(values("location"))),
        years=tuple(sorted(years.items(), reverse=True)[:_MAX_CHOICES]),
    )


def _most(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MAX_CHOICES])
