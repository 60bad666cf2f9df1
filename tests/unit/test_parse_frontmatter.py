"""Frontmatter is read when it is some, and never costs a note."""

from __future__ import annotations

import json
from typing import Any

import pytest

from qmd.parse.converted import group_warnings
from qmd.parse.document import parse_document
from qmd.parse.frontmatter import split
from qmd.values.properties import property_rows
from tests.support import growth


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("close", ["---", "...", "---  "])
def test_yaml_ends_at_its_closing_line(end: str, close: str) -> None:
    text = end.join(["---", "title: Plan", "tags: [a, b]", close, "# Body"])
    front = split(text)
    assert front.properties == {"title": "Plan", "tags": ["a", "b"]}
    assert text[front.body_start :] == "# Body"
    assert front.warnings == ()


def test_types_become_json() -> None:
    front = split(
        "---\n"
        "day: 2025-03-01\n"
        "at: 2025-03-01 10:00:00 +08:00\n"
        "no_day: 2025-13-45\n"
        "count: 3\nratio: 0.5\nyes_: true\nnothing:\nnan: .nan\nhuge: 99999999999999999999999\n"
        "1: one\nnull: x\n"
        "nested: {a: [1, 2024-01-01]}\n"
        "---\n"
    )
    assert front.properties == {
        "day": "2025-03-01",
        "at": "2025-03-01T10:00:00+08:00",
        "no_day": "2025-13-45",
        "count": 3,
        "ratio": 0.5,
        "yes_": True,
        "nothing": None,
        "nan": ".nan",
        "huge": "99999999999999999999999",
        "1": "one",
        "null": "x",
        "nested": {"a": [1, "2024-01-01"]},
    }
    json.dumps(front.properties, allow_nan=False)


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *((text, text) for text in ("9:30", "09:30", "16:9", "1:30:00", "1:30.5", "-1:30")),
        *((text, text) for text in ("02134", "010", "007", "-007", "00.5", "089")),
        *((text, text) for text in ("1_000", "1_000.5", "0x1F", "0b11", "0o17", ".", "+", "1e")),
        *((text, text) for text in ("!!int 010", "!!int 1:30", "!!float 1_0", "9" * 300, "1e999")),
        *(("0", 0), ("-3", -3), ("+5", 5), ("120", 120), ("0.50", 0.5), (".5", 0.5), ("5.", 5.0)),
        *(("1e3", 1000.0), ("1.5E-3", 0.0015), ("-2e+2", -200.0), ("!!int '12'", 12)),
        *(("yes", True), ("off", False)),
    ],
)
def test_a_number_is_what_json_calls_one(written: str, value: object) -> None:
    read = split(f"---\nkey: {written}\n---\n").properties["key"]
    expected = written.rpartition(" ")[2] if isinstance(value, str) else value
    assert (type(read), read) == (type(expected), expected)


@pytest.mark.parametrize(
    "name", ["1.10", "1e3", ".5", "+49", "yes", "on", "true", "0x1F", "2025-03-01 10:00:00", "2024"]
)
def test_a_name_stays_as_it_is_written(name: str) -> None:
    expected = (name,)
    listed = f"---\ntitle: {name}\ntags: [{name}]\naliases:\n- {name}\n---\n"
    document = parse_document("a.md", listed.encode())
    assert (document.title, document.aliases) == (name, expected)
    if " " not in name:
        assert document.tags == expected
    damaged = f"---\ntitle: {name}\nalias: {name}\nx: y: z\n---\n"
    fields = f"title:: {name}\nalias:: {name}\n\nText"
    for text in (f"---\ntitle: {name}\nalias: {name}\n---\n", damaged, fields):
        document = parse_document("a.md", text.encode())
        assert (document.title, document.aliases) == (name, expected)


def test_a_name_that_is_null_is_none() -> None:
    document = parse_document(
        "a.md", b"---\ntitle: null\ntags: ~\naliases:\nx: {title: 1.10}\n---\n"
    )
    assert (document.title, document.tags, document.aliases) == ("a", (), ())
    assert document.properties["x"] == {"title": 1.1}


