"""Which tools a server offers, in how many bytes, and in which language."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from support import photos
from support.golden import assert_golden
from support.live import put
from support.mcp_client import assert_few_bytes, with_client
from support.vault import make_index

from qmd import KnowledgeBase, Settings
from qmd.operations.texts import MCP
from qmd.server.mcp import McpFace
from qmd.tools.definition import Tool
from qmd.tools.definition import listing as listed
from qmd.tools.toolsets import ALONE, TOOLSETS, select, select_by_database, tools_of
from qmd.values.writing import Language

SIX = ["search", "vsearch", "query", "get", "multi_get", "status"]
WRITING = ["edit_note", "delete_note", "move_note", "undo"]
NOTES = ["read_note", "create_note", "list_folder"]
POSTS = ["list_authors", "list_posts", "read_post", "search_posts"]


def wire(result: Any) -> dict[str, Any]:
    dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {"tools": dumped["tools"]}


def listing(kb: KnowledgeBase, language: Language | None = None) -> dict[str, Any]:
    face = McpFace(kb, select_by_database(read_only=not kb.policy.writable, language=language))
    return wire(with_client(face.server, lambda client: client.list_tools()))


def names(kb: KnowledgeBase) -> list[str]:
    return [tool["name"] for tool in listing(kb)["tools"]]


# --- which tools ---------------------------------------------------------------------


def test_a_database_of_notes_calls_for_reading_and_writing_notes(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        assert names(kb) == [*SIX, *WRITING, *NOTES]


def test_a_server_that_only_reads_has_the_six(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path), Settings(read_only_files=True)) as kb:
        assert names(kb) == SIX


def test_an_archive_of_posts_calls_for_its_tools(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = make_index(tmp_path)
    with KnowledgeBase.open(database, Settings(posts_dir=tmp_path / "archive")) as kb:
        assert "read_post" not in names(kb)
        (tmp_path / "archive").mkdir()
        assert names(kb) == [*SIX, *WRITING, *POSTS, *NOTES]
    monkeypatch.chdir(tmp_path)
    with KnowledgeBase.open(database) as kb:
        put(
            tmp_path / "data/tables/some.md", "no post\n"
        )  # a folder of this name may hold anything
        assert "read_post" not in names(kb)
        put(tmp_path / "data/author/motions/2024-03-07_T.md", "a post\n")
        assert "read_post" in names(kb)


def test_photos_call_for_the_tool_that_writes_into_them(tmp_path: Path) -> None:
    photos.make(tmp_path / "album/boat.jpg")
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        assert "writeImageMetadata" not in names(kb)
        kb.add_collection(tmp_path / "album", mask="**/*.jpg")
        kb.index()
        assert names(kb) == [*SIX, *WRITING, *NOTES, "writeImageMetadata"]


def test_all_is_every_tool(tmp_path: Path) -> None:
    everything = [tool.name for tool in select(["all"]).tools]
    assert everything == [tool.name for tool in select().tools]
    assert {*SIX, *WRITING, *NOTES, *POSTS, "links", "update_summary"} <= set(everything)


def test_a_tool_of_another_toolset_is_named_with_the_option_that_adds_it(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        face = McpFace(kb, select_by_database())
        with pytest.raises(MCPError, match="It is in the toolset graph; --toolset adds it"):
            with_client(face.server, lambda client: client.call_tool("links", {"file": "plan"}))


def test_a_tool_that_is_not_listed_at_the_moment_answers_all_the_same(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path), Settings(posts_dir=tmp_path / "none")) as kb:
        face = McpFace(kb, select_by_database())
        reply = with_client(face.server, lambda client: client.call_tool("list_authors", {}))
    assert reply.is_error
    assert "数据目录不存在" in reply.content[0].text


# --- when they change ----------------------------------------------------------------


def test_clients_hear_that_the_tools_have_changed(tmp_path: Path) -> None:
    """Since 2026-07-28; tests/e2e/test_mcp_stdio.py has the handshake era."""
    photos.make(tmp_path / "album/boat.jpg")
    with KnowledgeBase.open(make_index(tmp_path)) as kb:

        async def use(client: Client) -> set[str]:
            before = {tool.name for tool in (await client.list_tools()).tools}
            async with client.listen(tools_list_changed=True) as changes:
                kb.add_collection(tmp_path / "album", mask="**/*.jpg")
                kb.index()
                async for _ in changes:
                    break
            return {tool.name for tool in (await client.list_tools()).tools} - before

        face = McpFace(kb, select_by_database())
        assert with_client(face.server, use, mode="2026-07-28") == {"writeImageMetadata"}


@pytest.mark.parametrize(
    ("selection", "may_change"), [(select_by_database(), True), (select(["qmd"]), False)]
)
def test_the_capability_says_whether_they_may_change(
    tmp_path: Path, selection: Any, may_change: bool
) -> None:
    async def use(client: Client) -> bool:
        assert client.server_capabilities.tools is not None
        return bool(client.server_capabilities.tools.list_changed)

    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        assert with_client(McpFace(kb, selection).server, use) is may_change


# --- in how many bytes ---------------------------------------------------------------


@pytest.mark.parametrize("language", [None, "en", "zh"])
def test_the_default_takes_at_most_ten_kilobytes(tmp_path: Path, language: Language | None) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        assert_few_bytes(listing(kb, language)["tools"], 10 * 1024)


@pytest.mark.parametrize(
    ("names", "most_kilobytes"), [(["qmd"], 6), (["all"], 20), (["qmd", "edit", "notes"], 10)]
)
@pytest.mark.parametrize("language", [None, "en", "zh"])
def test_fewer_tools_take_fewer_bytes(
    tmp_path: Path, names: list[str], most_kilobytes: int, language: Language | None
) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        face = McpFace(kb, select(names, language=language))
        chosen = wire(with_client(face.server, lambda client: client.list_tools()))
    assert_few_bytes(chosen["tools"], most_kilobytes * 1024)


def test_posts_and_photos_are_within_ten_kilobytes_too(tmp_path: Path) -> None:
    photos.make(tmp_path / "album/boat.jpg")
    (tmp_path / "archive").mkdir()
    with KnowledgeBase.open(make_index(tmp_path), Settings(posts_dir=tmp_path / "archive")) as kb:
        kb.add_collection(tmp_path / "album", mask="**/*.jpg")
        kb.index()
        everything = listing(kb)
    assert len(everything["tools"]) == 18
    assert_few_bytes(everything["tools"], 10 * 1024)


def test_the_default_is_listed_as_reviewed(tmp_path: Path) -> None:
    with KnowledgeBase.open(make_index(tmp_path)) as kb:
        assert_golden("mcp_default_tools.json", listing(kb))


def test_a_brief_listing_says_nothing_twice_and_leaves_no_argument_out() -> None:
    tools = select().tools
    described: list[tuple[str, str]] = []
    for tool, brief in zip(tools, listed(tools, MCP), strict=True):
        full = tool.input_schema()
        properties = brief.input_schema["properties"]
        assert properties.keys() == full["properties"].keys()
        assert brief.input_schema.get("required") == full.get("required")
        described += [
            (name, schema["description"])
            for name, schema in properties.items()
            if "description" in schema
        ]
    assert len(described) == len(set(described))


# --- in which language ---------------------------------------------------------------

CHINESE = re.compile("[一-鿿]")
IN_CHINESE = ("posts", "summary", "images")


def descriptions(tool: Tool[Any]) -> list[str]:
    def of(schema: Mapping[str, Any]) -> list[str]:
        members = schema.get("properties", {}).values()
        return [schema.get("description", ""), *(text for each in members for text in of(each))]

    return [tool.description, *of(tool.input_schema())[1:]]


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_every_tool_is_described_in_both_languages(toolset: str) -> None:
    for names in ([toolset], *([] if toolset in ALONE else [[toolset, "qmd"]])):
        for tool in select(names, language="en").tools:
            assert not any(map(CHINESE.search, descriptions(tool))), tool.name
        for tool in select(names, language="zh").tools:
            assert all(map(CHINESE.search, filter(None, descriptions(tool)))), tool.name


def test_the_instructions_are_in_the_language_too(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        assert "用户可用 'qmd collection add DIR' 添加" in instructions_of(kb, "zh")
        for number in range(21):
            (tmp_path / f"c{number}").mkdir()
            kb.add_collection(tmp_path / f"c{number}")
        assert instructions_of(kb, "zh").endswith("c8（0 篇文档），另有 1 个（见 status）。")
        assert instructions_of(kb, "en") == instructions_of(kb, None)
        assert instructions_of(kb, "en").endswith("c8 (0 documents), and 1 more (see status).")


def instructions_of(kb: KnowledgeBase, language: Language | None) -> str:
    return str(McpFace(kb, select_by_database(language=language)).server.instructions)


@pytest.mark.parametrize("toolset", TOOLSETS)
def test_without_a_language_each_tool_has_the_words_of_its_specification(toolset: str) -> None:
    for tool, source in zip(select([toolset]).tools, tools_of(toolset, alone=True), strict=True):
        assert descriptions(tool) == descriptions(source)
        is_chinese = CHINESE.search(tool.description) is not None
        assert is_chinese == (toolset in IN_CHINESE)


def test_the_arguments_are_the_same_in_each_language() -> None:
    for plain, *others in zip(
        select().tools, select(language="en").tools, select(language="zh").tools, strict=True
    ):
        for other in others:
            assert other.arguments is plain.arguments
            assert other.input_schema().keys() == plain.input_schema().keys()
    assert (
        tools_of("posts", alone=True)[0].input_schema()["properties"] == {}
    )  # alone: as its specification has it
