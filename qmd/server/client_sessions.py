"""
Which session a request belongs to: what it writes can be undone together (`qmd.system.session`).

A client may name its session in the header ``X-QMD-Session``. An MCP session over HTTP has the id
that the protocol gives it, of which only a hash is recorded, because whoever knows the id can use
the session. All other requests of a server process share one session; over stdio, that is the
session of the one client.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

HEADER = "x-qmd-session"
_MCP_HEADER = "mcp-session-id"


def session_of(headers: Mapping[str, str] | None, *, otherwise: str) -> str:
    """
    The name of a request's session.

    Args:
        headers: Of the HTTP request, with names in lower case; None for a request over stdio.
        otherwise: The session of requests that name none.
    """
    if headers is None:
        return otherwise
    named = headers.get(HEADER, "").strip()
    if named:
        return named
    session_id = headers.get(_MCP_HEADER)
    if session_id:
        return f"mcp-{hashlib.sha256(session_id.encode()).hexdigest()[:8]}"
    return otherwise