def test_a_key_stays_as_it_is_written() -> None:
    front = split(
        "---\nyes: 1\nno: 2\non: 3\n007: 4\n1.10: 5\n9:30: 6\n~: 7\n"
        "inside: {off: 8, True: 9}\n---\n"
    )
    assert front.properties == {
        "yes": 1,
        "no": 2,
        "on": 3,
        "007": 4,
        "1.10": 5,
        "9:30": 6,
        "~": 7,
        "inside": {"off": 8, "True": 9},
    }
    assert front.warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "---\nProse: that goes on\nin the next line.\n",
        "---\nNote: prose\n- with a list\nand more.\n",
        "---\n\ntitle: behind a blank line\n",
        "---\n# A heading\n\ntitle: x\n",
        "---\n- a list: of things\n",
        "---\nhttps://example.org/page\n",
        "+++\nProse, and x = y.\n",
        "---\n\nA paragraph between rules.\n\n---\n\nMore.\n",
        "---\n\n---\n",
        "----\na: b\n----\n",
        "--- a: b\n---\n",
        "\n---\na: b\n---\n",
        "---\n- a\n- list\n---\n",
        "---\n- a\n- list: of [what\n---\n",
        "---\nProse with [a bracket\nand no, key at: all\n---\n",
        "---\n\nProse.\nNote: with [a colon\nand: so on\n\n---\n\nMore.\n",
        "---",
        "",
    ],
)
def test_a_rule_is_no_frontmatter(text: str) -> None:
    front = split(text)
    assert front.body_start == 0
    assert front.properties == {}
    assert front.warnings == ()


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    "lines",
    [
        ["---", "title: A title"],
        ["---", "title: A title", "tags:", "  - a", "- b", "# comment", "", "# Heading", "Text."],
        ["---  ", '"quoted key": 1', "----", "", "Text"],
        ["---", "标题: 名字", "tags: [x]", "  and: more", "", "Text"],
        ["+++", 'title = "A title"', "weight = 1", "", "Text."],
        ["---", "title: A title", "Text that begins at once."],
        ["---", "Tags:", "  - a", "Text."],
        ["---", "status: draft", "due: 2024-01-01", "# Heading", "Text."],
        ["+++", "draft = true", "weight = 1", "Text."],
    ],
)
def test_properties_without_an_end_are_text_with_a_warning(lines: list[str], end: str) -> None:
    front = split(end.join(lines))
    assert (front.body_start, front.properties) == (0, {})
    [warning] = front.warnings
    assert warning == (
        f"The frontmatter never ends: the line '{lines[0][:3]}' below it is missing; read as text."
    )


def test_empty_frontmatter_is_frontmatter() -> None:
    assert split("---\n---\nbody").body_start == 8
    assert split("---\n# only a comment\n---\nbody").properties == {}
    assert split("---\n# only a comment\n---\nbody").body_start > 0


def test_invalid_yaml_warns_with_the_line_and_keeps_what_can_be_read() -> None:
    front = split("---\ntitle: One: two\ntags:\n  - a\n  - b\ndate: 2025-03-01\n---\nbody")
    assert front.properties == {"title": "One: two", "tags": ["a", "b"], "date": "2025-03-01"}
    assert len(front.warnings) == 1
    assert "not valid YAML in line 2" in front.warnings[0]


