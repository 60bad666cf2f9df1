"""The toolset edit over ``qmd mcp``: the SDK's client, a process, two pipes, notes on the disk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters
from support import child
from support.cli import Scratch
from support.http_server import WITHOUT_MODEL
from support.mcp_client import RawClient, qmd_mcp, with_client

from qmd import KnowledgeBase

PLAN = "notes/plan.md"


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "plan.md").write_bytes(b"# Plan\r\n\r\n- [ ] call the bank\r\n")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
    return root


def server(tmp_path: Path) -> list[str]:
    return [*qmd_mcp(tmp_path / "index.sqlite"), "--toolset", "edit"]


async def call(client: Client, name: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(name, arguments)
    return {
        "text": result.content[0].text,  # type: ignore[union-attr]
        "error": result.is_error,
        **(result.structured_content or {}),
    }


@pytest.mark.parametrize("mode", [pytest.param("legacy", marks=pytest.mark.nightly), "2026-07-28"])
@pytest.mark.unmeasured
def test_an_agent_reads_edits_and_takes_it_back(tmp_path: Path, notes: Path, mode: Any) -> None:
    async def use(client: Client) -> None:
        tools = (await client.list_tools()).tools
        assert {"edit_note", "delete_note", "undo"} <= {tool.name for tool in tools}
        # A tool that says nothing of it is destructive, by the specification of MCP.
        assert all(
            tool.annotations and tool.annotations.destructive_hint is not False for tool in tools
        )
        preview = await call(
            client, "edit_note", file="plan", action="tick", old="bank", preview=True
        )
        assert preview["written"] is False
        edit = await call(client, "edit_note", file="plan", action="tick", old="bank")
        assert (edit["file"], edit["diff"]) == (PLAN, preview["diff"])
        assert b"[x]" in (notes / "plan.md").read_bytes()
        later = await call(
            client, "edit_note", file=edit["docid"], action="append", text="- [ ] new"
        )
        refused = await call(client, "delete_note", file=PLAN, if_docid=edit["docid"])
        assert refused["error"]
        assert "+- [ ] new" in refused["text"]
        await call(client, "delete_note", file=PLAN, if_docid=later["docid"])
        assert not (notes / "plan.md").exists()
        undone = await call(client, "undo", session=True)
        assert len(undone["undone"]) == 3

    command, *arguments = server(tmp_path)
    process = StdioServerParameters(command=command, args=arguments, env=WITHOUT_MODEL)
    with_client(process, use, mode=mode)
    assert (notes / "plan.md").read_bytes() == b"# Plan\r\n\r\n- [ ] call the bank\r\n"
    with KnowledgeBase.open(tmp_path / "index.sqlite") as kb:
        sessions = {change.session for change in kb.undo.changes()}
        assert len(sessions) == 1
        assert next(iter(sessions)).startswith("mcp-")


def test_the_command_undoes_what_an_agent_wrote(tmp_path: Path, notes: Path) -> None:
    with RawClient(server(tmp_path), tmp_path / "stderr") as client:
        client.handshake()
        client.tool("edit_note", file="plan", action="append", text="by the agent")
    scratch = Scratch(tmp_path)
    database = str(tmp_path / "index.sqlite")
    (listed,) = scratch.ok("undo", "--list", "--json", "--db", database).json()
    assert listed["tool"] == "edit_note"
    assert f"edit_note  {listed['session']}" in scratch.ok("history", PLAN, "--db", database).out
    scratch.ok("undo", "--session", listed["session"], "--db", database)
    assert (notes / "plan.md").read_bytes() == b"# Plan\r\n\r\n- [ ] call the bank\r\n"
    scratch.ok("rm", "plan", "--db", database)
    assert not (notes / "plan.md").exists()
    scratch.ok("undo", "--db", database)
    (notes / "plan.md").write_text("by hand\n")
    scratch.ok("note", "create", PLAN, "--overwrite", "--content", "x", "--db", database)
    (notes / "plan.md").write_text("by hand again\n")
    refused = scratch.call("undo", "--db", database)
    assert refused.code == 1
    assert "It was changed since" in refused.out
    assert "-by hand again" in refused.out
    assert (notes / "plan.md").read_text() == "by hand again\n"


EDIT = """
import sys
from qmd import KnowledgeBase
from qmd.values.writing import NoteEdit
with KnowledgeBase.open(sys.argv[1]) as kb:
    for number in range(8):
        kb.edit_note("notes/plan.md", NoteEdit("append", text=f"- {sys.argv[2]}{number}"))
"""


def test_two_processes_edit_one_note_and_no_edit_is_lost(tmp_path: Path, notes: Path) -> None:
    database = tmp_path / "index.sqlite"
    processes = [child.start(EDIT, database, name) for name in ("a", "b")]
    for process in processes:
        child.finish(process)
    lines = (notes / "plan.md").read_text().splitlines()
    assert sorted(line for line in lines if line[:3] in ("- a", "- b")) == sorted(
        f"- {name}{number}" for name in ("a", "b") for number in range(8)
    )
    with KnowledgeBase.open(database) as kb:
        assert kb.get(PLAN).text == (notes / "plan.md").read_bytes().decode()
