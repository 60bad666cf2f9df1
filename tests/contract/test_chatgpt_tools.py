"""The toolset chatgpt: search and fetch as OpenAI documents them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from support.mcp_client import with_client
from support.vault import make_vault

from qmd import KnowledgeBase
from qmd.errors import InputError
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import select


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("chatgpt")
    notes = make_vault(folder)
    (notes / "long.md").write_text("# Long\n\n" + "A long line.\n" * 40_000, encoding="utf-8")
    (notes / "odd name?.md").write_text("# 奇怪\n\nA zebrafish.\n", encoding="utf-8")
    with KnowledgeBase.open(folder / "index.sqlite", create=True) as opened:
        opened.add_collection(notes, name="notes")
        opened.index()
        opened.add_context("qmd://notes", "what I know")
        yield opened


def call(kb: KnowledgeBase, tool: str, /, **arguments: Any) -> Any:
    server = McpFace(kb, select(["chatgpt"])).server
    return with_client(server, lambda client: client.call_tool(tool, arguments))


def checked(kb: KnowledgeBase, tool: str, /, **arguments: Any) -> Any:
    """The structured content, which is the JSON of the one text and of the promised schema."""
    reply = call(kb, tool, **arguments)
    assert not reply.is_error, reply.content
    [block] = reply.content
    assert json.loads(block.text) == reply.structured_content
    server = McpFace(kb, select(["chatgpt"])).server
    listed = with_client(server, lambda client: client.list_tools())
    schema = next(each.output_schema for each in listed.tools if each.name == tool)
    assert schema is not None
    Draft202012Validator(schema).validate(reply.structured_content)
    return reply.structured_content


def test_the_server_has_search_and_fetch_and_nothing_else(kb: KnowledgeBase) -> None:
    server = McpFace(kb, select(["chatgpt"])).server
    listed = with_client(server, lambda client: client.list_tools())
    arguments = {tool.name: tool.input_schema for tool in listed.tools}
    assert {name: schema["required"] for name, schema in arguments.items()} == {
        "search": ["query"],
        "fetch": ["id"],
    }
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in listed.tools)


def test_a_result_of_search_is_fetched_by_its_id(kb: KnowledgeBase) -> None:
    found = checked(kb, "search", query="zebrafish")
    assert found == {
        "results": [
            {
                "id": "notes/odd name?.md",
                "title": "奇怪",
                "url": "qmd://notes/odd%20name%3F.md",
            }
        ]
    }
    document = checked(kb, "fetch", id=found["results"][0]["id"])
    assert list(document) == ["id", "title", "text", "url", "metadata"]
    assert document["text"] == "# 奇怪\n\nA zebrafish.\n"
    assert document["metadata"]["context"] == "what I know"
    assert all(isinstance(value, str) for value in document["metadata"].values())


def test_nothing_found_is_an_empty_list(kb: KnowledgeBase) -> None:
    assert checked(kb, "search", query="xylophonist") == {"results": []}


def test_a_long_document_says_how_to_read_on(kb: KnowledgeBase) -> None:
    first = checked(kb, "fetch", id="notes/long.md")
    assert len(json.dumps(first)) < 210_000
    assert "fetch notes/long.md:" in first["metadata"]["left_out"]
    rest = checked(kb, "fetch", id="notes/long.md:40001")
    assert rest["text"].endswith("A long line.")
    assert "left_out" not in rest["metadata"]


def test_an_unknown_id_is_an_error(kb: KnowledgeBase) -> None:
    reply = call(kb, "fetch", id="notes/no such.md")
    assert reply.is_error
    assert "not found" in reply.content[0].text.lower()


@pytest.mark.parametrize("names", [["chatgpt", "qmd"], ["all", "chatgpt"]])
def test_it_stands_alone(names: list[str]) -> None:
    with pytest.raises(InputError, match="chatgpt stands alone"):
        select(names)
    assert "fetch" not in {tool.name for tool in select(["all"]).tools}
