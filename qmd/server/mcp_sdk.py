"""
What the server uses of the MCP SDK.

The SDK's packages bring its clients and its other server along, with cryptography: 13 MB that
nothing here uses. So what they import is left until somebody asks them for it.
"""

from __future__ import annotations

from qmd.system import late_packages

late_packages.run_late("mcp")
late_packages.run_late("mcp.server")

# ruff: noqa: E402
from mcp.server.connection import Connection
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourceUpdated,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage

__all__ = [
    "CallNext",
    "Connection",
    "HandlerResult",
    "InMemorySubscriptionBus",
    "InitializationOptions",
    "ListenHandler",
    "MCPError",
    "NotificationOptions",
    "ResourceUpdated",
    "Server",
    "ServerRequestContext",
    "SessionMessage",
    "ToolsListChanged",
]
