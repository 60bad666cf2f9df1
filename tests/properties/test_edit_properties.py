"""Whatever a note holds: an edit changes nothing outside of its place, in every encoding."""

from __future__ import annotations

import json
import re
from datetime import date

import yaml
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from qmd.errors import EditError
from qmd.files.edits.note_editor import edited
from qmd.files.edits.text_file import TextFile, line_end, with_line_ends
from qmd.parse import frontmatter
from qmd.values.writing import NoteEdit

ENDS = st.sampled_from(["\n", "\r\n", "\r"])
LETTERS = st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\ufeff")
WORDS = st.text(LETTERS | st.sampled_from("#-[]x `>:"), max_size=30)
LINES = st.one_of(
    WORDS,
    st.sampled_from(["# A", "## B", "# A", "- [ ] task", "- [x] done", "```", "---", "", "a: 1"]),
)
NOTES = st.builds(
    lambda lines, ends, final: (
        "".join(line + end for line, end in zip(lines, ends, strict=False)) + final
    ),
    st.lists(LINES, max_size=12),
    st.lists(ENDS, min_size=12, max_size=12),
    st.sampled_from(["", "end"]),
)
NUMBERS = st.from_regex(
    r"[-+]?[0-9_]{0,3}([.:][0-9]{0,2}){0,2}([eE][-+]?[0-9]{1,3})?", fullmatch=True
)
SCALARS = st.one_of(
    WORDS,
    NUMBERS,
    st.booleans(),
    st.integers(-(10**9), 10**9),
    st.floats(allow_nan=False, allow_infinity=False),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=4).map(tuple))


@settings(deadline=None)
@given(NOTES, WORDS, WORDS, WORDS)
def test_a_replacement_changes_nothing_around_it(
    before: str, old: str, new: str, after: str
) -> None:
    text = f"{before}{old}{after}"
    assume(old and "\r" not in before[-1:])
    try:
        result = edited(text, NoteEdit("replace", old=old, text=new))
    except EditError:
        assert text.count(old) != 1 or old in text[text.find(old) + 1 :]
        return
    assert result == f"{before}{new}{after}"


@settings(deadline=None)
@given(NOTES, WORDS, st.sampled_from(["append", "prepend", "insert_before", "insert_after"]))
def test_an_insertion_takes_nothing_away(text: str, new: str, action: str) -> None:
    heading = "A" if action.startswith("insert") else None
    try:
        result = edited(text, NoteEdit(action, text=new, heading=heading))  # type: ignore[arg-type]
    except EditError:
        return
    assert new in result
    shared = next((n for n in range(len(text)) if text[n] != result[n : n + 1]), len(text))
    assert result.endswith(text[shared:])
    added = result[shared : len(result) - len(text) + shared]
    assert set(added) <= {*new, *line_end(text), "\n"} or new in added


@settings(deadline=None)
@given(NOTES, st.sampled_from(["a", "tags", "key: x", "日期", "x y", "yes", "007"]), VALUES)
@example("---\n\n---\n---\na: 1\n---\n", "a", "")
@example("---\n\n---\n", "a", "")
def test_a_property_is_what_was_set_and_the_rest_stays(
    text: str, key: str, value: str | float | tuple[str | float, ...]
) -> None:
    before = frontmatter.split(text)
    try:
        result = edited(text, NoteEdit("set_property", property=key, value=value))
    except EditError:
        return
    after = frontmatter.split(result)
    expected = list(value) if isinstance(value, tuple) else value
    if key == "tags":  # names are texts
        items = expected if isinstance(expected, list) else [expected]
        texts: list[str | float] = [
            each if isinstance(each, str) else _digits(each) for each in items
        ]
        expected = texts if isinstance(expected, list) else texts[0]
    assert after.properties[key] == expected
    assert {**before.properties, key: after.properties[key]} == after.properties
    removed = edited(result, NoteEdit("remove_property", property=key))
    assert key not in frontmatter.split(removed).properties
    if key not in before.properties and before.properties:
        assert removed == text
    if not re.match(r"---(\s*[\r\n])---", text):  # blank lines between rules are filled
        body = with_line_ends(text[before.body_start :], "\n")
        assert with_line_ends(result, "\n").endswith(body)


def _digits(number: float) -> str:
    """As JSON has it, with the point that YAML 1.1 needs before an exponent."""
    return re.sub(r"^(-?\d+)e", r"\1.0e", json.dumps(number))


DAYS = st.from_regex(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}([T ][0-9]{1,2}:[0-9]{2}:[0-9]{2}Z?)?")


