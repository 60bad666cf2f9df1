"""Filters and match expressions select what a plain reading of them selects, in every store."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timezone
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.store import Store, Writer, open_store
from qmd.store.full_text import Combined, Expression, Phrase, all_of, any_of, but_not
from qmd.values import FileState, Filters
from qmd.values.location import DatabaseLocation
from tests.support.postgres import PostgresServer

PATHS = ["a.md", "b", "b/a.md", "b/b/a.md", "b0", "b-c/a.md", "notes/a.md", "notes", "B/a.md"]
TAGS = [(), ("x",), ("x/y",), ("x0", "z"), ("x-y",), ("z", "x/y/z")]
DATES = [
    None,
    "2025-03-01",
    "2025-02-28",
    "2025-03-01T06:00:00+08:00",
    "2025-03-01T00:30:00",
    "2025-02-28T23:30:00-08:00",
]
SAVED = datetime(2025, 3, 1, 12, tzinfo=timezone.utc)


class Note(NamedTuple):
    collection: str
    path: str
    tags: tuple[str, ...]
    date: str | None


NOTES = [
    Note(collection, path, TAGS[number % len(TAGS)], DATES[number * 5 // 4 % len(DATES)])
    for number, (collection, path) in enumerate(itertools.product(("notes", "b", "c"), PATHS))
]


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Store]:
    """An empty store of each engine."""
    location: DatabaseLocation = tmp_path_factory.mktemp("filters") / "index.sqlite"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres_server")
        location = server.migrated()
    with closing(open_store(location, create=True)) as opened:
        yield opened


@pytest.fixture(scope="module")
def notes(store: Store) -> tuple[Store, dict[int, Note]]:
    """A store with `NOTES`, and the note of each document id."""
    return store, store.write(fill)


def fill(writer: Writer) -> dict[int, Note]:
    collections = {
        name: writer.collections.add(name=name, path=f"/home/{name}", pattern="**", ignore=[]).id
        for name in ("notes", "b", "c")
    }
    by_id = {}
    for note in NOTES:
        front = [f"tags: [{', '.join(note.tags)}]", f"date: {note.date or ''}"]
        data = "\n".join(["---", *front, "---", "word"]).encode()
        state = FileState(len(data), int(SAVED.timestamp()) * 10**9, 1, 1)
        digest = hashlib.sha256(data).hexdigest()
        document = new_document(note.path, parse_document(note.path, data), digest, state)
        by_id[writer.files.put(collections[note.collection], document)] = note
    return by_id


def below(name: str, parent: str) -> bool:
    return name == parent or name.startswith(parent + "/")


def lies_below(note: Note, folder: str) -> bool:
    """As the filter's description has it: with or without the collection in front."""
    folder = folder.removeprefix("qmd://").strip("/")
    return not folder or below(note.path, folder) or below(f"{note.collection}/{note.path}", folder)


def has_tag(note: Note, tag: str) -> bool:
    """The tag or one below it, in any case."""
    return any(below(name, tag.lstrip("#").lower()) for name in note.tags)


def moment(date: str | None) -> datetime:
    read = SAVED if date is None else datetime.fromisoformat(date)
    return read if read.tzinfo else read.replace(tzinfo=timezone.utc)


def is_before(note: Note, limit: str) -> bool:
    """A day is compared with the day that is written, a time with the moment."""
    if len(limit) == 10:
        return (note.date or SAVED.astimezone().isoformat())[:10] < limit
    return moment(note.date) < moment(limit)


folders = st.sampled_from(
    [
        *(None, "", "/", "b", "/b/", "b/b", "b/a.md", "notes/b", "notes/b/a.md", "notes"),
        *("notes/notes", "qmd://notes/b", "qmd://b", "b0", "B", "b-c", "b/b0", "c/b/", "none"),
        *("no\udc80", "b/\udc80"),
    ]
)
tags = st.sampled_from(["x", "x/y", "#x", "z", "y", "x0", "x/", "#x/y/z", "X", "x\udc80"])
dates = st.sampled_from(
    [
        *(None, "2025-02-28", "2025-03-01", "2025-03-02", "2025-03-01T00:30:00+00:00"),
        *("2025-02-28T22:00:00+00:00", "2025-02-28T22:00:01+00:00", "2025-03-01T15:30:00+08:00"),
    ]
)
filters = st.builds(
    Filters,
    collections=st.lists(st.sampled_from(["notes", "b", "c"]), max_size=2).map(tuple),
    path=folders,
    tags=st.lists(tags, max_size=2).map(tuple),
    after=dates,
    before=dates,
)