@pytest.mark.parametrize("first", ["status:s_d2", "- note", ": : :", "[", "a b c"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_mistake_in_the_first_line_costs_this_line_alone(first: str, end: str) -> None:
    lines = ["---", first, "title: A title", "tags: [kept]", "date: 2024-01-01", "---", "Body"]
    front = split(text := end.join(lines))
    assert front.properties == {"title": "A title", "tags": ["kept"], "date": "2024-01-01"}
    assert text[front.body_start :] == "Body"
    [warning] = front.warnings
    assert "not valid YAML" in warning
    assert "read line by line" in warning


def test_a_key_given_twice_warns_and_the_last_counts() -> None:
    front = split("---\na: 1\na: 2\n---\n")
    assert front.properties == {"a": 2}
    assert "twice" in front.warnings[0]


def test_an_alias_is_resolved_and_a_merge_key_merged() -> None:
    front = split("---\nbase: &b {x: 1, y: 2}\nother: {<<: *b, y: 3}\nagain: *b\n---\n")
    assert front.properties["other"] == {"x": 1, "y": 3}
    assert front.properties["again"] == {"x": 1, "y": 2}


def test_an_alias_bomb_is_refused_and_the_note_stays() -> None:
    levels = "".join(
        f"{name}: &{name} [{', '.join(['*' + before] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    text = f"---\na: &a [x, x]\n{levels}---\n# Body\n"
    front = split(text)
    assert front.properties == {}
    assert text[front.body_start :] == "# Body\n"
    assert "aliases" in front.warnings[0]


@pytest.mark.parametrize(
    "value", ["&x [*x]", "*nowhere", "[" * 5000 + "]" * 5000, "\n  " + "- " * 5000 + "x"]
)
def test_endless_and_deep_values_are_refused(value: str) -> None:
    front = split(f"---\na: {value}\n---\nbody")
    assert front.properties == {}
    assert front.body_start > 0
    assert len(front.warnings) == 1


def test_a_name_in_toml_stays_as_it_is_written() -> None:
    source = "title = 1.10\ntags = [1.20]\nver = 1.10\nlow = -inf\n"
    front = split(f"+++\n{source}+++\nbody")
    assert front.properties == {"title": "1.10", "tags": ["1.20"], "ver": 1.1, "low": "-inf"}
    assert [type(each) for each in front.properties.values()] == [str, list, float, str]
    assert parse_document("a.md", f"+++\n{source}+++\n".encode()).title == "1.10"


def test_toml_is_read() -> None:
    text = (
        '+++\ntitle = "Plan"\ndate = 2025-03-01\nweights = [1, 2.5, nan]\n'
        "[extra]\na = true\n+++\nbody"
    )
    front = split(text)
    assert front.properties == {
        "title": "Plan",
        "date": "2025-03-01",
        "weights": [1, 2.5, "nan"],
        "extra": {"a": True},
    }
    assert text[front.body_start :] == "body"


@pytest.mark.parametrize("source", ["a = ", "a=" + "[" * 5000, "a." * 5000 + "b = 1"])
def test_bad_toml_is_a_warning(source: str) -> None:
    front = split(f"+++\n{source}\n+++\nbody")
    assert front.properties == {}
    assert front.body_start > 0
    assert len(front.warnings) == 1


def test_frontmatter_over_the_limit_is_not_read() -> None:
    front = split("---\n" + "key: [value, {}]\n" * 20_000 + "---\nbody")
    assert front.properties == {}
    assert front.body_start > 0
    assert "256 KiB" in front.warnings[0]


def test_of_invalid_yaml_the_lines_that_read_alone_are_kept() -> None:
    front = split(
        "---\n"
        "title : A: B\n"
        "count: 3\n"
        "quoted: 'x\n"
        "open: [x, 'y z'\n"
        "tags:\n  - one\n  - 'two'\n"
        "alone:\n"
        'aliases : \n- "three"\n'
        "no key here\n"
        "last:\n- 4\n"
        "---\n"
    )
    assert front.properties == {
        "title": "A: B",
        "count": 3,
        "quoted": "x",
        "open": ["x", "y z"],
        "tags": ["one", "two"],
        "aliases": ["three"],
        "last": ["4"],
    }
    assert len(front.warnings) == 1


@pytest.mark.parametrize(
    ("source", "properties"),
    [
        ("created: {{date}}", {"created": "{{date}}"}),
        (
            'created: "{{date}}"\nupdated: {{time}}',
            {"created": "{{date}}", "updated": "{{time}}"},
        ),
        ("up: {{title}}\nn: 1", {"up": "{{title}}", "n": 1}),
        ("tags:\n  - {{tag}}", {"tags": ["{{tag}}"]}),
        ('name: <% tp.file.title %> "x"', {"name": '<% tp.file.title %> "x"'}),
        ("date: <% tp.date.now() %>", {"date": "<% tp.date.now() %>"}),
        ("a: b\nlist: [<%* tR -%>\n", {"a": "b", "list": "[<%* tR -%>"}),
    ],
)
def test_placeholders_of_templates_are_text_without_a_warning(
    source: str, properties: dict[str, Any]
) -> None:
    document = parse_document("t.md", f"---\n{source}\n---\nbody\n".encode())
    assert document.properties == properties
    assert document.warnings == ()


def test_a_warning_about_many_documents_is_told_once() -> None:
    pairs = [*((f"v/{name}.md", "Same.") for name in "abc"), ("v/d.md", "Other.")]
    assert group_warnings(pairs) == ["3 documents, such as v/a.md: Same.", "v/d.md: Other."]
    assert group_warnings(pairs[1:]) == ["v/b.md: Same.", "v/c.md: Same.", "v/d.md: Other."]


def test_numbers_keep_the_digits_that_are_written() -> None:
    text = "---\nver: 1.10\nbig: 1e3\nlist: [2.50, 3, 0.5]\nn: 7\nplain: 1.5\n---\n\nload:: 7.70\n"
    parsed = parse_document("a.md", text.encode())
    assert parsed.numbers == (
        ("ver", 1.1, "1.10"),
        ("big", 1000.0, "1e3"),
        ("list", 2.5, "2.50"),
        ("load", 7.7, "7.70"),
    )
    rows = {
        (row.key, row.text): row.value for row in property_rows(parsed.properties, parsed.numbers)
    }
    assert rows == {
        ("ver", "1.1"): "1.10",
        ("big", "1000"): "1e3",
        ("list", "2.5"): "2.50",
        ("list", "3"): "3",
        ("list", "0.5"): "0.5",
        ("n", "7"): "7",
        ("plain", "1.5"): "1.5",
        ("load", "7.7"): "7.70",
    }
    assert parse_document("a.md", b"+++\nver = 1.30\n+++\n").numbers == (("ver", 1.3, "1.30"),)


def test_many_numbers_take_linear_time() -> None:
    def index(text: str) -> None:
        parsed = parse_document("a.md", text.encode())
        property_rows(parsed.properties, parsed.numbers)

    def make(size: int) -> str:
        keys = "".join(f"k{number}: [{'1.10, ' * 20}1.0]\n" for number in range(size // 130))
        return f"---\n{keys}---\n"

    assert growth.problem(index, make, 20_000, most_per_kb=0.02) is None