@settings(deadline=None)
@given(st.one_of(SCALARS, DAYS, st.text("a1 \t:#-", max_size=6)), st.sampled_from(["", "k: [b]"]))
@example("2026-13-45", "")
@example(1e22, "")
@example("a\tb", "")
def test_readers_of_yaml_1_1_read_what_was_set(value: str | float, before: str) -> None:
    edit = NoteEdit("set_property", property="k", value=value)
    listed = NoteEdit("set_property", property="k", value=(value, value))
    for each in (edit, listed):
        result = edited(f"---\n{before}\n---\n", each)
        read = yaml.safe_load(result.split("---\n")[1])["k"]
        for item in read if isinstance(read, list) else [read]:
            # A day stays one: Obsidian shows it as a date.
            is_same = item == value and type(item) is type(value)
            assert is_same or (isinstance(item, date) and item.isoformat() == value)


BLOCK_LINES = st.sampled_from(
    [
        "a: x",
        "a:",
        "a: [x",
        "a: [x]",
        "a: >",
        'a: "x',
        "a: &m x",
        "a: # c",
        "b: 1",
        "b:",
        "b: x: y",
        "- y",
        "  - y",
        "  more",
        "prose",
        "# Agenda",
        "  # note",
        "]",
        'y"',
        "",
        "{{d}}",
    ]
)


@settings(deadline=None, max_examples=500)
@given(
    st.lists(BLOCK_LINES, min_size=1, max_size=8), ENDS, st.sampled_from(["x", ("x", "y"), None])
)
@example(["b: 1", "a: x", "", "# Agenda", "", "prose", ""], "\n", "x")
@example(["a: [x]", "prose"], "\n", ("x", "y"))
@example(["a: x", "- y"], "\n", "x")
@example(["a: x", "", "  more"], "\n", "x")
@example(["a:", "- y", "", "# Agenda", "", "- y"], "\n", None)
def test_each_line_stays_that_is_not_of_the_property(
    lines: list[str], end: str, value: str | tuple[str, ...] | None
) -> None:
    body = f"Below.{end}---{end}End"
    text = end.join(["---", *lines, "---", body])
    edits = (
        NoteEdit("set_property", property="a", value=value),
        NoteEdit("remove_property", property="a"),
    )
    for edit in edits:
        try:
            result = edited(text, edit)
        except EditError:
            continue
        assert result.endswith(body)
        left = iter(result.split(end))
        assert all(line in left for line in _of_others(lines))


def _of_others(lines: list[str]) -> list[str]:
    """The lines that no reader of YAML takes as a part of "a"; without blank ones."""
    first = next((n for n, line in enumerate(lines) if line.startswith("a:")), None)
    own = set() if first is None else _own_lines(lines, first)
    return [line for number, line in enumerate(lines) if number not in own and line.strip()]


def _own_lines(lines: list[str], first: int) -> set[int]:
    try:
        mapping = yaml.compose("\n".join(lines), Loader=yaml.SafeLoader)
        assert mapping is not None
        value = next(value for key, value in mapping.value if key.value == "a")
    except yaml.YAMLError:  # what a reader would take who reads line by line
        own = {first}
        has_value = lines[first] not in ("a:", "a: # c")
        for number in range(first + 1, len(lines)):
            line = lines[number]
            if line.startswith(" ") or (line.startswith("-") and not has_value):
                own.add(number)
            elif line or lines[first] != "a: >":
                break
        return own
    end = value.end_mark.line + (value.end_mark.column > 0)
    comments = {number for number in range(first, end) if lines[number].startswith("#")}
    return {first, *range(first, end)} - comments


@settings(deadline=None)
@given(NOTES, st.sampled_from(["tick", "untick"]), st.integers(1, 13))
def test_a_tick_changes_one_character(text: str, action: str, line: int) -> None:
    try:
        result = edited(text, NoteEdit(action, line=line))  # type: ignore[arg-type]
    except EditError:
        return
    differing = [n for n in range(len(text)) if text[n] != result[n]]
    assert len(result) == len(text)
    assert len(differing) <= 1


@settings(deadline=None)
@given(
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32", "gb18030"]),
    st.text(
        st.sampled_from("这是一个中文的笔记我们在里写下些内容，。\n"), min_size=30, max_size=60
    ),
    st.text(st.sampled_from("中文的笔记abc\n"), max_size=20),
    ENDS,
)
def test_bytes_outside_of_an_edit_stay(encoding: str, before: str, new: str, end: str) -> None:
    first, last = (with_line_ends(part, end) for part in (before, before[::-1]))
    data = f"{first}MARK{last}".encode(encoding)
    file = TextFile.decoded("a.md", data)
    assume(file.text == f"{first}MARK{last}")
    result = file.encode(edited(file.text, NoteEdit("replace", old="MARK", text=new)))
    head, tail = data.split("MARK".encode(file.encoding))
    assert result.startswith(head)
    assert result.endswith(tail)
    assert TextFile.decoded("a.md", result).encoding == file.encoding