@given(
    filters,
    st.lists(st.lists(tags, min_size=1, max_size=3), max_size=2),
    st.lists(tags, max_size=2),
    st.sampled_from([0, 30]),
)
def test_filters_select_the_documents_that_satisfy_each_of_them(
    notes: tuple[Store, dict[int, Note]],
    filters: Filters,
    either_tags: list[list[str]],
    no_tags: list[str],
    unknown: int,
) -> None:
    store, by_id = notes
    others = [f"unknown/{number}" for number in range(unknown)]  # many tags are one value
    either = [[*group, *others] for group in either_tags]
    none_of = [*no_tags, *others]
    with store.reading() as reader:
        selection = reader.select(filters, either=either, none_of=none_of)
        selected = set(reader.documents.latest_ids(selection))
        collection_ids = reader.collections.ids(filters.collections)
    assert selected == {
        document_id
        for document_id, note in by_id.items()
        if (not filters.collections or note.collection in filters.collections)
        and (filters.path is None or lies_below(note, filters.path))
        and all(has_tag(note, tag) for tag in filters.tags)
        and all(any(has_tag(note, tag) for tag in any_tags) for any_tags in either_tags)
        and not any(has_tag(note, tag) for tag in no_tags)
        and (filters.after is None or not is_before(note, filters.after))
        and (filters.before is None or is_before(note, filters.before))
    }
    only_collections = not (
        (filters.path and filters.path.strip("/"))
        or filters.tags
        or either
        or none_of
        or filters.after
        or filters.before
    )
    assert selection.is_all == (only_collections and not filters.collections)
    if only_collections:
        assert set(selection.collection_ids or ()) == set(collection_ids)
    else:
        assert selection.collection_ids is None


# --- match expressions ---------------------------------------------------------------

TEXTS = {
    "red.md": "# Red\n\napple pear\n",
    "pear.md": "# Apple tree\n\nred pear apple\n",
    "and.md": "# And\n\nnot or applet\n",
    "deep/apple.md": "# Deep\n\nred red and\n",
    "empty.md": "x",
}
# The title has the file's name, too, where that has other words.
FIELDS = {
    "red.md": {"title": "red", "body": "red apple pear", "path": "red md"},
    "pear.md": {"title": "apple tree pear", "body": "apple tree red pear apple", "path": "pear md"},
    "and.md": {"title": "and", "body": "and not or applet", "path": "and md"},
    "deep/apple.md": {"title": "deep apple", "body": "deep red red and", "path": "deep apple md"},
    "empty.md": {"title": "empty", "body": "x", "path": "empty md"},
}


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Store, dict[int, str]]]:
    """A store with `TEXTS`, and the path of each document id."""

    def fill(writer: Writer) -> dict[int, str]:
        collection = writer.collections.add(name="n", path="/n", pattern="**", ignore=[]).id
        by_id = {}
        for path, text in TEXTS.items():
            data = text.encode()
            digest = hashlib.sha256(data).hexdigest()
            state = FileState(len(data), 10**18, 1, 1)
            document = new_document(path, parse_document(path, data), digest, state)
            by_id[writer.files.put(collection, document)] = path
        return by_id

    path = tmp_path_factory.mktemp("match") / "index.sqlite"
    with closing(open_store(path, create=True)) as store:
        yield store, store.write(fill)


def says(path: str, phrase: Phrase) -> bool:
    """Whether the tokens stand in a row in one of the phrase's fields, or in any."""
    sought = phrase.text.split()
    for name, text in FIELDS[path].items():
        if phrase.fields and name not in phrase.fields:
            continue
        tokens = text.split()
        for start in range(len(tokens) - len(sought) + 1):
            row = tokens[start : start + len(sought)]
            same = row[:-1] == sought[:-1]
            last, sought_last = row[-1], sought[-1]
            if same and (last.startswith(sought_last) if phrase.prefix else last == sought_last):
                return True
    return False


def matches(path: str, expression: Expression) -> bool:
    if isinstance(expression, Phrase):
        return says(path, expression)
    first, *others = (matches(path, part) for part in expression.parts)
    if expression.operator == "but not":
        return first and not any(others)
    return (all if expression.operator == "all" else any)([first, *others])


phrases = st.builds(
    Phrase,
    st.sampled_from(
        ["red", "apple", "app", "pear", "red pear", "pear apple", "and", "not", "or", "deep", "md"]
    ),
    st.booleans(),
    st.sampled_from([(), (), ("title",), ("body",), ("title", "path"), ("body", "path")]),
)
expressions = st.recursive(
    phrases,
    lambda parts: st.one_of(
        st.lists(parts, min_size=1, max_size=3).map(lambda each: all_of(*each)),
        st.lists(parts, min_size=1, max_size=3).map(lambda each: any_of(*each)),
        st.lists(parts, min_size=1, max_size=3).map(lambda each: but_not(*each)),
    ),
    max_leaves=8,
)


@given(expressions)
def test_an_expression_matches_what_its_words_say(
    texts: tuple[Store, dict[int, str]], expression: Expression
) -> None:
    store, by_id = texts
    with store.reading() as reader:
        matched = {by_id[number] for number in reader.full_text.matching_ids(expression)}
    assert matched == {path for path in TEXTS if matches(path, expression)}


def test_one_expression_is_not_combined() -> None:
    phrase = Phrase("red")
    assert all_of(phrase) is any_of(phrase) is but_not(phrase) is phrase
    assert all_of(phrase, phrase) == Combined("all", (phrase, phrase))
