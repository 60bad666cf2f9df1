"""What a client sees before its first call: tools, resources, prompts, instructions."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from mcp import Client
from mcp.server import Server
from support.golden import assert_golden
from support.mcp_client import Mode, with_client

from qmd import KnowledgeBase, __version__
from qmd.server.mcp import McpFace
from qmd.server.mcp_wire import guide
from qmd.tools.arguments import input_schema
from qmd.tools.toolsets import select, tools_of

TOOLS = tools_of("qmd", alone=True)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("listing")
    with KnowledgeBase.open(directory / "index.sqlite", create=True) as kb:
        yield McpFace(kb).server


def wire(result: Any) -> dict[str, Any]:
    dumped = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    return {key: dumped[key] for key in dumped if key not in ("resultType", "ttlMs", "cacheScope")}


def test_tools_are_listed_as_reviewed(server: Server[Any]) -> None:
    listed = with_client(server, lambda client: client.list_tools())
    assert_golden("mcp_tools.json", wire(listed))


def test_the_list_of_tools_takes_at_most_twelve_kilobytes(server: Server[Any]) -> None:
    """In full; tests/contract/test_tool_surface.py has the brief list that servers usually send."""
    listed = with_client(server, lambda client: client.list_tools())
    text = json.dumps(wire(listed), ensure_ascii=False, separators=(",", ":"))
    assert len(text.encode()) <= 12 * 1024


def test_the_tools_of_the_specification_have_its_names_and_titles(server: Server[Any]) -> None:
    listed = with_client(server, lambda client: client.list_tools())
    assert {
        ("search", "Search (BM25)"),
        ("vsearch", "Vector search"),
        ("query", "Hybrid query"),
        ("get", "Get document"),
        ("multi_get", "Get several documents"),
        ("status", "Index status"),
    } <= {(tool.name, tool.title) for tool in listed.tools}


def test_every_tool_says_that_it_only_reads(server: Server[Any]) -> None:
    listed = with_client(server, lambda client: client.list_tools())
    for tool in listed.tools:
        assert tool.annotations is not None
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True)
        # The other two mean nothing where nothing is written.
        assert hints == {"readOnlyHint": True, "openWorldHint": False}


def test_all_schemas_are_valid_json_schema(server: Server[Any]) -> None:
    listed = with_client(server, lambda client: client.list_tools())
    for tool in listed.tools:
        Draft202012Validator.check_schema(tool.input_schema)
        if tool.output_schema is not None:
            Draft202012Validator.check_schema(tool.output_schema)


def test_input_schemas_are_in_the_dialect_that_the_sdks_of_all_models_take() -> None:
    """tests/clients shows it with the SDKs; this is what tripped them."""
    for tool in select().tools:
        schema = tool.input_schema()
        assert schema["properties"], f"{tool.name}: strict mode of OpenAI's SDK"
        for each in subschemas(schema):
            assert "additionalProperties" not in each, f"{tool.name}: Google's SDK"
            assert "anyOf" in each or isinstance(each["type"], str), tool.name
            assert each.get("type") != "array" or each["items"], tool.name


def subschemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield schema
    items = [schema["items"]] if "items" in schema else []
    for member in (*schema.get("properties", {}).values(), *schema.get("anyOf", ()), *items):
        yield from subschemas(member)


json_values = st.recursive(
    st.booleans() | st.integers(-5, 5) | st.floats(-5, 5, allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=4,
)


@given(data=st.data())
def test_the_published_schema_allows_what_the_checked_one_allows(data: st.DataObject) -> None:
    tool = data.draw(st.sampled_from(select().tools))
    checked = input_schema(tool.arguments)
    published = tool.input_schema()
    name = data.draw(st.sampled_from(sorted(published["properties"])))
    value = data.draw(json_values)
    of_both = [
        Draft202012Validator(schema["properties"][name]).is_valid(value)
        for schema in (checked, published)
    ]
    is_closed = checked["properties"][name].get("type") == "object"
    assert of_both[0] == of_both[1] or is_closed, (tool.name, name, value)


def test_an_unknown_argument_is_refused_although_no_schema_says_so(server: Server[Any]) -> None:
    reply = with_client(server, lambda client: client.call_tool("status", {"colection": "notes"}))
    assert reply.is_error
    assert 'unknown argument "colection" (did you mean collection?)' in reply.content[0].text


def test_resources_are_found_by_template_and_never_listed(server: Server[Any]) -> None:
    listed = with_client(server, lambda client: client.list_resources())
    assert listed.resources == []
    templates = with_client(server, lambda client: client.list_resource_templates())
    assert_golden("mcp_resource_templates.json", wire(templates))


def test_the_prompt_is_listed_and_answers_with_one_user_message(server: Server[Any]) -> None:
    assert_golden(
        "mcp_prompts.json", wire(with_client(server, lambda client: client.list_prompts()))
    )
    prompt = with_client(server, lambda client: client.get_prompt("query"))
    assert_golden("mcp_prompt_query.json", wire(prompt))
    assert len(prompt.messages) == 1


def test_the_guide_has_no_outer_fence_and_no_final_newline() -> None:
    text = guide()
    assert text.startswith("# QMD - Quick Markdown Search\n\nQMD is your on-device search engine")
    assert text.endswith("match on display_path (e.g., `journals/2025-*.md`)")


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28", "auto"])
def test_both_protocol_eras_list_the_same(server: Server[Any], mode: Mode) -> None:
    async def names(client: Client) -> list[str]:
        return [tool.name for tool in (await client.list_tools()).tools]

    assert with_client(server, names, mode=mode) == [tool.name for tool in TOOLS]


def test_the_server_names_itself_and_its_version(server: Server[Any]) -> None:
    async def info(client: Client) -> tuple[str, str]:
        assert client.server_info is not None
        return client.server_info.name, client.server_info.version

    assert with_client(server, info) == ("qmd", __version__)


def test_instructions_name_the_collections_or_how_to_add_one(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("# A\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        assert "qmd collection add" in str(McpFace(kb).server.instructions)
        kb.add_collection(notes)
        kb.index()
        assert "Collections: notes (1 document)." in str(McpFace(kb).server.instructions)
