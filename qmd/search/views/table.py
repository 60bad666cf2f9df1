"""Makes the table of a view: which notes, in which order, and what their cells say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from qmd.errors import InputError
from qmd.parse.links import make_link
from qmd.search import graph
from qmd.search.views.computing import Computer, Kind, ViewContext, ViewNote, order_of, text_of
from qmd.search.views.expressions import Expression
from qmd.search.views.written import SortKey, ViewQuery
from qmd.system import cancellation, clock
from qmd.values import Filters
from qmd.values.graph import View, ViewRow
from qmd.values.properties import fold_key

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.documents import ListedFacts

#: So many notes a view looks at; of more, it must name a folder or a tag.
MAX_DOCUMENTS = 100_000

_MAX_CELL = 500  # characters
_MAX_TABLE = 300_000  # characters of all cells


def make_view(
    reader: Reader,
    query: ViewQuery,
    *,
    collection: str | None,
    this: str | None,
    hits: Sequence[str] | None,
    limit: int,
    now: datetime,
) -> View:
    """
    The table of a view.

    Args:
        collection: The only one with its notes; None for all.
        this: ``collection/path`` of the note that holds the view; None without one.
        hits: The notes that its query finds, best first; None for all notes.
        now: Local.

    Raises:
        CollectionNotFoundError.
        InputError: The view asks for something that is not known, or for too much.
    """

    def links(document_id: int) -> list[str]:
        return [each.target for each in reader.links.of_documents([document_id])]

    this_note = _note_named(reader, this)
    linking = _linking(reader, collection)
    context = ViewContext(now, this_note, linking, links, query.formulas)
    computer = Computer(context)
    notes = _selected(reader, query, collection, computer, hits)
    notes = _sorted(notes, query, computer)
    total = len(notes)
    if query.limit is not None:
        notes = notes[: query.limit]
        total = len(notes)
    rows: list[ViewRow] = []
    room = _MAX_TABLE
    for note in notes[:limit]:
        cells = tuple(_cell(computer.value(column.value, note)) for column in query.columns)
        group = "" if query.group is None else _cell(computer.value(query.group, note)) or "–"
        room -= sum(map(len, cells))
        if room < 0:
            break
        rows.append(ViewRow(note.file, cells, group))
    return View(query.name, tuple(each.label for each in query.columns), tuple(rows), total)


def _selected(
    reader: Reader,
    query: ViewQuery,
    collection: str | None,
    computer: Computer,
    hits: Sequence[str] | None,
) -> list[ViewNote]:
    """The notes that meet all conditions: in the order of the hits, else by path."""
    filters = _filters(reader, query.conditions, collection)
    selection = reader.select(filters)
    if reader.documents.count_selected(selection) > MAX_DOCUMENTS:
        raise InputError(
            "There are too many notes for a view.", hint="Name a folder or a tag to begin with."
        )
    ranks = None if hits is None else {file: at for at, file in enumerate(hits)}
    notes = []
    for number, facts in enumerate(reader.documents.listed_facts(selection)):
        if number % 100 == 0:
            cancellation.check()
        if ranks is not None and f"{facts.collection}/{facts.path}" not in ranks:
            continue
        note = _note(facts)
        if all(computer.value(condition, note) for condition in query.conditions):
            notes.append(note)
    if ranks is not None:
        notes.sort(key=lambda note: ranks[note.file])
    return notes


def _filters(reader: Reader, conditions: Iterable[Expression], collection: str | None) -> Filters:
    """What of the conditions the store can check; they are checked again for each note."""
    tags: list[str] = []
    path = None
    for node in (each for condition in conditions for each in _conjuncts(condition)):
        if node.kind != "method" or len(node.parts) != 2 or node.parts[1].kind != "literal":
            continue
        text = str(node.parts[1].value)
        if node.value == "hastag":
            tags.append(text.lstrip("#"))
        elif node.value == "infolder" and collection is not None:
            folder = text.strip("/")
            if folder and reader.links.has_folder(collection, folder):
                path = f"{collection}/{folder}"
    return Filters(
        collections=(collection,) if collection else (),
        path=path,
        tags=tuple(filter(None, tags[:10])),
    )


def _conjuncts(node: Expression) -> Iterable[Expression]:
    if node.kind == "binary" and node.value == "&&":
        for part in node.parts:
            yield from _conjuncts(part)
    else:
        yield node


def _sorted(notes: list[ViewNote], query: ViewQuery, computer: Computer) -> list[ViewNote]:
    """
    By the last key first, since sorting keeps the order of equals; groups stand together, the
    notes without a value at the end.
    """
    for key in reversed(query.sort):
        notes = _by(notes, key, computer)
    if query.group is not None:
        if not query.sort:
            return _by(notes, SortKey(query.group, descending=False), computer)
        groups: dict[str, list[ViewNote]] = {}
        for note in notes:
            groups.setdefault(text_of(computer.value(query.group, note)), []).append(note)
        without = groups.pop("", [])
        notes = [note for group in (*groups.values(), without) for note in group]
    return notes


def _by(notes: list[ViewNote], key: SortKey, computer: Computer) -> list[ViewNote]:
    """Those without a value come last in either direction."""
    ordered = [(order_of(computer.value(key.value, note)), note) for note in notes]
    empty = [note for (kind, _), note in ordered if kind == Kind.NOTHING]
    full = [each for each in ordered if each[0][0] != Kind.NOTHING]
    full.sort(key=lambda each: each[0], reverse=key.descending)
    return [note for _, note in full] + empty


def _note(facts: ListedFacts) -> ViewNote:
    properties: Mapping[str, Any] = facts.properties
    return ViewNote(
        facts.id,
        facts.collection,
        facts.path,
        facts.title,
        clock.parse(facts.modified).astimezone().replace(tzinfo=None),
        facts.bytes,
        facts.date,
        {fold_key(key): value for key, value in properties.items()},
        facts.tags,
    )


def _note_named(reader: Reader, file: str | None) -> ViewNote | None:
    if file is None:
        return None
    collection, _, path = file.partition("/")
    document = reader.documents.by_path(collection, path)
    if document is None:
        return None
    return next(map(_note, reader.documents.listed_facts_of([document.id])), None)


def _linking(reader: Reader, collection: str | None) -> Any:
    """A function that gives the ids of the notes that link to a note."""

    @lru_cache(maxsize=100)
    def linking(target: str) -> frozenset[int]:
        names = [each.name for each in reader.collections.all()]
        ids: set[int] = set()
        for name in names if collection is None else [collection]:
            link = make_link("wikilink", target, None, 1)
            (resolved,) = graph.links.targets_of(reader, name, "", [link], check_sections=False)
            if resolved.file is None or resolved.state != "document":
                continue
            document = reader.documents.by_path(name, resolved.file.partition("/")[2])
            if document is not None:
                ids.update(each.document_id for each in graph.links.links_to(reader, document))
        return frozenset(ids)

    return linking


def _cell(value: Any) -> str:
    text = " ".join(text_of(value).split())
    return text if len(text) <= _MAX_CELL else f"{text[: _MAX_CELL - 1]}…"
