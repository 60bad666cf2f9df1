"""Links, tags and dates are read as written, outside code, with their lines."""

from __future__ import annotations

from typing import Any

import pytest

from qmd.parse.dates import find_date
from qmd.parse.document import parse_document
from qmd.values import Link


def links(text: str) -> list[Link]:
    return list(parse_document("note.md", text.encode()).links)


def tags(text: str) -> list[str]:
    return list(parse_document("note.md", text.encode()).tags)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[a](b.md)", Link("link", "b.md", "a", None, None, 1)),
        ("x\n\n[a b](b.md#Part)", Link("link", "b.md", "a b", "Part", None, 3)),
        ("[a](#part)", Link("link", "", "a", "part", None, 1)),
        ("[a](b.md#^id)", Link("link", "b.md", "a", None, "id", 1)),
        ("[a](<b c.md> 'title')", Link("link", "b c.md", "a", None, None, 1)),
        ('[a](b.md "title")', Link("link", "b.md", "a", None, None, 1)),
        ("[a](b_(c).md)", Link("link", "b_(c).md", "a", None, None, 1)),
        ("[a](b_((c)).md)", Link("link", "b_((c)).md", "a", None, None, 1)),
        ("[a](b\\).md)", Link("link", "b).md", "a", None, None, 1)),
        ("[a](b\\).md 'title')", Link("link", "b).md", "a", None, None, 1)),
        ("[a](b_((c)).md 'title')", Link("link", "b_((c)).md", "a", None, None, 1)),
        ("[a [b] c](d.md)", Link("link", "d.md", "a [b] c", None, None, 1)),
        ("[a](https://x.org/#/r)", Link("link", "https://x.org/#/r", "a", None, None, 1)),
        ("![alt](i.png)", Link("image", "i.png", "alt", None, None, 1)),
        ("[[Note]]", Link("wikilink", "Note", None, None, None, 1)),
        ("[[Note#Part|shown]]", Link("wikilink", "Note", "shown", "Part", None, 1)),
        ("[[Note#^id]]", Link("wikilink", "Note", None, None, "id", 1)),
        ("[[#Part]]", Link("wikilink", "", None, "Part", None, 1)),
        ("|[[Note\\|shown]]|", Link("wikilink", "Note", "shown", None, None, 1)),
        ("![[pic.png|200]]", Link("embed", "pic.png", "200", None, None, 1)),
        ("[[笔记/计划#第一节]]", Link("wikilink", "笔记/计划", None, "第一节", None, 1)),
        ("[[1]](b.md)", Link("link", "b.md", "[1]", None, None, 1)),
        ("[[1]][r]\n\n[r]: b.md", Link("link", "b.md", "[1]", None, None, 1)),
        ("[[1]](see there)", Link("wikilink", "1", None, None, None, 1)),
        ("[[Note]][^2]\n\n[^2]: text", Link("wikilink", "Note", None, None, None, 1)),
        ("[[Note]][unknown]\n\n[r]: https://x.org", Link("wikilink", "Note", None, None, None, 1)),
        ("[[Sq]uare]]", Link("wikilink", "Sq]uare", None, None, None, 1)),
        ("[[F#do|`do()`]]", Link("wikilink", "F", "`do()`", "do", None, 1)),
        ("![[#`move`]]", Link("embed", "", None, "`move`", None, 1)),
        ("[a][r]\n\n[r]: b.md 'x'", Link("link", "b.md", "a", None, None, 1)),
        ("[R]\n\n[r]: <b c.md>", Link("link", "b c.md", "R", None, None, 1)),
        ("[r][]\n\n[R]: b.md", Link("link", "b.md", "r", None, None, 1)),
        ("a `b\n- c` [a](b.md)", Link("link", "b.md", "a", None, None, 2)),
        ("\\` [a](b.md) \\`", Link("link", "b.md", "a", None, None, 1)),
    ],
)
def test_a_link_is_found_with_its_target_text_and_line(text: str, expected: Link) -> None:
    assert links(text) == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "`[a](b.md)`",
        "`` [a](b.md) ` [[c]] ``",
        "```\n[a](b.md) [[c]]\n```",
        "    [a](b.md)",
        "> ```\n> [a](b.md)\n> ```",
        "<!-- [[a]] -->",
        "\\[a](b.md)",
        "[a]()",
        "[a] (b.md)",
        "[a](b\\(c.md d)",
        "[a](b((c 'title')",
        "[a](<b)",
        "[a][unknown]",
        "[^1]\n\n[^1]: note",
        "[ ] task",
        "`[[` and `]]`",
        "[[a `]]`",
        "[[a ``b\nc`` d]]",
        "[[a]\nb]]",
        "---\nrelated: see '[[a]] there'\n---\n",
    ],
)
def test_what_is_no_link(text: str) -> None:
    assert links(text) == []


def test_an_image_in_a_link_gives_both_in_order() -> None:
    assert [(link.kind, link.target) for link in links("[![alt](i.png)](b.md) [[c]]")] == [
        ("link", "b.md"),
        ("image", "i.png"),
        ("wikilink", "c"),
    ]


