"""Tools, replies and documents as MCP has them on the wire."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from typing import Any
from urllib.parse import unquote

import mcp_types as types
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from qmd.operations.bounds import MAX_PATH
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.server.mcp_sdk import CallNext, HandlerResult, MCPError, ServerRequestContext
from qmd.tools.definition import ListedTool
from qmd.values import Collection
from qmd.values.text import one_line
from qmd.values.writing import Language

MARKDOWN = "text/markdown"
URI_SCHEME = "qmd://"

#: The error code of a missing resource before 2026-07-28; later versions use INVALID_PARAMS.
_RESOURCE_NOT_FOUND = -32002

Context = ServerRequestContext[Any, Any]
#: The key of the code of an error in the ``_meta`` of a tool's reply.
ERROR_CODE = "qmd/error"


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


# --- what a model reads before its first call -----------------------------------------


PROMPT = types.Prompt(
    name="query", title="QMD Query Guide", description="如何有效使用QMD搜索知识库"
)

_MOST_COLLECTIONS = 20  # that the instructions name


def guide() -> str:
    """The prompt's text, verbatim from the interface's specification."""
    return files("qmd.tools").joinpath("guide.md").read_text(encoding="utf-8").removesuffix("\n")


def instructions(collections: Sequence[Collection], language: Language | None = None) -> str:
    """
    The instructions that a client gives its model before the first call of a tool.

    Args:
        language: None for English.
    """
    shown, more = collections[:_MOST_COLLECTIONS], len(collections) - _MOST_COLLECTIONS
    if language == "zh":
        return _in_chinese(shown, more)
    usage = (
        "qmd searches the user's own documents (Markdown; English and Chinese). "
        "Use search for words and exact phrases, query for questions, vsearch for meaning alone; "
        "then read with get or multi_get, by the hit's file. The best hit's score, 0 to 1, is the "
        "estimated chance that it answers; the other hits' scores are in proportion to it, and "
        "relevance is each hit's own chance. notice says so if no hit seems to answer."
    )
    if not shown:
        return (
            f"{usage} The index has no collections yet: "
            "the user adds one with 'qmd collection add DIR'."
        )
    named = ", ".join(
        f"{each.name} ({each.documents} document{'' if each.documents == 1 else 's'})"
        for each in shown
    )
    others = f", and {more} more (see status)" if more > 0 else ""
    return f"{usage} Collections: {one_line(named)}{others}."


def _in_chinese(shown: Sequence[Collection], more: int) -> str:
    usage = (
        "qmd 搜索用户自己的文档（Markdown，中英文皆可）。查词语和原句用 search，提问用 query，"
        "只按含义查用 vsearch；再用 get 或 multi_get 按结果的 file 阅读。最佳结果的 score（0 到 1）"
        "是它能回答问题的估计概率，其他结果的 score 与之成比例；relevance 是每个结果自己的概率。"
        "没有结果像是答案时，notice 会说明。"
    )
    if not shown:
        return f"{usage}索引中还没有集合：用户可用 'qmd collection add DIR' 添加。"
    named = "、".join(f"{each.name}（{each.documents} 篇文档）" for each in shown)
    return f"{usage}集合：{one_line(named)}{f'，另有 {more} 个（见 status）' if more > 0 else ''}。"
