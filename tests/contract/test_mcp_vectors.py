"""The tools where vectors are there, and where a model is slow."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import pytest
from mcp import Client
from mcp_types import CallToolResult, TextContent
from support.embedder import HashEmbedder
from support.mcp_client import WAIT_S, with_client
from support.vault import make_vault

from qmd import KnowledgeBase, Settings
from qmd.server.mcp import McpFace
from qmd.values.search import VSEARCH_MIN_SCORE

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class SlowModel(HashEmbedder):
    """Embeds a query only when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()
        self.go_on = threading.Event()

    def embed_query(self, text: str) -> NDArray[np.float32]:
        self.asked.set()
        assert self.go_on.wait(WAIT_S)
        return super().embed_query(text)


@pytest.fixture
def model() -> Iterator[SlowModel]:
    slow = SlowModel()
    yield slow
    slow.go_on.set()


@pytest.fixture
def kb(tmp_path: Path, model: SlowModel) -> Iterator[KnowledgeBase]:
    notes = make_vault(tmp_path)
    with KnowledgeBase.open(
        tmp_path / "index.sqlite", Settings(embedder=model), create=True
    ) as opened:
        opened.add_collection(notes, name="notes")
        opened.index()
        opened.embed()
        yield opened


def call(kb: KnowledgeBase, name: str, **arguments: Any) -> CallToolResult:
    async def use(client: Client) -> CallToolResult:
        await client.list_tools()  # so that the client checks results against the schemas
        return await client.call_tool(name, arguments)

    return with_client(McpFace(kb).server, use)


def test_vsearch_answers_by_meaning(kb: KnowledgeBase, model: SlowModel) -> None:
    model.go_on.set()
    result = call(kb, "vsearch", query="Plan Buy a boat. Sail to the islands. Come back.")
    hit = result.structured_content["results"][0]
    assert (hit["file"], hit["match"]) == ("notes/2025/plan.md", "semantic")
    assert list(result.structured_content) == ["results", "freshness"]
    assert all(each["score"] >= VSEARCH_MIN_SCORE for each in result.structured_content["results"])


def test_an_explicit_min_score_of_zero_lets_everything_through(
    kb: KnowledgeBase, model: SlowModel
) -> None:
    model.go_on.set()
    few = call(kb, "vsearch", query="sail to the islands").structured_content["results"]
    all_ = call(kb, "vsearch", query="sail to the islands", minScore=0).structured_content
    assert len(few) < len(all_["results"])


def test_query_with_vectors_is_not_degraded(kb: KnowledgeBase, model: SlowModel) -> None:
    model.go_on.set()
    result = call(kb, "query", query="islands")
    assert list(result.structured_content) == ["results", "freshness"]
    assert len(result.content) == 2  # the summary and the hits


def test_what_waits_for_its_vectors_is_counted(
    kb: KnowledgeBase, model: SlowModel, tmp_path: Path
) -> None:
    model.go_on.set()
    (tmp_path / "notes" / "new.md").write_text("# New\n\nA dromedary.\n", encoding="utf-8")
    kb.index()
    for tool in ("query", "vsearch"):
        assert call(kb, tool, query="x").structured_content["needsEmbedding"] == 1
    assert "needsEmbedding" not in call(kb, "search", query="x").structured_content


def test_status_is_silent_when_all_is_done(kb: KnowledgeBase) -> None:
    result = call(kb, "status")
    assert result.structured_content["needsEmbedding"] == 0
    assert result.structured_content["hasVectorIndex"] is True
    (block,) = result.content
    assert isinstance(block, TextContent)
    assert "  Vector index: yes\n" in block.text


def test_a_slow_call_holds_up_no_other(kb: KnowledgeBase, model: SlowModel) -> None:
    async def use(client: Client) -> list[str]:
        order: list[str] = []

        async def slow() -> None:
            await client.call_tool("vsearch", {"query": "islands"})
            order.append("vsearch")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(slow)
            await anyio.to_thread.run_sync(model.asked.wait, WAIT_S)
            await client.call_tool("search", {"query": "islands"})
            order.append("search")
            model.go_on.set()
        return order

    assert with_client(McpFace(kb).server, use) == ["search", "vsearch"]


def test_a_cancelled_call_leaves_the_server_serving(kb: KnowledgeBase, model: SlowModel) -> None:
    async def use(client: Client) -> CallToolResult:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(client.call_tool, "vsearch", {"query": "islands"})
            await anyio.to_thread.run_sync(model.asked.wait, WAIT_S)
            tasks.cancel_scope.cancel()
        return await client.call_tool("search", {"query": "islands"})

    face = McpFace(kb)
    result = with_client(face.server, use)
    assert len(result.structured_content["results"]) == 1
    assert not face.wait_until_idle(0)  # the call itself goes on until its model answers
    model.go_on.set()
    assert face.wait_until_idle(WAIT_S)
