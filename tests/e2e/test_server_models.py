"""A server process whose models are elsewhere, slow, or changed by another program."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from support.cli import Scratch
from support.http_server import WAIT_S, Serving, qmd_server
from support.live import until
from support.model_server import ModelServer, hangs, says
from support.tiny_onnx import write_embedder

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

KEY = "sk-never-to-be-seen-0123"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    made = Scratch(tmp_path)
    made.write("notes/boat.md", "# Boat\n\na red boat lies in the harbour\n")
    made.write("notes/ship.md", "# Ship\n\nthe ship crossed the ocean\n")
    write_embedder(tmp_path / "one", 8)
    write_embedder(tmp_path / "two", 16, seed="two")
    made.ok("collection", "add", "notes")
    made.with_env(QMD_MODEL="./one").ok("embed")
    return made


def serving(scratch: Scratch, **env: str) -> Serving:
    environment = scratch.environment | {"QMD_MODEL_BUDGET": "0.2"} | env
    return qmd_server(scratch.database, environment=environment)


@pytest.fixture
def silent() -> Iterator[ModelServer]:
    with ModelServer(hangs()) as server:
        yield server


def tool(server: Serving, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    async def run() -> dict[str, Any]:
        with anyio.fail_after(WAIT_S):
            async with Client(f"{server.url}/mcp") as client:
                result = await client.call_tool(name, arguments)
        assert result.structured_content is not None
        return result.structured_content

    return anyio.run(run)


def test_a_model_that_never_answers_degrades_every_face(
    scratch: Scratch, silent: ModelServer
) -> None:
    asked = {"QMD_EXPANDER": "llm", "QMD_LLM_URL": silent.url, "QMD_LLM_API_KEY": KEY}
    asked["QMD_MODEL_BUDGET"] = "1"  # enough to ask, which is counted below
    with serving(scratch, **asked) as server:
        reply = server.ask("POST", "/query", {"query": "red boat"}).json()
        assert reply["results"][0]["file"] == "notes/boat.md"
        assert "Not expanded" in reply["degraded"]
        told = tool(server, "query", {"query": "red ship"})
        assert "Not expanded" in told["degraded"]
        again = server.ask("POST", "/query", {"query": "red house"}).json()
        assert "is not asked for" in again["degraded"]
        assert server.ask("GET", "/health").json()["status"] == "healthy"
        seen = server.stderr + str(reply) + str(told)
        if sys.platform == "linux":
            seen += Path(f"/proc/{server.process.pid}/cmdline").read_text()
        assert KEY not in seen
        silent.wait_for(2)  # who has given up may be about to ask
        assert server.stop() == 0
    assert len(silent.requests) == 2
    assert silent.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_what_the_language_model_said_is_remembered_by_the_database(scratch: Scratch) -> None:
    with ModelServer(says("lex: ocean")) as model:
        asked = {"QMD_EXPANDER": "llm", "QMD_LLM_URL": model.url, "QMD_MODEL_BUDGET": "60"}
        with serving(scratch, **asked) as server:
            first = server.ask("POST", "/query", {"query": "red boat", "explain": True}).json()
            assert server.stop() == 0
        command = scratch.with_env(**asked).run("query", "red boat", "--explain", "--json")
    assert "degraded" not in first
    assert {hit["file"] for hit in command.json()} == {hit["file"] for hit in first["results"]}
    assert '"query": "ocean"' in command.out
    assert len(model.requests) == 1


def test_a_running_server_changes_the_model_that_another_program_chose(scratch: Scratch) -> None:
    two = str(scratch.root / "two")
    with serving(scratch) as server:
        until(lambda: not server.ask("GET", "/status").json()["freshness"]["indexing"])
        told = scratch.run("models", "use", two)
        assert "in the background" in told.out

        def changed() -> bool:
            found = server.ask("POST", "/vsearch", {"query": "red boat", "min_score": 0}).json()
            assert len(found["results"]) == 2
            return bool(scratch.ok("status", "--json").json()["model"] == two)

        until(changed)
        vectors = server.ask("POST", "/embed", {"texts": ["red boat"]}).json()["embeddings"]
        assert len(vectors[0]) == 16
        # A command beside it lets it embed the question.
        assert len(scratch.run("vsearch", "red boat", "--min-score", "0", "--json").json()) == 2
        assert server.stop() == 0
