"""A canvas is a document of its cards' text, with their files as embeds."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.errors import DamagedFileError
from qmd.parse import document as by_format
from qmd.parse.canvas import MAX_GROUPS
from qmd.parse.formats import CANVAS
from qmd.values import ParsedDocument


def node(kind: str, x: float = 0, y: float = 0, size: float = 10, **fields: Any) -> dict[str, Any]:
    return {"type": kind, "x": x, "y": y, "width": size, "height": size, **fields}


def parse(nodes: list[Any], edges: list[Any] | None = None, path: str = "Map.canvas") -> Any:
    data = json.dumps({"nodes": nodes, "edges": edges or []}).encode()
    return by_format.parse(CANVAS, path, data)


def test_cards_are_paragraphs_in_reading_order_and_groups_headings() -> None:
    document: ParsedDocument = parse(
        [
            node("text", 300, 300, text="inside the inner group"),
            node("group", 0, 0, 500, label="Outer"),
            node("group", 250, 250, 100, label="Inner"),
            node("text", 20, 10, text="right"),
            node("text", 10, 10, text="# left\n\n#tag and [[Note]]", id="a"),
            node("file", 10, 100, file="Notes/Plan.md", subpath="#Part", id="b"),
            node("link", 900, 900, url="https://example.org/a"),
            node("text", 900, -10, text="first"),
            node("group", 600, 0, 5),
            node("unknown", 0, 0),
        ],
        [
            {"fromNode": "a", "toNode": "b", "label": "leads\nto"},
            {"fromNode": "a", "toNode": "b"},
            {"fromNode": "a", "toNode": "gone", "label": "no end"},
        ],
    )
    assert document.text == (
        "first\n\n"
        "[https://example.org/a](<https://example.org/a>)\n\n"
        "- left → Plan: leads to\n- left → …: no end\n\n"
        "## Outer\n\n"
        "# left\n\n#tag and [[Note]]\n\n"
        "right\n\n"
        "![[Notes/Plan.md#Part]]\n\n"
        "### Inner\n\n"
        "inside the inner group\n"
    )
    assert (document.title, document.title_source) == ("Map", "filename")
    assert document.tags == ("tag",)
    assert [(link.kind, link.target, link.heading) for link in document.links] == [
        ("link", "https://example.org/a", None),
        ("wikilink", "Note", None),
        ("embed", "Notes/Plan.md", "Part"),
    ]
    assert document.warnings == ()


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", ""),
        (b" \n", ""),
        (b"{}", ""),
        (b'{"nodes": 1, "edges": [1, {}, null]}', ""),
        (b'{"nodes": [1, null, [], {"type": 5}, {"type": "text"}, {}]}', ""),
        (b'{"nodes": [{"type": "text", "text": "a", "x": NaN, "y": 1e999}]}', "a\n"),
        (b'{"nodes": [{"type": "text", "text": "\\ud800\\u0000"}]}', "\ufffd\ufffd\n"),
        (b'{"nodes": [{"type": "text", "text": "---\\na: b\\n---\\n"}]}', "\n---\na: b\n---\n"),
        (b'{"nodes": [{"type": "file", "file": "a[1].md"}]}', "![a1](<a[1].md>)\n"),
        (b'{"nodes": [{"type": "file", "file": "a 5% #1.md"}]}', "![a 5% #1](<a 5%25 %231.md>)\n"),
        (b'\xef\xbb\xbf{"nodes": [{"type": "text", "text": "bom"}]}', "bom\n"),
    ],
)
def test_odd_canvases_are_read_as_far_as_they_make_sense(data: bytes, text: str) -> None:
    document = by_format.parse(CANVAS, "a.canvas", data)
    assert document.text == text
    assert document.properties == {}


@pytest.mark.parametrize(
    "data", [b"# Text", b"[1]", b'"a"', b'{"nodes": [', b"[" * 100_000, b"1" * 5000]
)
def test_what_is_no_canvas_is_refused(data: bytes) -> None:
    with pytest.raises(DamagedFileError, match="no canvas"):
        by_format.parse(CANVAS, "a.canvas", data)


def test_an_open_fence_ends_with_its_card() -> None:
    document = parse([node("text", 0, 0, text="```py\ncode"), node("text", 0, 20, text="#tag")])
    assert document.text == "```py\ncode\n```\n\n#tag\n"
    assert document.tags == ("tag",)
    closed = parse([node("text", 0, 0, text="~~~\ncode\n~~~"), node("text", 0, 20, text="b")])
    assert closed.text == "~~~\ncode\n~~~\n\nb\n"


def test_equal_and_too_many_groups_lose_no_card() -> None:
    twins = [node("group", 0, 0, 100, label="Twin", id="g")] * 2
    assert (
        parse([*twins, node("text", 5, 5, text="card")]).text == ("## Twin\n\n### Twin\n\ncard\n")
        or parse([*twins, node("text", 5, 5, text="card")]).text.count("card") == 1
    )
    many = [node("group", 0, 1000 * n, 100, label=f"G{n}") for n in range(MAX_GROUPS + 5)]
    document = parse([*many, node("text", 5, 1000 * (MAX_GROUPS + 2), text="card")])
    assert document.text.startswith("card\n")
    assert document.warnings == ("The canvas has 205 groups; only 200 count.",)


_VALUES = st.none() | st.booleans() | st.floats() | st.text(max_size=20) | st.integers()
_NODES = st.dictionaries(
    st.sampled_from(
        ["id", "type", "x", "y", "width", "height", "text", "file", "subpath", "url", "label"]
    ),
    _VALUES | st.sampled_from(["text", "file", "link", "group"]),
)


@given(st.lists(_NODES, max_size=8), st.lists(_NODES, max_size=3))
def test_any_nodes_give_a_document(nodes: list[Any], edges: list[Any]) -> None:
    document = parse(nodes, edges)
    document.text.encode()
    assert "\0" not in document.text
    assert document.title == "Map"
