"""
MCP, REST and the page over KnowledgeBase.

The packages of the MCP SDK bring its clients and its other server along, with cryptography: 13 MB
that nothing here uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy
from qmd.system import late_packages

if TYPE_CHECKING:
    from qmd.server import app as app
    from qmd.server import http as http
    from qmd.server import oauth as oauth
    from qmd.server import process as process
    from qmd.server import streams as streams

__getattr__ = lazy.load(__name__)

late_packages.run_late("mcp")
late_packages.run_late("mcp.server")
