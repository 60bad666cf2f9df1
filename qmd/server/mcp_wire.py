"""Tools, replies and documents as MCP has them on the wire."""

from __future__ import annotations

from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from qmd.operations.bounds import MAX_PATH
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.tools.listing import ListedTool
from qmd.values.printable import one_line

MARKDOWN = "text/markdown"
URI_SCHEME = "qmd://"

_RESOURCE_NOT_FOUND = -32002
"""The error code of a missing resource before 2026-07-28; later versions use INVALID_PARAMS."""

Context = ServerRequestContext[Any, Any]


def document_path(uri: str) -> str | None:
    """
    The path that a ``qmd://`` URI names, percent-decoded once; None if it names none.

    (An empty path would match every document as a suffix.)
    """
    if not uri.startswith(URI_SCHEME) or len(uri) > MAX_PATH:
        return None
    path = decoded(uri)
    return path if path.strip("/ .") else None


def decoded(uri: str) -> str:
    return unquote(uri.removeprefix(URI_SCHEME))


def not_found_error(ctx: Context, uri: str, message: str) -> MCPError:
    modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
    return MCPError(types.INVALID_PARAMS if modern else _RESOURCE_NOT_FOUND, message, {"uri": uri})


def content_of(reply: Reply, *, plain_text: bool) -> list[types.ContentBlock]:
    """
    The content of a tool's result.

    Args:
        plain_text: As one text.
    """
    if not plain_text:
        return [_block(block) for block in reply.blocks]
    shown = [block.text if isinstance(block, TextBlock) else block.shown for block in reply.blocks]
    return [types.TextContent(text="\n\n".join(text.rstrip("\n") for text in shown))]


def listed_tool(tool: ListedTool) -> types.Tool:
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=tool.description,
        input_schema=tool.input_schema,
        output_schema=tool.output_schema,
        annotations=types.ToolAnnotations.model_validate(tool.hints),
    )


def _block(block: TextBlock | DocumentBlock) -> types.TextContent | types.EmbeddedResource:
    if isinstance(block, TextBlock):
        return types.TextContent(text=block.text)
    return types.EmbeddedResource(resource=contents_of(block, uri=block.document.uri))


def contents_of(block: DocumentBlock, *, uri: str) -> types.TextResourceContents:
    return types.TextResourceContents(
        uri=uri,
        mime_type=MARKDOWN,
        text=block.shown,
        # The SDK's model has no name and title; `name_documents` moves them beside the URI.
        _meta={
            "name": one_line(block.document.file),
            "title": one_line(block.document.title),
        },
    )


async def name_documents(ctx: Context, call_next: CallNext) -> HandlerResult:
    """Copy a document's name and title from ``_meta`` beside its URI, as specified."""
    result = await call_next(ctx)
    if isinstance(result, dict):
        if ctx.method == "tools/call":
            for block in result.get("content", ()):
                if block["type"] == "resource":
                    block["resource"] = _with_name(block["resource"])
        elif ctx.method == "resources/read":
            result["contents"] = [_with_name(contents) for contents in result["contents"]]
    return result


def _with_name(contents: dict[str, Any]) -> dict[str, Any]:
    meta = contents["_meta"]
    return {"uri": contents["uri"], "name": meta["name"], "title": meta["title"], **contents}
