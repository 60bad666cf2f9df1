"""The span of a link's path holds exactly the characters that a rename replaces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.parse.document import parse_document
from qmd.parse.links import link_spans


@pytest.mark.parametrize(
    ("text", "path", "whole", "form"),
    [
        ("see [[Note]].", "Note", "[[Note]]", "wikilink"),
        ("see ![[ Note#Part | shown ]].", "Note", "[[ Note#Part | shown ]]", "wikilink"),
        ("| [[Note\\|shown]] |", "Note", "[[Note\\|shown]]", "wikilink"),
        ("[[#Part]]", "", "[[#Part]]", "wikilink"),
        ("[a](b%20c.md#x)", "b%20c.md", "[a](b%20c.md#x)", "inline"),
        ("![a](b.png 'title')", "b.png", "[a](b.png 'title')", "inline"),
        ("[a](<b c.md#x>)", "b c.md", "[a](<b c.md#x>)", "angle"),
        ("[a](b\\).md 'x')", "b\\).md", "[a](b\\).md 'x')", "inline"),
        ("[a](https://x.org/#r)", "https://x.org/#r", "[a](https://x.org/#r)", "inline"),
        ("[a][r]\n\n[r]: b.md#x", "b.md", "[a][r]", "definition"),
        ("[r]\n\n[r]: <b c.md>", "b c.md", "[r]", "angle definition"),
        ("[[Sq]uare|x]]", "Sq]uare", "[[Sq]uare|x]]", "wikilink"),
        ("[[F#do|`do()`]]", "F", "[[F#do|`do()`]]", "wikilink"),
        ('---\nup: "[[Sq]uare]]"\n---\n', "Sq]uare", "[[Sq]uare]]", "wikilink"),
        ('---\nup: "[[Note|x]]"\n---\n', "Note", "[[Note|x]]", "wikilink"),
        ("---\nup:\n  - '![[Note]]'\n---\n", "Note", "[[Note]]", "wikilink"),
        ('---\nup: "[n](b.md#x)"\n---\n', "b.md", "[n](b.md#x)", "inline"),
    ],
)
def test_a_path_span_is_the_path_as_written(text: str, path: str, whole: str, form: str) -> None:
    (span,) = link_spans(text)
    assert text[span.path_start : span.path_end] == path
    assert text[span.start : span.end] == whole
    assert span.form == form


def test_links_of_properties_are_those_that_obsidian_shows() -> None:
    text = (
        '---\nup: "[[A\'s]]"\nsee: [\'[[B]]\', "[t](c.md)"]\nnested: [[D]]\n'
        'some: "text with [[E]]"\n---\n[[F]]\n'
    )
    assert [(link.target, link.line) for link in parse_document("n.md", text.encode()).links] == [
        ("A's", 2),
        ("B", 3),
        ("c.md", 3),
        ("F", 7),
    ]


def test_links_that_share_a_definition_share_its_span() -> None:
    text = "[a][r] and [b][r]\n\n[r]: x.md\n"
    first, second = link_spans(text)
    assert (first.path_start, first.path_end) == (second.path_start, second.path_end)
    assert first.start != second.start


@given(st.text(alphabet="ab[]()|#\\<> \n!'\":-", max_size=120), st.booleans())
def test_spans_of_any_text_are_those_of_its_links(body: str, with_properties: bool) -> None:
    text = f"---\n{body}\n---\n{body}" if with_properties else body
    spans = link_spans(text)
    assert [span.link for span in spans] == list(parse_document("n.md", text.encode()).links)
    for span in spans:
        path = text[span.path_start : span.path_end]
        assert 0 <= span.path_start <= span.path_end <= len(text)
        if "\\" not in path:
            assert path == span.link.target
