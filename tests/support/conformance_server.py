"""
The real server with three tools more, which the conformance suite looks for.

Its scenario ``server-stateless`` calls a tool that needs a capability of the client, one that
streams, and one that logs; without them it counts what it could not try as failed.

    python tests/support/conformance_server.py DATABASE
"""

from __future__ import annotations

import sys
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.shared.exceptions import MCPError

from qmd import KnowledgeBase
from qmd.server import process
from qmd.server.mcp import McpFace

Context = ServerRequestContext[Any, Any]
DIAGNOSTIC = ("test_missing_capability", "test_streaming_elicitation", "test_logging_tool")


class DiagnosticFace(McpFace):
    """`McpFace` and the diagnostic tools."""

    async def _list_tools(
        self, ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = await super()._list_tools(ctx, params)
        schema: dict[str, Any] = {"type": "object", "properties": {}}
        extra = [
            types.Tool(name=name, description="For the suite.", input_schema=schema)
            for name in DIAGNOSTIC
        ]
        return types.ListToolsResult(tools=[*listed.tools, *extra])

    async def _call_tool(
        self, ctx: Context, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        if params.name not in DIAGNOSTIC:
            return await super()._call_tool(ctx, params)
        capabilities = ctx.session.client_capabilities
        if params.name == "test_missing_capability" and (
            capabilities is None or capabilities.sampling is None
        ):
            needed = {"requiredCapabilities": {"sampling": {}}}
            raise MCPError(types.MISSING_REQUIRED_CLIENT_CAPABILITY, "Needs sampling", needed)
        if params.name == "test_logging_tool":
            await ctx.session.send_log_message("info", "a log line")  # only if it was asked for
        return types.CallToolResult(content=[types.TextContent(text="done")])


if __name__ == "__main__":
    process.McpFace = DiagnosticFace  # type: ignore[misc]
    options = process.ServerOptions(transport="http", port=0)
    sys.exit(process.serve(lambda: KnowledgeBase.open(sys.argv[1]), options))
