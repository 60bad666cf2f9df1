"""update_summary over ``qmd mcp``: a process, two pipes, files on the disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.golden import assert_golden
from support.mcp_client import RawClient, qmd_mcp

from qmd import KnowledgeBase
from qmd.tools.toolsets import select

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

Start = Callable[..., RawClient]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Begins servers on the database of ``tmp_path``, whose collection is ``notes``."""
    (tmp_path / "notes").mkdir()
    database = tmp_path / "index.sqlite"
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(tmp_path / "notes")
    started: list[RawClient] = []

    def begin(*options: str) -> RawClient:
        client = RawClient([*qmd_mcp(database), *options], tmp_path / f"stderr-{len(started)}")
        started.append(client)
        client.handshake()
        return client

    yield begin
    for client in started:
        client.__exit__(None, None, None)


def result(reply: dict[str, Any]) -> dict[str, Any]:
    """The JSON of a reply, the same as text and as structured content."""
    (block,) = reply["content"]
    assert block["type"] == "text"
    assert json.loads(block["text"]) == reply["structuredContent"]
    assert reply["isError"] == (reply["structuredContent"]["status"] == "error")
    return dict(reply["structuredContent"])


def test_alone_it_is_summarymcp_with_one_tool(start: Start, tmp_path: Path) -> None:
    database = tmp_path / "index.sqlite"
    command = [*qmd_mcp(database), "--toolset", "summary"]
    with RawClient(command, tmp_path / "stderr") as client:
        assert client.handshake()["serverInfo"]["name"] == "SummaryMCP"
        (tool,) = client.call("tools/list")["result"]["tools"]
    assert tool["name"] == "update_summary"
    (defined,) = select(["summary"]).tools
    assert_golden("summary_arguments.json", defined.input_schema())
    assert tool["inputSchema"] == defined.input_schema()
    hints = tool["annotations"]  # in MCP a tool writes and destroys unless these say otherwise
    assert not hints.get("readOnlyHint", False)
    assert hints.get("destructiveHint", True)


def test_success_and_failure_are_the_json_of_the_source(start: Start, tmp_path: Path) -> None:
    client = start("--toolset", "summary")
    path = tmp_path / "notes/2025/week.md"
    done = {
        "status": "success",
        "message": f"总结已成功追加至文件：{path}",
        "file_path": str(path),
    }
    for text in ("第一", "second 🙂\r\n"):
        reply = client.tool("update_summary", content=text, file_path=str(path))
        assert result(reply) == done
        assert reply["content"][0]["text"] == json.dumps(done, ensure_ascii=False)
    found = path.read_bytes().decode()
    assert re.fullmatch(
        r"第一\n\n---\n\n## 总结更新 \[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\]\n\nsecond 🙂\r\n", found
    )
    reply = client.tool("update_summary", content="x", file_path=str(path), mode="overwrite")
    assert result(reply)["message"] == f"总结已成功写入文件：{path}"
    assert path.read_bytes() == b"x"
    reply = client.tool("update_summary", content="x", file_path="x.txt")
    assert result(reply) == {
        "status": "error",
        "message": "Invalid file_path: must end with .md or .markdown",
    }
    path.chmod(0o444)
    reply = client.tool("update_summary", content="x", file_path=str(path))
    assert result(reply) == {
        "status": "error",
        "message": "写入文件失败：权限被拒绝。请检查文件是否已被打开或您是否有写权限。",
    }


def test_wrong_calls_are_told_one_by_one(start: Start, tmp_path: Path) -> None:
    client = start("--toolset", "summary")
    for arguments, message in (
        ({}, "Invalid content: is required"),
        ({"content": None, "file_path": "x.md"}, "Invalid content: is required"),
        ({"content": "x"}, "Invalid file_path: is required"),
        ({"content": "x", "file_path": "x.md", "mode": "prepend"}, "Invalid mode:"),
        (
            {"content": "x", "file_path": "x.md", "other": 1},
            "Invalid other: unknown argument (known: content, file_path, mode)",
        ),
        ({"content": ["x"], "file_path": "x.md"}, "Invalid content: must be a string"),
    ):
        answer = result(client.tool("update_summary", **arguments))
        assert answer["status"] == "error"
        assert answer["message"].startswith(message)
    arguments = {"content": "half \ud83d", "file_path": str(tmp_path / "notes/x.md")}
    params = {"name": "update_summary", "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": params}
    client.send_line(json.dumps(call).encode())
    reply = client.receive()
    assert reply is not None
    assert reply["id"] == 99
    assert "error" in reply or reply["result"]["isError"]
    assert list((tmp_path / "notes").iterdir()) == []


def test_a_refusal_says_which_option_would_allow_it(start: Start, tmp_path: Path) -> None:
    client = start("--toolset", "summary", "--write-root", str(tmp_path / "notes"))
    answer = result(client.tool("update_summary", content="x", file_path=str(tmp_path / "x.md")))
    assert f"--write-root {tmp_path}" in answer["message"]
    assert not (tmp_path / "x.md").exists()
    client = start("--toolset", "qmd,summary", "--read-only")
    listed = [tool["name"] for tool in client.call("tools/list")["result"]["tools"]]
    assert "search" in listed
    assert "update_summary" not in listed
    answer = result(client.tool("update_summary", content="x", file_path="x.md"))
    assert "只读" in answer["message"]
    assert "--read-only" in answer["message"]


def test_what_it_wrote_is_found_at_once(start: Start, tmp_path: Path) -> None:
    """While another process keeps the index."""
    keeping = start()
    client = start("--toolset", "all")
    for number in range(8):
        path = str(tmp_path / f"notes/{number % 2}.md")
        client.tool("update_summary", content=f"sourdough{number} 数据库{number}", file_path=path)
        hits = client.tool("search", query=f"sourdough{number}")["structuredContent"]["results"]
        assert [hit["file"] for hit in hits] == [f"notes/{number % 2}.md"]
    hits = keeping.tool("search", query='"数据库7"')["structuredContent"]["results"]
    assert [hit["file"] for hit in hits] == ["notes/1.md"]


def test_calls_sent_at_once_all_survive(start: Start, tmp_path: Path) -> None:
    clients = [start("--toolset", "summary"), start("--toolset", "all")]
    path = tmp_path / "notes/x.md"
    for number in range(10):
        for name, client in zip("ab", clients, strict=True):
            arguments = {"content": f"{name}{number}", "file_path": str(path)}
            client.request("tools/call", {"name": "update_summary", "arguments": arguments})
    for client in clients:
        for _ in range(10):
            reply = client.receive()
            assert reply is not None
            assert result(reply["result"])["status"] == "success"
    written = re.findall(r"^([ab]\d)$", path.read_text(), re.MULTILINE)
    assert sorted(written) == [f"{name}{number}" for name in "ab" for number in range(10)]
    assert path.read_text().count("## 总结更新 [") == 19
