"""A search and a get through each SDK: what a model would read has the found lines in it."""

from __future__ import annotations

import asyncio
import json
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServerStdio
from agents.mcp.util import MCPUtil
from agents.run_context import RunContextWrapper
from anthropic.lib.tools.mcp import async_mcp_tool
from conftest import Server
from fastmcp.client.transports import StdioTransport
from langchain_mcp_adapters.tools import convert_mcp_tool_to_langchain_tool
from llama_index.tools.mcp import McpToolSpec
from mcp import ClientSession
from mcp.types import Tool
from mcpadapt.core import MCPAdapt
from mcpadapt.smolagents_adapter import SmolAgentsAdapter
from pydantic_ai.mcp import MCPToolset

Calls = list[tuple[str, dict[str, Any]]]

CALLS: Calls = [
    ("search", {"query": "masts"}),
    ("get", {"file": "notes/boats.md"}),
    ("multi_get", {"pattern": "notes/*.md"}),
]


def openai_agents(server: Server, calls: Calls) -> list[str]:
    async def called() -> list[str]:
        command = {"command": server.parameters.command, "args": server.parameters.args}
        async with MCPServerStdio(command) as connection:  # type: ignore[arg-type]
            tools = {tool.name: tool for tool in await connection.list_tools()}
            context: RunContextWrapper[Any] = RunContextWrapper(None)
            return [
                str(
                    await MCPUtil.invoke_mcp_tool(
                        connection, tools[name], context, json.dumps(arguments)
                    )
                )
                for name, arguments in calls
            ]

    return asyncio.run(called())


def in_session(
    convert: Callable[[ClientSession, Tool], Callable[[dict[str, Any]], Awaitable[object]]],
) -> Callable[[Server, Calls], list[str]]:
    """Calls through an SDK that converts one tool of a session at a time."""

    def call(server: Server, calls: Calls) -> list[str]:
        async def called(session: ClientSession) -> list[str]:
            tools = {tool.name: tool for tool in (await session.list_tools()).tools}
            return [
                str(await convert(session, tools[name])(arguments)) for name, arguments in calls
            ]

        return server.run(called)

    return call


def llama_index(server: Server, calls: Calls) -> list[str]:
    async def called(session: ClientSession) -> list[str]:
        converted = await McpToolSpec(session).to_tool_list_async()
        tools = {tool.metadata.name: tool for tool in converted}
        return [(await tools[name].acall(**arguments)).content for name, arguments in calls]

    return server.run(called)


def pydantic_ai(server: Server, calls: Calls) -> list[str]:
    async def called() -> list[str]:
        command = StdioTransport(server.parameters.command, server.parameters.args)
        async with MCPToolset(command) as toolset:
            return [
                str(await toolset.direct_call_tool(name, arguments)) for name, arguments in calls
            ]

    return asyncio.run(called())


def smolagents(server: Server, calls: Calls, *, structured: bool = True) -> list[str]:
    with MCPAdapt(server.parameters, SmolAgentsAdapter(structured_output=structured)) as tools:
        by_name = {tool.name: tool for tool in tools}
        return [str(by_name[name](**arguments)) for name, arguments in calls]


CLIENTS: dict[str, Callable[[Server, Calls], list[str]]] = {
    "anthropic": in_session(lambda session, tool: async_mcp_tool(tool, session).call),
    "langchain": in_session(
        lambda session, tool: convert_mcp_tool_to_langchain_tool(session, tool).ainvoke
    ),
    "llama-index": llama_index,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
    "smolagents": smolagents,
}


@pytest.mark.parametrize("client", CLIENTS)
def test_a_model_reads_the_lines_that_were_found(client: str, server: Server) -> None:
    hits, document, documents = CLIENTS[client](server, CALLS)
    assert "notes/boats.md" in hits
    assert "The ketch has two masts" in hits
    assert "notes/boats.md" in document
    assert "The ketch has two masts" in document
    for name, text in (("boats", "The ketch"), ("trees", "The larch")):
        assert f"notes/{name}.md" in documents
        assert text in documents


def test_with_plain_text_a_client_that_reads_one_text_reads_all(database: Path) -> None:
    """smolagents without structured output, its default, takes the first text, and no resource."""
    plain = Server(database, "--plain-text")
    hits, document, documents = smolagents(plain, CALLS, structured=False)
    assert "The ketch has two masts" in hits
    assert "notes/boats.md" in document and "The ketch has two masts" in document
    assert "The ketch" in documents and "The larch" in documents
    with pytest.raises(ValueError, match="unsupported content type"):
        smolagents(Server(database), CALLS[1:2], structured=False)


@pytest.mark.parametrize("client", CLIENTS)
def test_a_refused_argument_reaches_the_model_as_a_sentence(client: str, server: Server) -> None:
    calls: Calls = [("search", {"query": "masts", "limits": 3})]
    try:
        said = CLIENTS[client](server, calls)[0]
    except Exception as error:  # noqa: BLE001 - some SDKs raise what the server answered
        said = "".join(traceback.format_exception(error))
    assert "unknown argument" in said and "did you mean limit?" in said