def test_lines_of_links_count_frontmatter_and_every_kind_of_line_end() -> None:
    text = "---\r\ntitle: x\r\n---\r\n[a](b)\r[c](d)\n\u2028[[e]]"
    assert [link.line for link in links(text)] == [4, 5, 6]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("#tag and #tag/sub-1 #snake_case", ["tag", "tag/sub-1", "snake_case"]),
        ("#标签，后面 #日记/二〇二五。", ["标签", "日记/二〇二五"]),
        ("#y1984 #1984 #12-3", ["y1984"]),
        ("- #in-list\n> #in-quote", ["in-list", "in-quote"]),
        ("# Heading\n## Other", []),
        ("`#code` and\n```\n#fence\n```\n    #indented", []),
        ("a#b http://x.org/#c [d](#e) [[f #g]] (#h)", []),
        ("#include <x>\n#define Y", []),
        ("#Tag #tag #TAG", ["Tag"]),
        (
            "---\ntags: [One, '#two', three/four, 2025]\n---\n#one #five",
            ["One", "two", "three/four", "2025", "five"],
        ),
        ("---\ntags: one, two three\ntag: four\n---\n", ["one", "two", "three", "four"]),
        ("---\ntags:\n  - with space\n  - 中文\n---\n", ["with space", "中文"]),
        ("---\ntags:\n---\n#a", ["a"]),
    ],
)
def test_tags_are_those_of_frontmatter_and_text(text: str, expected: list[str]) -> None:
    assert tags(text) == expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("aliases: [A, 'B C', A]", ("A", "B C")),
        ("alias: One name, other", ("One name", "other")),
        ("aliases:\n  - 别名\n  - 7", ("别名", "7")),
        ("aliases:", ()),
    ],
)
def test_aliases_are_a_list_or_a_text_with_commas(line: str, expected: tuple[str, ...]) -> None:
    assert parse_document("n.md", f"---\n{line}\n---\n".encode()).aliases == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2025-03-01", "2025-03-01"),
        ("2025/3/1", "2025-03-01"),
        ("2025.03.01", "2025-03-01"),
        ("2025年3月1日", "2025-03-01"),
        ("2025-03", "2025-03-01"),
        (2025, "2025-01-01"),
        (20250301, "2025-03-01"),
        ("20250301T101500", "2025-03-01T10:15:00"),
        ("20250301T101500Z", "2025-03-01T10:15:00+00:00"),
        ("2025-03-01 10:15", "2025-03-01T10:15:00"),
        ("2025-03-01T10:15:30.123+0800", "2025-03-01T10:15:30+08:00"),
        ("2025-03-01 10:15:30 +08:00", "2025-03-01T10:15:30+08:00"),
        ("2025-03-01T10:15:30Z", "2025-03-01T10:15:30+00:00"),
        ("2025-03-01 3:05 PM", "2025-03-01T15:05:00"),
        ("March 1, 2025", "2025-03-01"),
        ("1st Mar 2025", "2025-03-01"),
        ("Sat, 01 Mar 2025 10:15:30 +0800", "2025-03-01T10:15:30+08:00"),
        ("12/17/2019", "2019-12-17"),
        ("17/12/2019", "2019-12-17"),
        ("17.12.2019", "2019-12-17"),
        (1740787200, "2025-03-01T00:00:00+00:00"),
        (1740787200000, "2025-03-01T00:00:00+00:00"),
        (202503011015, "2025-03-01T10:15:00"),
        ("202503011015", "2025-03-01T10:15:00"),
        (20250301101530, "2025-03-01T10:15:30"),
        # Milliseconds of 12 digits that are no minute of a calendar near ours.
        (202513011015, "1976-06-01T21:36:51+00:00"),
        (300001011015, "1979-07-05T05:36:51+00:00"),
        (946684800000, "2000-01-01T00:00:00+00:00"),
        ("[[2025-03-01]]", "2025-03-01"),
        (["2025-03-01", "2024-01-01"], "2025-03-01"),
    ],
)
def test_a_date_in_many_spellings(value: Any, expected: str) -> None:
    assert find_date({"date": value}) == (expected, ())


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("03/04/2025", "could be two dates"),
        ("2025-02-30", "is not a day of the calendar"),
        ("yesterday", "is not a date"),
        ({"a": 1}, "is not a date"),
        (True, "is not a date"),
        ("2025-03-01 and more", "is not a date"),
        ("9" * 500, "is not a date"),
    ],
)
def test_no_date_is_a_warning(value: Any, reason: str) -> None:
    date, warnings = find_date({"date": value})
    assert date is None
    assert reason in warnings[0]


def test_the_first_of_date_created_and_updated_that_is_one_counts() -> None:
    assert find_date({"updated": "2025-03-03", "created": "2025-03-02"})[0] == "2025-03-02"
    date, warnings = find_date({"date": "soon", "created": "2025-03-02"})
    assert date == "2025-03-02"
    assert len(warnings) == 1
    assert find_date({"ms.date": "2025-03-02", "date": None}) == (None, ())


def test_a_text_of_plain_links_and_one_with_brackets_agree() -> None:
    plain = "[a](b.md) ![c](d.png)\n\n中文 [e](f.md#g)\n"
    assert links(plain + "\n[[h]]")[:3] == links(plain)
    assert [(link.kind, link.target, link.line) for link in links(plain)] == [
        ("link", "b.md", 1),
        ("image", "d.png", 1),
        ("link", "f.md", 3),
    ]
