"""
The REST endpoints: `definition` makes those of `qmd.operations`, and those that only a server has.

Handlers block and run on worker threads.
"""

from __future__ import annotations

from qmd.server.endpoints import (
    chat,
    collections,
    embedding,
    health,
    pushing,
)
from qmd.server.endpoints.definition import endpoints_in, endpoints_of

ENDPOINTS = (
    *endpoints_of("searches"),
    *endpoints_of("reading"),
    *endpoints_of("documents"),
    *endpoints_of("graph"),
    *endpoints_of("tasks"),
    *endpoints_of("views"),
    *endpoints_of("days"),
    *endpoints_of("editing"),
    *endpoints_of("upkeep"),
    *endpoints_in(embedding),
    *endpoints_in(collections),
    *endpoints_of("collections"),
    *endpoints_of("indexing"),
    *endpoints_in(pushing),
    *endpoints_of("contexts"),
    *endpoints_in(chat),
    *endpoints_of("chats"),
    *endpoints_in(health),
)
"""All endpoints, in the order of the OpenAPI description."""
