"""Sections and blocks are those that Obsidian shows for ``note#Heading`` and ``note#^block``."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.parse.sections import block, block_ids, heading_path, outline_of, section

NOTE = """\
---
title: Trip
---
intro

# Plan

all

## Food & Drink: *what*

bread

### [[Wine|The wine]]

red

## Route

north

# Log

Setext
------

end

## Food & drink what
more
"""


def lines_of(text: str, first: int, last: int) -> str:
    return "".join(text.splitlines(keepends=True)[first - 1 : last - 1])


@pytest.mark.parametrize(
    ("name", "line", "end", "others"),
    [
        ("Plan", 6, 22, ()),
        ("plan", 6, 22, ()),
        ("Food & Drink: *what*", 10, 18, (29,)),
        ("food drink what", 10, 18, (29,)),
        ("Food  Drink:  what", 10, 18, (29,)),
        ("Plan#Food Drink what", 10, 18, ()),
        ("Log#Food Drink what", 29, 31, ()),
        ("Plan#The wine", 14, 18, ()),
        ("Plan#Food Drink what#Wine The wine", 14, 18, ()),
        ("Setext", 24, 29, ()),
        ("food--drink-what", 10, 18, (29,)),
    ],
)
def test_a_section_is_found_by_its_headings(
    name: str, line: int, end: int, others: tuple[int, ...]
) -> None:
    result = section(NOTE, heading_path(name))
    assert result is not None
    assert (result.start_line, result.end_line, result.others) == (line, end, others)
    assert NOTE[result.start_char : result.end_char] == lines_of(NOTE, line, end)
    assert NOTE[result.body_char : result.end_char] == lines_of(NOTE, result.body_line, end)


@pytest.mark.parametrize("name", ["", "#", "Trip", "Food", "Route#Plan", "Log#Route", "Plan#Plan"])
def test_what_is_no_heading_has_no_section(name: str) -> None:
    assert section(NOTE, heading_path(name)) is None


def test_the_walk_is_that_of_obsidian() -> None:
    # The second name is looked for behind the first one, at any deeper level.
    text = "# A\n\n# C\n\n## B\n\n# A\n\n## B\n"
    result = section(text, ["A", "B"])
    assert result is not None
    assert (result.start_line, result.others) == (5, (9,))


def test_the_outline_holds_every_heading_with_its_lines() -> None:
    assert [
        (each.path, each.start_line, each.body_line, each.end_line) for each in outline_of(NOTE)
    ] == [
        (("Plan",), 6, 7, 22),
        (("Plan", "Food & Drink: what"), 10, 11, 18),
        (("Plan", "Food & Drink: what", "The wine"), 14, 15, 18),
        (("Plan", "Route"), 18, 19, 22),
        (("Log",), 22, 23, 31),
        (("Log", "Setext"), 24, 26, 29),
        (("Log", "Food & drink what"), 29, 30, 31),
    ]
    assert outline_of("no heading\n") == outline_of("") == ()


BLOCKS = """\
---
note: x ^front
---
One paragraph
of two lines. ^Two-lines

- first
- second ^item
  - inside

  still inside
- third
  more ^third

| a | b |
|---|---|
| 1 | 2 |

^table

> quoted
> text
^quote

```
code ^no
```
^code

x^2 and `y ^z`
![[picture.png]]^picture

- a
- b

    ^b
"""


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("two-lines", "One paragraph\nof two lines. ^Two-lines\n"),
        ("item", "- second ^item\n  - inside\n\n  still inside\n"),
        ("third", "- third\n  more ^third\n"),
        ("table", "| a | b |\n|---|---|\n| 1 | 2 |\n"),
        ("quote", "> quoted\n> text\n"),
        ("code", "```\ncode ^no\n```\n"),
        ("picture", "x^2 and `y ^z`\n![[picture.png]]^picture\n"),
    ],
)
def test_a_block_is_what_its_name_stands_behind(name: str, lines: str) -> None:
    result = block(BLOCKS, name)
    assert result is not None
    assert BLOCKS[result.start_char : result.end_char] == lines
    assert lines_of(BLOCKS, result.start_line, result.end_line) == lines


@pytest.mark.parametrize("name", ["front", "no", "2", "z", "missing", ""])
def test_what_is_no_name_of_a_block_finds_none(name: str) -> None:
    assert block(BLOCKS, name) is None


def test_a_name_that_stands_twice_is_the_first() -> None:
    assert block_ids("a ^x\n\nb ^X\n") == (("x", 1), ("X", 3))
    result = block("a ^x\n\nb ^X\n", "X")
    assert result is not None
    assert (result.start_line, result.others) == (1, (3,))


@given(st.text(alphabet="ab# \n\r-=`>^|*", max_size=200))
def test_every_heading_of_any_text_can_be_named(text: str) -> None:
    every = outline_of(text)
    for each in every:
        assert text[each.start_char : each.body_char].strip()
        assert each.start_char < each.body_char <= each.end_char <= len(text)
        if "#" not in each.heading.text and each.heading.text:
            result = section(text, [each.heading.text])
            assert result is not None
            assert each.start_line in (result.start_line, *result.others)
    for name, line in block_ids(text):
        result_block = block(text, name)
        assert result_block is not None
        assert 1 <= result_block.start_line < result_block.end_line
        assert line >= result_block.start_line
