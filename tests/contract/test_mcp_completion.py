"""Completing the path of the resource template."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from mcp.server import Server
from mcp_types import PromptReference, ResourceTemplateReference
from support.mcp_client import Mode, with_client
from support.vault import make_index

from qmd import KnowledgeBase
from qmd.server.mcp import McpFace

TEMPLATE = ResourceTemplateReference(type="ref/resource", uri="qmd://{+path}")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with KnowledgeBase.open(make_index(tmp_path_factory.mktemp("vault"))) as kb:
        yield McpFace(kb).server


def complete(server: Server, begun: str, mode: Mode = "legacy") -> list[str]:
    result = with_client(
        server,
        lambda client: client.complete(TEMPLATE, {"name": "path", "value": begun}),
        mode=mode,
    )
    assert result.completion.total == len(result.completion.values)
    assert not result.completion.has_more
    return result.completion.values


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_a_path_is_completed_step_by_step(server: Server, mode: Mode) -> None:
    assert complete(server, "not", mode) == ["notes/"]
    assert complete(server, "notes/2025/p", mode) == ["notes/2025/plan.md"]
    assert len(complete(server, "notes/2025/", mode)) == 3


@pytest.mark.parametrize("begun", ["plan", "PL"])
def test_a_file_name_is_completed_to_its_path(server: Server, begun: str) -> None:
    assert "notes/2025/plan.md" in complete(server, begun)


@pytest.mark.parametrize(
    "begun", ["x", "nowhere/", "notes/nowhere/", "/", "..", "notes/../", "\ud800/", "%"]
)
def test_what_no_document_begins_with_has_no_completion(server: Server, begun: str) -> None:
    assert complete(server, begun) == []


def test_the_prompt_takes_no_arguments_to_complete(server: Server) -> None:
    prompt = PromptReference(type="ref/prompt", name="query")
    result = with_client(server, lambda c: c.complete(prompt, {"name": "x", "value": ""}))
    assert result.completion.values == []
