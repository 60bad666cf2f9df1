"""How the notes tools present themselves to a client."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from mcp import Client
from support.golden import assert_golden
from support.mcp_client import with_client

from qmd import KnowledgeBase
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import select


def listed(directory: Path) -> list[dict[str, Any]]:
    async def use(client: Client) -> list[dict[str, Any]]:
        tools = (await client.list_tools()).tools
        return [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools]

    with KnowledgeBase.open(directory / "empty.sqlite", create=True) as kb:
        return with_client(McpFace(kb, select(["notes"])).server, use)


def test_the_notes_tools_are_as_reviewed_and_short(tmp_path: Path) -> None:
    tools = listed(tmp_path)
    assert_golden("notes_tools.json", tools)
    assert len(json.dumps(tools, ensure_ascii=False).encode()) < 3_500
