"""Toolsets of other specifications: their own schemas, checks and errors reach the client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest
from mcp import Client, MCPError
from mcp_types import CallToolResult, TextContent
from mcp_types import Tool as ListedTool
from pydantic import ConfigDict
from support.mcp_client import with_client
from support.vault import make_index

from qmd import KnowledgeBase, Settings
from qmd.cli import serve
from qmd.errors import InputError, ProtocolError
from qmd.operations.problems import InvalidArgumentsError
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import INTERNAL
from qmd.server.mcp import McpFace
from qmd.tools.arguments import Arguments
from qmd.tools.definition import Tool
from qmd.tools.toolsets import TOOLSETS, ToolSelection, select

SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}, "required": []}


class Word(Arguments):
    word: str


class Echoed(Arguments):
    model_config = ConfigDict(extra="ignore", json_schema_extra={"required": []})

    word: str


def refusal(tool: str, error: InvalidArgumentsError) -> InputError:
    return InputError(f"请提供 {error.problems[0].name} 参数")


def refuse(kb: KnowledgeBase, arguments: Word, dialect: object) -> NoReturn:
    raise ProtocolError(-32001, f"文件未找到: {arguments.word}", {"filePath": arguments.word})


ECHO: Tool[Echoed] = Tool(
    "echo",
    None,
    "d",
    Echoed,
    lambda kb, arguments, dialect: Reply((TextBlock(arguments.word),)),
    refusal=refusal,
    failed=lambda error: Reply((TextBlock(f"错误：{error}"),), is_error=True),
)
REFUSE: Tool[Word] = Tool("refuse", "Refuse", "d", Word, refuse, read_only=False, idempotent=False)


@pytest.fixture(scope="module")
def face(tmp_path_factory: pytest.TempPathFactory) -> Iterator[McpFace]:
    with KnowledgeBase.open(make_index(tmp_path_factory.mktemp("toolsets"))) as kb:
        yield McpFace(kb, ToolSelection("Other", ("other",), (ECHO, REFUSE)))


def call(face: McpFace, name: str, arguments: dict[str, Any]) -> CallToolResult:
    return with_client(face.server, lambda client: client.call_tool(name, arguments))


def test_a_toolset_alone_has_its_own_server_name_and_offers_tools_only(face: McpFace) -> None:
    async def use(client: Client) -> tuple[str, Any]:
        return client.server_info.name, client.server_capabilities

    name, capabilities = with_client(face.server, use)
    assert name == "Other"
    assert capabilities.tools is not None and not capabilities.tools.list_changed
    assert (capabilities.resources, capabilities.prompts) == (None, None)


def test_the_schema_and_the_hints_are_those_of_the_tool(face: McpFace) -> None:
    async def use(client: Client) -> list[ListedTool]:
        return (await client.list_tools()).tools

    echo, other = with_client(face.server, use)
    assert echo.input_schema == SCHEMA
    assert echo.title is None
    assert echo.annotations is not None and echo.annotations.read_only_hint
    hints = other.annotations
    assert hints is not None
    # Those that are MCP's defaults are left out: it writes, destroys, and not only once.
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (None,) * 3


def test_wrong_arguments_are_told_in_the_tools_own_words(face: McpFace) -> None:
    result = call(face, "echo", {})
    assert result.is_error
    assert result.content == [TextContent(text="错误：请提供 word 参数")]
    assert call(face, "echo", {"word": "x", "more": 1}).content == [TextContent(text="x")]


def test_a_protocol_error_keeps_its_code_message_and_data(face: McpFace) -> None:
    with pytest.raises(MCPError) as caught:
        call(face, "refuse", {"word": "/a.jpg"})
    error = caught.value.error
    assert (error.code, error.message) == (-32001, "文件未找到: /a.jpg")
    assert error.data == {"filePath": "/a.jpg"}


def test_a_withheld_tool_is_not_listed_and_refuses_in_its_own_format(tmp_path: Path) -> None:
    make_index(tmp_path)

    async def use(client: Client) -> tuple[list[ListedTool], CallToolResult, MCPError]:
        listed = (await client.list_tools()).tools
        arguments = {"content": "text", "file_path": str(tmp_path / "s.md")}
        summary = await client.call_tool("update_summary", arguments)
        with pytest.raises(MCPError) as caught:
            photo = {"filePath": str(tmp_path / "p.jpg"), "metadata": {"tags": ["a"]}}
            await client.call_tool("writeImageMetadata", photo)
        return listed, summary, caught.value

    (tmp_path / "p.jpg").write_bytes(b"")
    database = tmp_path / "index.sqlite"
    with KnowledgeBase.open(database, Settings(read_only_files=True)) as kb:
        face = McpFace(kb, select(["summary", "images"], read_only=True))
        listed, summary, photo = with_client(face.server, use)
    assert listed == []
    assert summary.is_error and summary.structured_content is not None
    assert summary.structured_content["status"] == "error"
    assert "--read-only" in summary.structured_content["message"]
    assert photo.error.code == -32003
    assert "--read-only" in photo.error.data["reason"]
    assert not (tmp_path / "s.md").exists()


def test_a_withheld_tool_is_unknown_where_something_might_be_written(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        face = McpFace(kb, select(["summary"], read_only=True))
        with pytest.raises(MCPError, match="Unknown tool: update_summary"):
            call(face, "update_summary", {"content": "text", "file_path": str(tmp_path / "s.md")})
    assert not (tmp_path / "s.md").exists()


@pytest.mark.parametrize(
    ("read_only", "advice"),
    [
        (True, "Try again, or ask for less."),
        (False, "It may still be done: look at the file before you try again."),
    ],
)
def test_a_call_over_its_time_says_whether_to_repeat_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool, advice: str
) -> None:
    monkeypatch.setattr("qmd.server.mcp._CALL_S", 0.05)
    go_on = threading.Event()

    def wait(kb: KnowledgeBase, arguments: Word, dialect: object) -> Reply:
        assert go_on.wait(30)
        return Reply(())

    slow = Tool("slow", None, "d", Word, wait, read_only=read_only)
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        try:
            said = call(McpFace(kb, ToolSelection("S", (), (slow,))), "slow", {"word": "x"})
        finally:
            go_on.set()
    assert said.is_error
    assert said.content == [TextContent(text=f"It took longer than 0.05 s.\n\n{advice}")]


def test_the_inside_of_the_server_stays_in_its_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(kb: KnowledgeBase, arguments: Word, dialect: object) -> NoReturn:
        raise ZeroDivisionError("secret.py:17")

    broken = Tool("broken", None, "d", Word, fail)
    with (
        KnowledgeBase.open(make_index(tmp_path)) as kb,
        pytest.raises(MCPError) as caught,
    ):
        call(McpFace(kb, ToolSelection("B", (), (broken,))), "broken", {"word": "x"})
    assert (caught.value.error.code, caught.value.error.message) == (-32603, INTERNAL)
    assert "ZeroDivisionError: secret.py:17" in caplog.text


def test_an_unknown_toolset_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(InputError, match="no toolset 'pots'") as caught:
        select(["pots"])
    assert caught.value.hint is not None and "qmd" in caught.value.hint


def test_the_command_line_knows_the_toolsets_by_name() -> None:
    assert tuple(TOOLSETS) == serve.TOOLSETS
