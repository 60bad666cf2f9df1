"""The toolset ``graph``, as a client sees it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, TextContent
from support.mcp_client import assert_few_bytes, with_client

from qmd import KnowledgeBase
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import select

NOTES = {
    "MOC.md": "# Map\n\n[[plan]] and [[plans]]\n#work/maps\n",
    "plan.md": "# Plan\n\n[[plan#Costs]]\n#work\n",
    "alone.md": "---\nstatus: draft\nrating: 4\n---\n# Alone\n",
}


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpFace]:
    folder: Path = tmp_path_factory.mktemp("graph")
    (folder / "notes").mkdir()
    for name, text in NOTES.items():
        (folder / "notes" / name).write_text(text)
    with KnowledgeBase.open(folder / "index.sqlite", create=True) as kb:
        kb.add_collection(folder / "notes", name="notes")
        kb.index()
        yield McpFace(kb, select(["graph"]))


def call(face: McpFace, name: str, **arguments: Any) -> CallToolResult:
    return with_client(face.server, lambda client: client.call_tool(name, arguments))


def texts(result: CallToolResult) -> list[str]:
    assert not result.is_error
    return [block.text for block in result.content if isinstance(block, TextContent)]


def test_the_links_of_a_note_in_both_directions(face: McpFace) -> None:
    result = call(face, "links", file="plan")
    assert texts(result) == [
        "Links in notes/plan.md: 1\n3: plan#Costs → notes/plan.md (no such section)",
        "Links to notes/plan.md: 1\nnotes/MOC.md:3: [[plan]] and [[plans]]",
    ]
    assert result.structured_content is not None
    assert result.structured_content["backlinks"]["links"][0]["line"] == 3


def test_links_are_checked(face: McpFace) -> None:
    assert texts(call(face, "check_links", collection="notes", limit=1)) == [
        "Links that lead nowhere: 2\n"
        "notes/MOC.md:3: plans (did you mean notes/plan.md)\n… 1 more: raise limit or maxTokens",
        "Documents to which no other links: 2\n"
        "notes/MOC.md - Map\n… 1 more: raise limit or maxTokens",
    ]


def test_tags_and_recent_changes(face: McpFace) -> None:
    (tags,) = texts(call(face, "tags", prefix="work/"))
    assert tags == "Tags, with their documents: 2\n#work 2\n  #work/maps 1"
    (recent,) = texts(call(face, "recent", since="1d"))
    assert recent.startswith("Changed last: 3\n") and " disk notes/" in recent


def test_properties_and_the_values_of_one(face: McpFace) -> None:
    assert texts(call(face, "properties")) == [
        "Properties, with their documents: 2\nrating 1 (number)\nstatus 1 (text)"
    ]
    result = call(face, "properties", key="status", max_tokens=300)
    assert texts(result) == ["Values of status, with their documents: 1\ndraft 1"]
    assert result.structured_content == {
        "keys": [],
        "values": [{"value": "draft", "kind": "text", "documents": 1}],
        "total": 1,
    }


def test_errors_say_what_to_do(face: McpFace) -> None:
    for name, arguments, advice in (
        ("links", {"file": "plann"}, "notes/plan.md"),
        ("recent", {"since": "tomorrowish"}, "7d"),
        ("similar", {"file": "plan"}, "qmd embed"),
        ("tags", {"collection": "note"}, "notes"),
        ("tags", {"limit": 0}, "limit"),
        ("properties", {"key": "none"}, "To see the properties of one note, get the note."),
    ):
        result = call(face, name, **arguments)
        assert result.is_error
        (block,) = result.content
        assert isinstance(block, TextContent) and advice in block.text


def test_the_listing_is_small(face: McpFace) -> None:
    tools = with_client(face.server, lambda client: client.list_tools()).tools
    names = {tool.name for tool in tools}
    assert {"links", "check_links"} <= names  # which stand for
    assert not {"backlinks", "broken", "orphans"} & names
    listing = [tool.model_dump(mode="json", by_alias=True, exclude_none=True) for tool in tools]
    assert_few_bytes(listing, 5_600)
