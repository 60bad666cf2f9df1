"""
The REST endpoints, a module a resource; each endpoint stands below the handler it names.

Handlers block and run on worker threads. Those that a tool has as well call the tool.
"""

from __future__ import annotations

from qmd.server.endpoints import (
    collections,
    contexts,
    documents,
    embedding,
    health,
    index,
    search,
)

ENDPOINTS = (
    *search.ENDPOINTS,
    *documents.ENDPOINTS,
    *embedding.ENDPOINTS,
    *collections.ENDPOINTS,
    *index.ENDPOINTS,
    *contexts.ENDPOINTS,
    *health.ENDPOINTS,
)
"""In the order in which the description lists them."""
