"""How a language model is offered tools."""

from __future__ import annotations

from typing import Literal, get_args

#: ``blocks``: in the system prompt; the model writes blocks. ``native``: with the server's own
#: calls of tools. ``auto``: natively, and with blocks once the server refuses that.
ToolCallMode = Literal["auto", "blocks", "native"]

TOOL_CALL_MODES: tuple[ToolCallMode, ...] = get_args(ToolCallMode)
