"""
The REST endpoints, with a module for each resource: first the handlers, then the endpoints.

Handlers block and run on worker threads. If there is a tool for the same work, they call the tool.
`operations` makes those of `qmd.operations`.
"""

from __future__ import annotations

from qmd.server.endpoints import (
    chat,
    collections,
    contexts,
    embedding,
    health,
    pushing,
)
from qmd.server.endpoints.operations import endpoints_of

ENDPOINTS = (
    *endpoints_of("searches"),
    *endpoints_of("reading"),
    *endpoints_of("documents"),
    *endpoints_of("graph"),
    *endpoints_of("editing"),
    *endpoints_of("upkeep"),
    *embedding.ENDPOINTS,
    *collections.ENDPOINTS,
    *endpoints_of("collections"),
    *endpoints_of("indexing"),
    *pushing.ENDPOINTS,
    *contexts.ENDPOINTS,
    *endpoints_of("contexts"),
    *chat.ENDPOINTS,
    *endpoints_of("chats"),
    *health.ENDPOINTS,
)
"""All endpoints, in the order of the OpenAPI description."""
