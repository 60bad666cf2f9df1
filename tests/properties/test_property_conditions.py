"""Conditions on properties select what a plain reading of the frontmatter selects."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.search.question import parse_query
from qmd.store import Store, Writer, open_store
from qmd.values import FileState, Filters, NewDocument
from qmd.values.properties import MAX_VALUES

KEYS = ["status", "Rating", "due date", "book", "状态"]
TEXTS = ["draft", "Draft", "Li Lei", "[[People/Li Lei|Lei]]", "4", "4.0", "草稿", "yes", "1.2.3"]
DAYS = ["2026-12-01", "2026-12-31", "2027-01-01", "2025-06-15"]

scalars = (
    st.sampled_from(TEXTS + DAYS)
    | st.integers(-2, 6)
    | st.sampled_from([0.5, 4.0, 4.5])
    | st.booleans()
    | st.none()
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner),
    max_leaves=5,
)
notes = st.lists(st.dictionaries(st.sampled_from(KEYS), values), max_size=6)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    path = tmp_path_factory.mktemp("properties") / "index.sqlite"
    with closing(open_store(path, create=True)) as store:
        yield store


def fill(store: Store, notes: list[dict[str, Any]]) -> None:
    """Make these the only documents; each replaces one with the properties of another."""

    def write(writer: Writer) -> None:
        if writer.collections.all():
            writer.collections.remove("notes")
        added = writer.collections.add(name="notes", path="/notes", pattern="**", ignore=[])
        for version in (notes[::-1], notes):
            for number, properties in enumerate(version):
                writer.files.put(added.id, document(f"{number}.md", properties))

    store.write(write)


def document(path: str, properties: dict[str, Any]) -> NewDocument:
    parsed = dataclasses.replace(parse_document(path, b"word"), properties=properties)
    digest = hashlib.sha256(path.encode()).hexdigest()
    return new_document(path, parsed, digest, FileState(1, 1, 1, 1))


# --- the plain reading ------------------------------------------------------------------


def leaves(properties: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in properties.items():
        yield from members(prefix + key.lower().replace(" ", "-"), value)


def members(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        yield from leaves(value, f"{key}.")
    elif isinstance(value, list) and value:
        for element in value:
            yield from members(key, element)
    else:
        yield key, value


def as_text(value: Any) -> str:
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    text = f"{value:g}" if isinstance(value, float) else str(value)
    return "li lei" if text.startswith("[[") else text.lower()


def as_number(value: Any) -> float | None:
    if isinstance(value, bool) or value is None:
        return None
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def as_date(value: Any) -> date | None:
    return date.fromisoformat(value) if value in DAYS else None


Test = Callable[[Any], bool]


def number_test(compare: Callable[[float], bool]) -> Test:
    return lambda value: (number := as_number(value)) is not None and compare(number)


def date_test(compare: Callable[[date], bool]) -> Test:
    return lambda value: (day := as_date(value)) is not None and compare(day)


first, last = date(2026, 12, 1), date(2026, 12, 31)
CONDITIONS: dict[str, Test] = {
    "*": lambda value: True,
    '""': lambda value: as_text(value) == "",
    "draft": lambda value: as_text(value) == "draft",
    "dr*": lambda value: as_text(value).startswith("dr"),
    '"li  LEI"': lambda value: as_text(value) == "li lei",
    "草稿": lambda value: as_text(value) == "草稿",
    "true": lambda value: as_text(value) == "true",
    "yes": lambda value: as_text(value) in ("yes", "true"),
    "4": number_test(lambda number: number == 4),
    '"4.0"': number_test(lambda number: number == 4),
    ">4": number_test(lambda number: number > 4),
    ">=4": number_test(lambda number: number >= 4),
    "≤0.5": number_test(lambda number: number <= 0.5),
    "<4": number_test(lambda number: number < 4),
    "1..4": number_test(lambda number: 1 <= number <= 4),
    "2026-12": date_test(lambda day: first <= day <= last),
    "2026": date_test(lambda day: day.year == 2026),
    "2026-12-01": date_test(lambda day: day == first),
    "<2026-12-01": date_test(lambda day: day < first),
    "<=2026-12-01": date_test(lambda day: day <= first),
    ">2026-12": date_test(lambda day: day > last),
    ">=2026/12/1": date_test(lambda day: day >= first),
    "<2026-12": date_test(lambda day: day < first),
    "2026-01..2026-12": date_test(lambda day: date(2026, 1, 1) <= day <= last),
}
QUERY_KEYS = ["status", "STATUS", "rating", "due-date", "book", "book.status", "状态"]
conditions = st.tuples(st.sampled_from(QUERY_KEYS), st.sampled_from(sorted(CONDITIONS)))


def meets(properties: dict[str, Any], condition: tuple[str, str]) -> bool:
    key, test = condition[0].lower(), CONDITIONS[condition[1]]
    return any(name == key and test(value) for name, value in leaves(properties))


def has_key(notes: list[dict[str, Any]], condition: tuple[str, str]) -> bool:
    return any(meets(properties, (condition[0], "*")) for properties in notes)


@given(notes, st.lists(conditions, min_size=1, max_size=3), st.lists(conditions, max_size=2))
def test_conditions_of_a_query_select_the_documents_that_meet_them(
    store: Store,
    notes: list[dict[str, Any]],
    required: list[tuple[str, str]],
    excluded: list[tuple[str, str]],
) -> None:
    fill(store, notes)
    required = [each for each in required if has_key(notes, each)]
    excluded = [each for each in excluded if has_key(notes, each)]
    words = [f"{key}:{value}" for key, value in required]
    words += [f"-{key}：{value}" for key, value in excluded]
    with store.reading() as reader:
        query = parse_query(reader, " ".join(words))
        assert not query.groups
        selection = reader.select(Filters(), either=query.either, none_of=query.none_of)
        selected = {
            reader.documents.by_id(each).path for each in reader.documents.latest_ids(selection)
        }
    assert selected == {
        f"{number}.md"
        for number, properties in enumerate(notes)
        if all(meets(properties, each) for each in required)
        and not any(meets(properties, each) for each in excluded)
    }


@given(notes, st.lists(conditions, min_size=1, max_size=3))
def test_alternatives_and_filters_mean_the_same(
    store: Store, notes: list[dict[str, Any]], alternatives: list[tuple[str, str]]
) -> None:
    fill(store, notes)
    filters = Filters(properties=tuple(f"{key}:{value}" for key, value in alternatives))
    excluding = Filters(properties=tuple(f"-{each}" for each in filters.properties))
    alternatives = [each for each in alternatives if has_key(notes, each)]
    with store.reading() as reader:
        query = parse_query(reader, " OR ".join(f"{key}:{value}" for key, value in alternatives))

        def select(filters: Filters, **groups: Any) -> set[str]:
            ids = reader.documents.latest_ids(reader.select(filters, **groups))
            return {reader.documents.by_id(document_id).path for document_id in ids}

        every = {f"{number}.md" for number in range(len(notes))}
        meeting = {
            f"{number}.md"
            for number, properties in enumerate(notes)
            if any(meets(properties, each) for each in alternatives)
        }
        if alternatives:
            assert select(Filters(), either=query.either) == meeting
        assert select(excluding) == every - meeting
        assert select(filters) == {
            f"{number}.md"
            for number, properties in enumerate(notes)
            if len(alternatives) == len(filters.properties)
            and all(meets(properties, each) for each in alternatives)
        }


@given(st.text(), st.frozensets(st.sampled_from(["a", "note", "http", "12"])))
def test_a_key_that_no_document_has_changes_no_query(
    store: Store, text: str, keys: frozenset[str]
) -> None:
    from qmd.search.query import parse_string

    fill(store, [])
    with store.reading() as reader:
        assert parse_query(reader, text) == parse_string(text)
    parse_string(f"{text} http:{text} a：{text}", keys)  # never fails


def test_only_so_many_values_are_kept(store: Store) -> None:
    fill(store, [{"n": list(range(MAX_VALUES + 500)), "after": 1}])
    with store.reading() as reader:
        assert len(reader.properties.values(reader.all_documents, "n")) == MAX_VALUES
        assert reader.properties.existing_keys(["n", "after"]) == {"n"}
