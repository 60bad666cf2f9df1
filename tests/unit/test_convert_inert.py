"""Text of other formats means nothing in Markdown, and stays what it is otherwise."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.parse.convert.blocks import code_span, fenced, inert, inert_lines, link
from qmd.parse.converted import Converted
from qmd.parse.document import parse_literal
from qmd.parse.markdown import outline
from qmd.values import ParsedDocument

MEANINGFUL = st.lists(
    st.sampled_from(
        [
            *("#", "tag", "#tag", "[[", "]]", "[", "](", ")", "(", "key:: value", "::", " ", "\n"),
            *("\\", "`", "```", "~~~", "<!--", "-->", "<pre>", "%%", "---", "===", "+++", "a", "|"),
            *(
                "\r",
                "\t",
                "    ",
                "- ",
                "> ",
                "[a]: b",
                "!",
                "&amp;",
                "文",
                "a: b",
                "<",
                "1. ",
                ":",
            ),
            *("\x0b", "\u2028", "\u3000", "_", "**", "[^1]", "🎉", "#🎉", "title: x"),
        ]
    ),
    max_size=30,
).map("".join)


def parsed(text: str) -> ParsedDocument:
    return parse_literal("a.html", Converted(text), has_links=True)


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("see #tag, [[Note]], status:: done", "see #tag, [[Note]], status:: done"),
        ("#include <stdio.h>", r"#include \<stdio.h>"),
        ("[a](b), [a] (b), [[[c](d)", r"[a]\(b), [a] (b), [[[c]\(d)"),
        ("List<int>, a < b", r"List\<int>, a < b"),
        ("<https://a.org>, <a@b.org>", "<https://a.org>, <a@b.org>"),
        (
            "snake_case *args **kwargs C# C++ `code` $5",
            "snake_case *args **kwargs C# C++ `code` $5",
        ),
        ("AT&T &amp; &#34; 50%% ~~~ ```", r"AT&T \&amp; \&#34; 50%\% \~~~ \```"),
        (r"[a\](b) \<b> \\<b>", r"[a\](b) \<b> \\\<b>"),
    ],
)
def test_only_what_would_mean_something_is_marked(text: str, marked: str) -> None:
    assert inert(text) == marked


@given(MEANINGFUL)
def test_lines_of_text_have_nothing_but_text(text: str) -> None:
    document = parsed(inert_lines(text))
    assert (document.tags, document.links, document.headings) == ((), (), ())
    assert (document.properties, document.body_start) == ({}, 0)
    assert inert_lines(text).replace("\\", "") == text.replace("\\", "")
    kinds = {block.kind for block in outline(inert_lines(text)).blocks}
    assert not kinds & {"fence", "html", "heading"}


@given(MEANINGFUL)
def test_code_is_code(text: str) -> None:
    code = text.replace("\r", "\n")
    (block,) = outline(fenced(code, "c++")).blocks
    assert block.kind == "fence"
    document = parsed(f"a {code_span(code)} b")
    if code.strip() and "\n" not in code:
        assert (document.tags, document.links, document.properties) == ((), (), {})


@given(MEANINGFUL, MEANINGFUL)
def test_a_link_is_one_link_or_its_text(text: str, target: str) -> None:
    label = inert(" ".join(text.split()))
    written = link(label, target.strip())
    links = parsed(f"x {written} y").links
    assert len(links) == (written != label)


@pytest.mark.parametrize(
    ("target", "written"),
    [
        ("b.md", "[a](b.md)"),
        ("b c.md", "[a](<b c.md>)"),
        ("b(1).md", "[a](<b(1).md>)"),
        ("", "a"),
        ("a<b", "a"),
        ("x" * 3000, "a"),
    ],
)
def test_targets(target: str, written: str) -> None:
    assert link("a", target) == written
