"""Headings, code and blocks are where CommonMark says."""

from __future__ import annotations

import pytest

from qmd.parse.heading_text import heading_text
from qmd.parse.lines import byte_line_starts, line_starts, split_lines
from qmd.parse.markdown import outline


def headings(text: str) -> list[tuple[int, str, int]]:
    return [(heading.level, heading.text, heading.line) for heading in outline(text).headings]


def test_only_cr_lf_and_crlf_end_a_line() -> None:
    text = "a\r\nb\rc\nd\u2028e\x0bf\x0cg\x85h\n"
    assert split_lines(text) == ["a", "b", "c", "d\u2028e\x0bf\x0cg\x85h"]
    assert line_starts(text) == [0, 3, 5, 7]
    assert byte_line_starts(text) == [0, 3, 5, 7]


@pytest.mark.parametrize(
    ("text", "count"), [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\n\n", 2)]
)
def test_a_final_newline_adds_no_line(text: str, count: int) -> None:
    assert len(split_lines(text)) == len(line_starts(text)) == count


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("# One\n## Two ##\n###### Six\n", [(1, "One", 1), (2, "Two", 2), (6, "Six", 3)]),
        ("####### seven\n#none\n\\# no\n    # code\n", []),
        ("   # indented\n#\ttab\n#\n", [(1, "indented", 1), (1, "tab", 2), (1, "", 3)]),
        ("# C# and F#\n# a \\#\n", [(1, "C# and F#", 1), (1, "a #", 2)]),
        ("Title\n=====\n\nSub\n---\n", [(1, "Title", 1), (2, "Sub", 4)]),
        ("Two\nlines\n===\n", [(1, "Two lines", 1)]),
        ("\n---\n\n- item\n---\n> quote\n---\n", []),
        ("| a | b |\n|---|---|\n| 1 | 2 |\n\n---\n", []),
        ("[a]: https://example.org\n---\n", []),
        ("```\n# no\n```\n# yes\n", [(1, "yes", 4)]),
        ("~~~ py\n# no\n```\n~~~~\n# yes\n", [(1, "yes", 5)]),
        ("````\n```\n# no\n````\n# yes\n", [(1, "yes", 5)]),
        ("``` a`b\n# yes\n", [(1, "yes", 2)]),
        ("```\n# never closed\n", []),
        ("- item\n\n    ```\n# yes, the item is over\n", [(1, "yes, the item is over", 4)]),
        ("1. a\n\n   ```\n   # no\n   ```\n\n# yes\n", [(1, "yes", 7)]),
        ("> ```\n> # no\n\n# yes\n", [(1, "yes", 4)]),
        ("<!-- a\n# no\n-->\n# yes\n", [(1, "yes", 4)]),
        ("<!-- one line -->\n# yes\n", [(1, "yes", 2)]),
        ("<pre>\n\n# no\n\n</pre>\n# yes\n", [(1, "yes", 6)]),
        ("<div>\n# no\n\n# yes\n", [(1, "yes", 4)]),
        ("# a\r\n\r\n# b\r# c", [(1, "a", 1), (1, "b", 3), (1, "c", 4)]),
        ("$$\na\n=\nb\n$$\n# yes\n", [(1, "yes", 6)]),
        ("Text\n$$ x\n# no\n\n---\ny $$ \nAfter\n---\n", [(2, "After", 7)]),
        ("$$ a $$\n---\n$$ b $$ c\n---\n", [(2, "$$ b $$ c", 3)]),
        ("$$\nnever closed\n=\n\n# yes\n", [(1, "$$ never closed", 1), (1, "yes", 5)]),
        ("$$\n" + "x\n" * 200 + "$$\n\nFar\n---\n", [(2, "Far", 204)]),
        ("- item\n$$\na\n=\n$$\n", []),
        ("$\na\n=\n", [(1, "$ a", 1)]),
        ("一级标题\n========\n\n## 二级 标题\n", [(1, "一级标题", 1), (2, "二级 标题", 4)]),
    ],
)
def test_headings_are_found_with_their_level_and_line(
    text: str, expected: list[tuple[int, str, int]]
) -> None:
    assert headings(text) == expected


def test_a_rule_below_a_long_paragraph_makes_no_heading() -> None:
    assert headings("A sentence that goes on. " * 20 + "\n---\n") == []


def test_headings_in_frontmatter_do_not_count() -> None:
    text = "---\n# comment\n---\n# Real\n"
    body = text.index("# Real")
    (heading,) = outline(text, body).headings
    assert (heading.text, heading.line, heading.start_char) == ("Real", 4, body)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("`code` and `` a`b ``", "code and a`b"),
        ("**bold** *it* __b__ _i_ ~~s~~ ==m==", "bold it b i s m"),
        ("snake_case_name and 2 * 3 * 4", "snake_case_name and 2 * 3 * 4"),
        ("`__init__` stays", "__init__ stays"),
        ("[text](https://example.org/a_(b)) ![alt](i.png) [ref][1]", "text alt ref"),
        ("[![badge](b.svg)](https://example.org)", "badge"),
        ("[[Note#Part|shown]] and [[Other]]", "shown and Other"),
        ('<span id="x">[1] time</span> <br/>', "[1] time"),
        ("<https://example.org>", "https://example.org"),
        ("A &amp; B &lt;T&gt;", "A & B <T>"),
        (r"\@Cpu \*not\* it", "@Cpu *not* it"),
        ("Install {#install}", "Install"),
        ("Claim[^1]", "Claim"),
        ("vector<int> a", "vector a"),
        ("***both***", "both"),
    ],
)
def test_a_headings_text_has_no_markup(raw: str, expected: str) -> None:
    assert heading_text(raw) == expected


def test_blocks_hold_every_line_with_text_once() -> None:
    text = (
        "para\n\n# h\ntext\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```\n\ncode\n```\n\n    indented\n"
    )
    blocks = outline(text).blocks
    assert [(block.kind, block.start, block.end) for block in blocks] == [
        ("text", 0, 1),
        ("heading", 2, 3),
        ("text", 3, 4),
        ("table", 4, 7),
        ("fence", 8, 12),
        ("code", 13, 14),
    ]
