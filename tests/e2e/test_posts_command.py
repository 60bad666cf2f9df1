"""Posts by the installed command and by a server process, as people and clients use them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import child
from support.cli import Scratch
from support.live import until
from support.mcp_client import RawClient, qmd_mcp

from qmd import KnowledgeBase

POST = "a/motions/2020-12-16_18_04_49_论温柔.md"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    found = Scratch(tmp_path)
    write(tmp_path / "data", POST, "## 论温柔\n\n温柔是一种能力。\n")
    write(tmp_path / "data", "a/专辑/2024-03-07_C++.md", "C++ 与温柔\n")
    return found


def write(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text, encoding="utf-8")


# --- the command ---------------------------------------------------------------------


def test_the_command_prints_what_the_tools_say(scratch: Scratch) -> None:
    assert scratch.run("posts", "authors").out == "已下载的作者（共 1 位）：\n- a\n"
    listed = scratch.run("posts", "list", "a").out
    assert f"- [2020-12-16] 论温柔 → {POST}\n" in listed
    assert scratch.run("posts", "read", POST).out == (
        f"📄 文件：{POST}\n\n## 论温柔\n\n温柔是一种能力。\n"
    )
    assert scratch.call("posts", "read", "--author", "a", "--title", "c++").out.startswith("📄")
    found = scratch.call("posts", "search", "c++").out
    assert found.startswith('搜索 "c++" 的结果（显示 1/1 条）：\n')
    assert "> 1 | **C++** 与温柔\n" in found
    assert scratch.call("posts", "search", "无").out == "未找到包含 '无' 的内容。\n"


COMMAND = """
import sys
from qmd.cli.main import main
sys.stderr = sys.stdout
sys.exit(main(sys.argv[1:]))
"""


def test_a_folder_that_cannot_be_read_is_named_beside_the_others(scratch: Scratch) -> None:
    closed = scratch.root / "data/a/专辑"
    closed.chmod(0)
    warning = "有 1 处无法读取，未列出：a/专辑"
    where = ["--db", scratch.root / "kb.sqlite", "posts", "--posts-dir", scratch.root / "data"]
    try:
        listed = child.unprivileged(COMMAND, *where, "list", "a")
        as_json = child.unprivileged(COMMAND, *where, "list", "a", "--json")
        read = child.unprivileged(COMMAND, *where, "read", "--author", "a", "--title", "c++")
    finally:
        closed.chmod(0o700)
    assert f"{POST}\n{warning}" in listed
    assert f"}}\n{warning}" in as_json
    assert read == f"未找到标题包含 'c++' 的文章\n{warning}"


def test_the_same_as_json(scratch: Scratch) -> None:
    post = {"path": POST, "date": "2020-12-16", "title": "论温柔"}
    assert scratch.call("posts", "authors", "--json").json() == ["a"]
    listed = scratch.call("posts", "list", "a", "--json").json()
    assert listed["groups"][0] == {"name": "motions", "posts": [post]}
    read = scratch.call("posts", "read", POST, "--json").json()
    assert read == post | {"text": "## 论温柔\n\n温柔是一种能力。\n"}
    several = scratch.call("posts", "read", "--author", "a", "--title", "", "--json")
    assert several.error()["message"] == "请提供 path 或 author+title 参数"
    none = scratch.call("posts", "read", "--author", "a", "--title", "无", "--json")
    assert none.json() == {"matches": []}
    found = scratch.call("posts", "search", "温柔", "-n", "2", "--json").json()
    assert (found["total"], len(found["hits"])) == (3, 2)
    assert found["hits"][1] == {
        "path": POST,
        "line": 3,
        "text": "温柔是一种能力。",
        "spans": [[0, 2]],
        "context": [
            {"line": 1, "text": "## 论温柔"},
            {"line": 2, "text": ""},
            {"line": 3, "text": "温柔是一种能力。"},
        ],
    }


def test_errors_say_what_to_do(scratch: Scratch) -> None:
    missing = scratch.call("posts", "list", "nobody")
    assert missing.code == 1
    assert missing.err.startswith("qmd: error: 作者不存在：nobody\nhint: ")
    away = scratch.call("posts", "--posts-dir", "none", "authors")
    assert (away.code, away.out) == (1, "")
    assert away.err.startswith("qmd: error: 数据目录不存在：none\nhint: ")


@pytest.mark.parametrize(
    "arguments",
    [
        ["posts", "--posts-dir", "elsewhere", "search", "needle"],
        ["posts", "search", "--posts-dir", "elsewhere", "needle"],
        ["posts", "search", "needle", "--posts-dir", "elsewhere", "--author", "b"],
        ["posts", "--posts-dir", "data", "search", "needle", "--posts-dir", "elsewhere"],
    ],
)
def test_the_directory_is_taken_before_and_after_the_subcommand(
    scratch: Scratch, arguments: list[str]
) -> None:
    write(scratch.root / "elsewhere", "b/motions/x.md", "needle\n")
    assert "📄 b/motions/x.md（第 1 行）" in scratch.call(*arguments).out


def test_the_archive_becomes_a_collection_that_an_index_run_fills(scratch: Scratch) -> None:
    first = scratch.call("posts", "authors")
    assert "Added collection 'data'" in first.err
    assert scratch.call("posts", "authors").err == ""
    assert scratch.call("index", "--no-embed").code == 0
    hits = scratch.call("search", "能力", "--json").json()
    assert [hit["file"] for hit in hits] == [f"data/{POST}"]


def test_a_missing_directory_makes_no_database(scratch: Scratch, tmp_path: Path) -> None:
    database = tmp_path / "new.sqlite"
    assert scratch.call("--db", str(database), "posts", "--posts-dir", "none", "authors").code == 1
    assert not database.exists()


# --- the server ----------------------------------------------------------------------


def text_of(result: dict[str, Any]) -> str:
    assert result["isError"] is False, result
    (block,) = result["content"]
    return str(block["text"])


def server(scratch: Scratch, *options: str) -> RawClient:
    command = [*qmd_mcp(scratch.root / "kb.sqlite"), *options]
    return RawClient(command, scratch.root / "stderr")


def test_a_post_saved_while_the_server_runs_is_found(scratch: Scratch) -> None:
    data = scratch.root / "data"
    options = ["--toolset", "posts", "--posts-dir", str(data)]
    with server(scratch, *options) as client:
        assert client.handshake()["serverInfo"]["name"] == "AfdianToMarkdown"
        assert "显示 3/3 条" in text_of(client.tool("search", query="温柔"))
        write(data, "b/motions/2025-01-01_新.md", "新的温柔\n")
        assert "📄 b/motions/2025-01-01_新.md（第 1 行）" in text_of(
            client.tool("search", query="温柔")
        )
        assert text_of(client.tool("list_authors")) == "已下载的作者（共 2 位）：\n- a\n- b\n"
        (data / POST).unlink()
        assert "显示 2/2 条" in text_of(client.tool("search", query="温柔"))
        # The server has made it a collection and keeps it.
        until(lambda: "data/b/motions/2025-01-01_新.md" in listed(scratch), "indexed")
        assert "新的**温柔**" in text_of(client.tool("search", query="温柔", author="b"))


def listed(scratch: Scratch) -> list[str]:
    documents = scratch.call("--db", str(scratch.root / "kb.sqlite"), "ls", "--json").json()
    return [document["file"] for document in documents]


def test_all_toolsets_together_search_posts_by_a_name_of_its_own(scratch: Scratch) -> None:
    KnowledgeBase.open(scratch.root / "kb.sqlite", create=True).close()
    with server(scratch, "--posts-dir", str(scratch.root / "data"), "--read-only") as client:
        assert client.handshake()["serverInfo"]["name"] == "qmd"
        assert "C++" in text_of(client.tool("search_posts", query="c++"))
        assert client.tool("read_post", path="../kb.sqlite")["isError"] is True
        reply = client.tool("search", query="温柔")
        assert reply["structuredContent"]["results"] == []  # read-only: no collection was added


def test_a_folder_that_happens_to_be_there_is_served_and_not_taken_in(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(scratch.root)
    monkeypatch.delenv("QMD_POSTS_DIR", raising=False)
    with server(scratch, "--no-watch") as client:
        client.handshake()
        assert "- a\n" in text_of(client.tool("list_authors"))
    assert scratch.call("--db", "kb.sqlite", "collection", "list", "--json").json() == []
