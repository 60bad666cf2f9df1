"""MCP faces over KnowledgeBase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.server import app as app
    from qmd.server import http as http
    from qmd.server import mcp as mcp
    from qmd.server import oauth as oauth
    from qmd.server import page as page
    from qmd.server import process as process
    from qmd.server import stdio as stdio
    from qmd.server import streams as streams

__getattr__ = lazy.load(__name__)
