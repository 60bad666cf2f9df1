"""MCP faces over KnowledgeBase."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.server import app, http, oauth, process, streams

__all__ = ["app", "http", "oauth", "process", "streams"]

__getattr__ = lazy.load(__name__, modules=__all__)
