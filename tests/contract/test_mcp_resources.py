"""Documents as ``qmd://`` resources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from mcp import MCPError
from mcp.server import Server
from mcp_types import TextResourceContents
from support.mcp_client import Mode, with_client
from support.vault import make_index

from qmd import KnowledgeBase
from qmd.server.mcp import McpFace
from qmd.server.mcp_wire import document_path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server[Any]]:
    with KnowledgeBase.open(make_index(tmp_path_factory.mktemp("resources"))) as kb:
        yield McpFace(kb).server


def read(server: Server[Any], uri: str, mode: Mode = "legacy") -> TextResourceContents:
    result = with_client(server, lambda client: client.read_resource(uri), mode=mode)
    (contents,) = result.contents
    assert isinstance(contents, TextResourceContents)
    return contents


def refused(server: Server[Any], uri: str, mode: Mode = "legacy") -> tuple[int, str]:
    with pytest.raises(MCPError) as caught:
        read(server, uri, mode)
    return caught.value.error.code, caught.value.error.message


def test_a_resource_has_numbered_lines_behind_its_context(server: Server[Any]) -> None:
    contents = read(server, "qmd://notes/2025/plan.md")
    assert contents.uri == "qmd://notes/2025/plan.md"
    assert contents.mime_type == "text/markdown"
    assert contents.meta == {"name": "notes/2025/plan.md", "title": "Plan"}
    assert contents.text == (
        "<!-- Context: the year 2025 -->\n\n"
        "1: # Plan\n2: \n3: Buy a boat.\n4: Sail to the islands.\n5: Come back.\n"
    )


@pytest.mark.parametrize(
    ("uri", "title"),
    [
        ("qmd://notes/2025/%20meeting.md", "Meeting"),
        ("qmd://notes%2F2025%2F%20meeting.md", "Meeting"),
        ("qmd://notes/2025/%E5%9B%9E%E9%A1%BE.md", "年度回顾"),
        ("qmd://notes/2025/回顾.md", "年度回顾"),
        ("qmd://notes/External%20Podcast/2023%20April%20-%20Interview.md", "Interview"),
        ("qmd://notes/100%25.md", "Percent"),
        ("qmd://notes/a%2520b.md", "Literal"),
        ("qmd://plan.md", "Plan"),
        ("qmd://2025/plan.md", "Plan"),
    ],
)
def test_a_uri_is_decoded_once_then_matched_exactly_or_by_its_end(
    server: Server[Any], uri: str, title: str
) -> None:
    assert (read(server, uri).meta or {})["title"] == title


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("qmd://notes/nowhere.md", "notes/nowhere.md"),
        ("qmd://lan.md", "lan.md"),
        ("qmd://notes/2025/../2025/plan.md", "notes/2025/../2025/plan.md"),
        ("qmd://notes/../../../etc/passwd", "notes/../../../etc/passwd"),
        ("qmd:///etc/passwd", "/etc/passwd"),
        ("qmd://%25", "%"),
        ("qmd://_lan.md", "_lan.md"),
    ],
)
def test_what_is_no_document_is_the_protocols_missing_resource(
    server: Server[Any], uri: str, path: str
) -> None:
    assert refused(server, uri) == (-32002, f"Document not found: {path}")


def test_the_code_for_a_missing_resource_is_that_of_the_revision(server: Server[Any]) -> None:
    assert refused(server, "qmd://nowhere.md", "2026-07-28") == (
        -32602,
        "Document not found: nowhere.md",
    )


@pytest.mark.parametrize("uri", ["qmd://", "qmd:///", "qmd://%20", "qmd://.", "qmd://./"])
def test_an_empty_path_matches_nothing(server: Server[Any], uri: str) -> None:
    assert document_path(uri) is None
    assert refused(server, uri)[0] == -32002


def test_another_scheme_is_no_document(server: Server[Any]) -> None:
    assert refused(server, "file:///etc/passwd") == (
        -32002,
        "Document not found: file:///etc/passwd",
    )
