"""
Defines the tools. Each has one definition: name, title, description, arguments, texts and handler.

A tool uses `KnowledgeBase` and is independent of the transport. A face (MCP, REST, the agent)
runs the tool with `Tool.call` or `Tool.run`, and renders the `Reply`. A `Dialect` has the texts
that differ between transports.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.tools import images as images

__getattr__ = lazy.load(__name__)
