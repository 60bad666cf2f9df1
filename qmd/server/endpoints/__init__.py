"""
The REST endpoints, with a module for each resource: first the handlers, then the endpoints.

Handlers block and run on worker threads. If there is a tool for the same work, they call the tool.
"""

from __future__ import annotations

from qmd.server.endpoints import (
    chat,
    collections,
    contexts,
    documents,
    editing,
    embedding,
    graph,
    health,
    index,
    pushing,
    search,
)

ENDPOINTS = (
    *search.ENDPOINTS,
    *documents.ENDPOINTS,
    *graph.ENDPOINTS,
    *editing.ENDPOINTS,
    *embedding.ENDPOINTS,
    *collections.ENDPOINTS,
    *index.ENDPOINTS,
    *pushing.ENDPOINTS,
    *contexts.ENDPOINTS,
    *chat.ENDPOINTS,
    *health.ENDPOINTS,
)
"""All endpoints, in the order of the OpenAPI description."""
