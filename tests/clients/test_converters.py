"""Every tool passes the converters of the SDKs, which hand it to their model's interface."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from agents.mcp import MCPServerStdio
from agents.mcp.util import MCPUtil
from agents.strict_schema import ensure_strict_json_schema
from anthropic.lib.tools.mcp import async_mcp_tool
from conftest import Server
from fastmcp.client.transports import StdioTransport
from google.genai import types as google
from google.genai._mcp_utils import mcp_to_gemini_tool
from jsonschema import Draft7Validator, Draft202012Validator
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from llama_index.tools.mcp import McpToolSpec
from mcp import ClientSession
from mcp.types import Tool
from mcpadapt.core import MCPAdapt
from mcpadapt.smolagents_adapter import SmolAgentsAdapter
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.profiles.google import GoogleJsonSchemaTransformer
from pydantic_ai.profiles.openai import OpenAIJsonSchemaTransformer
from smolagents.models import get_tool_json_schema


def test_all_tools_are_there(database: Path) -> None:
    names = {tool.name for tool in Server(database, "--toolset", "all").tools()}
    assert {"search", "get", "edit_note", "links", "list_authors", "writeImageMetadata"} <= names


def arguments(tool: Tool) -> list[str]:
    return sorted(tool.inputSchema["properties"])


def test_google_genai_takes_every_tool(tools: list[Tool]) -> None:
    for tool in tools:
        [declared] = mcp_to_gemini_tool(tool).function_declarations
        assert declared.name == tool.name
        assert sorted(declared.parameters.properties or ()) == arguments(tool)
        assert declared.parameters.type is google.Type.OBJECT
        assert_google_types(declared.parameters, tool.name)


def assert_google_types(schema: google.Schema, place: str) -> None:
    """Each schema inside has a type that Gemini knows, and each list says of what."""
    assert schema.type is not None or schema.any_of, place
    assert schema.type is not google.Type.ARRAY or schema.items is not None, place
    for name, member in (schema.properties or {}).items():
        assert_google_types(member, f"{place}.{name}")
    for number, member in enumerate(schema.any_of or ()):
        assert_google_types(member, f"{place}[{number}]")
    if schema.items is not None:
        assert_google_types(schema.items, f"{place}[]")


def test_openai_agents_converts_every_tool_to_strict_mode(
    tools: list[Tool], server: Server
) -> None:
    connection = MCPServerStdio({"command": server.parameters.command, "args": []})
    for tool in tools:
        converted = MCPUtil.to_function_tool(tool, connection, convert_schemas_to_strict=True)
        assert converted.strict_json_schema, tool.name
        assert sorted(converted.params_json_schema["properties"]) == arguments(tool)
        assert_strict(converted.params_json_schema, tool.name)
        assert_strict(ensure_strict_json_schema(dict(tool.inputSchema)), tool.name)


def assert_strict(schema: dict[str, Any], place: str) -> None:
    """What the API demands in strict mode: each schema has a type, and each object is closed."""
    assert "type" in schema or "anyOf" in schema, place
    if schema.get("type") == "object":
        assert schema["additionalProperties"] is False, place
        assert sorted(schema["required"]) == sorted(schema["properties"]), place
    for name, member in schema.get("properties", {}).items():
        assert_strict(member, f"{place}.{name}")
    for number, member in enumerate(schema.get("anyOf", ())):
        assert_strict(member, f"{place}[{number}]")
    if schema.get("type") == "array":
        assert_strict(schema["items"], f"{place}[]")


def test_anthropic_takes_every_tool(server: Server, tools: list[Tool]) -> None:
    async def converted(session: ClientSession) -> list[Any]:
        return [async_mcp_tool(tool, session).to_dict() for tool in tools]

    for tool, sent in zip(tools, server.run(converted), strict=True):
        assert sent["name"] == tool.name
        assert sent["input_schema"]["type"] == "object"
        assert sorted(sent["input_schema"]["properties"]) == arguments(tool)


def test_langchain_takes_every_tool(server: Server, tools: list[Tool]) -> None:
    async def converted(session: ClientSession) -> list[Any]:
        return [convert_mcp_tool_to_langchain_tool(session, tool) for tool in tools]

    for tool, taken in zip(tools, server.run(converted), strict=True):
        for strict in (False, True):
            function = convert_to_openai_tool(taken, strict=strict)["function"]
            assert function["name"] == tool.name
            assert sorted(function["parameters"]["properties"]) == arguments(tool)


def test_llama_index_takes_every_tool(server: Server, tools: list[Tool]) -> None:
    async def converted(session: ClientSession) -> list[Any]:
        return await McpToolSpec(session).to_tool_list_async()

    taken = {tool.metadata.name: tool for tool in server.run(converted)}
    for tool in server.tools():
        parameters = taken[tool.name].metadata.to_openai_tool()["function"]["parameters"]
        assert sorted(parameters["properties"]) == arguments(tool)
        required = tool.inputSchema.get("required", ())
        assert sorted(parameters.get("required", ())) == sorted(required)
    specification = McpToolSpec(None)  # type: ignore[arg-type]
    for tool in tools:
        model = specification.create_model_from_json_schema(tool.inputSchema, f"{tool.name}_all")
        assert sorted(model.model_fields) == arguments(tool)


def test_pydantic_ai_takes_every_tool(server: Server, tools: list[Tool]) -> None:
    async def listed() -> list[str]:
        command = StdioTransport(server.parameters.command, server.parameters.args)
        async with MCPToolset(command) as toolset:
            return [tool.name for tool in await toolset.list_tools()]

    assert asyncio.run(listed()) == [tool.name for tool in server.tools()]
    for transformer in (OpenAIJsonSchemaTransformer, GoogleJsonSchemaTransformer):
        for tool in tools:
            sent = transformer(dict(tool.inputSchema), strict=True).walk()
            assert sorted(sent["properties"]) == arguments(tool)


def test_smolagents_takes_every_tool(server: Server, tools: list[Tool]) -> None:
    adapter = SmolAgentsAdapter(structured_output=True)
    for tool in tools:
        taken = adapter.adapt(lambda _: None, tool)
        taken.validate_arguments()
        assert sorted(get_tool_json_schema(taken)["function"]["parameters"]["properties"]) == (
            arguments(tool)
        )
    with MCPAdapt(server.parameters, adapter) as connected:
        assert [tool.name for tool in connected] == [tool.name for tool in server.tools()]


def test_every_schema_is_valid_for_both_drafts(tools: list[Tool]) -> None:
    for tool in tools:
        for schema in (tool.inputSchema, tool.outputSchema or {}):
            Draft7Validator.check_schema(schema)
            Draft202012Validator.check_schema(schema)
