"""The notes tools over ``qmd mcp``: a process, two pipes, a vault on the disk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.mcp_client import RawClient, qmd_mcp

from qmd import KnowledgeBase

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

Start = Callable[..., RawClient]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begins a server on the database of ``tmp_path``, whose collection is ``notes``."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/old.md").write_bytes(b"# Old\n\na zebra\n")
    database = tmp_path / "index.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
    started: list[RawClient] = []

    def begin(*options: str) -> RawClient:
        client = RawClient([*qmd_mcp(database), *options], tmp_path / f"stderr-{len(started)}")
        started.append(client)
        return client

    yield begin
    for client in started:
        client.__exit__(None, None, None)


def good(data: str) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": data}],
        "structuredContent": {"success": True, "data": data},
        "isError": False,
    }


def bad(error: str) -> dict[str, Any]:
    return {
        "content": [{"type": "text", "text": error}],
        "structuredContent": {"success": False, "error": error},
        "isError": True,
    }


def test_alone_it_is_axon_with_three_tools(start: Start) -> None:
    client = start("--toolset", "notes")
    handshake = client.handshake()
    assert handshake["serverInfo"]["name"] == "Axon"
    assert list(handshake["capabilities"]) == ["tools"]
    listed = client.call("tools/list")["result"]["tools"]
    writes = {tool["name"]: not tool["annotations"].get("readOnlyHint", False) for tool in listed}
    assert writes == {"read_note": False, "create_note": True, "list_folder": False}


def test_read_only_leaves_out_the_tool_that_writes(start: Start, tmp_path: Path) -> None:
    client = start("--toolset", "notes", "--read-only")
    client.handshake()
    listed = client.call("tools/list")["result"]["tools"]
    assert [tool["name"] for tool in listed] == ["read_note", "list_folder"]
    refused = "Writing is switched off here. Start it without --read-only to allow it."
    assert client.tool("create_note", path="notes/old", content="x") == {
        "_meta": {"qmd/error": "note_access"},
        **bad(f"Failed to write file: {refused}"),
    }
    assert client.call("tools/call", {"name": "delete_note"})["error"]["code"] == -32602
    assert client.tool("read_note", path="notes/old") == good("# Old\n\na zebra\n")
    assert (tmp_path / "notes/old.md").read_bytes() == b"# Old\n\na zebra\n"


def test_results_and_errors_are_worded_as_specified(start: Start, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    client = start("--toolset", "notes", "--vault", str(vault))
    client.handshake()
    text = "# 备份\r\n\r\n```json:tool\n{}\n```\n🙂 \u2028 no newline at the end"
    steps: list[tuple[str, dict[str, object], dict[str, Any]]] = [
        ("list_folder", {"path": ""}, good("(empty folder)")),
        ("create_note", {"path": "/a/b.txt", "content": text}, good("File created: a/b.txt.md")),
        ("create_note", {"path": "a/b.txt", "content": ""}, good("File overwritten: a/b.txt.md")),
        (
            "create_note",
            {"path": "a/b.txt", "content": text, "mode": "append", "unknown": 1},
            good("Content appended to: a/b.txt.md"),
        ),
        ("read_note", {"path": "a/b.txt.md"}, good(text)),
        ("list_folder", {"path": "a/"}, good("📄 b.txt.md")),
        ("list_folder", {"path": "/"}, good("📁 a")),
        ("read_note", {"path": "nowhere"}, bad("File not found: nowhere.md")),
        ("read_note", {"path": " "}, bad("Path cannot be empty")),
        ("list_folder", {"path": "nowhere"}, bad("Folder not found: nowhere")),
        ("list_folder", {"path": "a/b.txt.md"}, bad("Path is not a folder: a/b.txt.md")),
        (
            "create_note",
            {"path": "a:b", "content": ""},
            bad('Invalid path: contains illegal characters (<>:"|?*)'),
        ),
        ("read_note", {}, bad("Invalid parameters: Missing required parameter: path")),
        (
            "create_note",
            {"path": "a", "content": None},
            bad("Invalid parameters: Missing required parameter: content"),
        ),
        (
            "create_note",
            {"path": "a", "content": 5},
            bad("Invalid parameters: Parameter 'content' must be a string"),
        ),
        (
            "create_note",
            {"path": "a", "content": "", "mode": ""},
            bad("Invalid parameters: Parameter 'mode' must be one of: overwrite, append"),
        ),
    ]
    for tool, arguments, expected in steps:
        reply = client.tool(tool, **arguments)
        code = reply.pop("_meta", {}).get("qmd/error")
        assert (reply, bool(code)) == (expected, expected["isError"]), (tool, arguments)
    assert (vault / "a/b.txt.md").read_bytes() == text.encode()
    assert [each.name for each in vault.rglob("*")] == ["a", "b.txt.md"]


def test_what_may_have_been_meant_stands_beside_the_error(start: Start, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / "notes" / name).mkdir()
        (tmp_path / "notes" / name / "plan.md").touch()
    client = start("--toolset", "notes")
    client.handshake()
    result = client.tool("read_note", path="plan")
    assert [each["text"] for each in result["content"]] == [
        "File not found: plan.md",
        "Did you mean: notes/a/plan.md, notes/b/plan.md",
    ]
    assert result["structuredContent"] == {
        "success": False,
        "error": "File not found: plan.md",
        "suggestions": ["notes/a/plan.md", "notes/b/plan.md"],
    }
    meant = client.tool("read_note", path="OLD")
    assert meant["content"] == [{"type": "text", "text": "# Old\n\na zebra\n"}]
    assert meant["structuredContent"]["path"] == "notes/old.md"


def test_a_refused_write_says_which_option_allows_it(start: Start, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    client = start("--toolset", "notes", "--write-root", str(tmp_path / "root"))
    client.handshake()
    result = client.tool("create_note", path="notes/new", content="x")
    assert result["isError"] is True
    error = result["structuredContent"]["error"]
    assert error.startswith("Failed to write file: ")
    assert "--write-root" in error
    assert not (tmp_path / "notes/new.md").exists()


@pytest.mark.parametrize("where", ["collections", "vault"])
def test_a_search_finds_new_text_as_soon_as_create_note_has_answered(
    start: Start, tmp_path: Path, where: str
) -> None:
    vault = ["--vault", str(tmp_path / "notes/sub")] if where == "vault" else []
    folder, file = ("", "notes/sub/") if vault else ("notes/", "notes/")
    client = start("--no-watch", *vault)
    client.handshake()
    for number in range(5):
        client.tool("create_note", path=f"{folder}new", content=f"w{number}aardvark 数据{number}库")
        for query in (f"w{number}aardvark", f"数据{number}库"):
            (hit,) = client.tool("search", query=query)["structuredContent"]["results"]
            assert hit["file"] == f"{file}new.md"
    assert client.tool("search", query="w3aardvark")["structuredContent"]["results"] == []


def test_appends_of_two_servers_at_once_all_survive_whole(start: Start, tmp_path: Path) -> None:
    clients = [start("--toolset", "notes", "--no-watch") for _ in range(2)]
    for client in clients:
        client.handshake()
    lines = [f"{who}-{number}-" + "x" * 5000 + "\n" for who in (0, 1) for number in range(20)]
    for line in lines:  # all are asked before any is awaited
        arguments = {"path": "notes/log", "content": line, "mode": "append"}
        clients[int(line[0])].request("tools/call", {"name": "create_note", "arguments": arguments})
    for client in clients:
        for _ in range(20):
            answer = client.receive()
            assert answer is not None and answer["result"]["isError"] is False, answer
    written = (tmp_path / "notes/log.md").read_text()
    assert sorted(written.splitlines(keepends=True)) == sorted(lines)
    assert clients[0].tool("read_note", path="notes/log") == good(written)


def test_of_notes_written_over_each_other_one_is_there_whole(start: Start, tmp_path: Path) -> None:
    client = start("--toolset", "notes", "--no-watch")
    client.handshake()
    texts = [str(number) * 20_000 for number in range(10)]
    for text in texts:
        arguments = {"path": "notes/one", "content": text}
        client.request("tools/call", {"name": "create_note", "arguments": arguments})
    said = [client.receive() for _ in texts]
    assert sum("created" in str(each) for each in said) == 1
    assert sum("overwritten" in str(each) for each in said) == 9
    assert (tmp_path / "notes/one.md").read_text() in texts
