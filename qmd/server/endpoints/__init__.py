"""
The REST endpoints: `definition` makes those of `qmd.operations`, and those that only a server has.

Handlers block and run on worker threads.
"""

from __future__ import annotations

from functools import cache

from qmd.operations import FAMILIES, Operation, of_plugins
from qmd.server.endpoints import chat, collections, embedding, health, pushing
from qmd.server.endpoints.definition import RestEndpoint, endpoints_in, endpoints_of

_ALL = (
    *(endpoint for family in FAMILIES for endpoint in endpoints_of(family)),
    *endpoints_in(embedding),
    *endpoints_in(collections),
    *endpoints_in(pushing),
    *endpoints_in(chat),
    *endpoints_in(health),
)
_GROUPS = list(dict.fromkeys(endpoint.group for endpoint in _ALL))

#: All endpoints of qmd, group by group: the order of the OpenAPI description.
ENDPOINTS = tuple(sorted(_ALL, key=lambda endpoint: _GROUPS.index(endpoint.group)))


def endpoints() -> tuple[RestEndpoint, ...]:
    """All endpoints, those of the plugins of this process last."""
    return (*ENDPOINTS, *map(_endpoint_of, of_plugins()))


@cache
def _endpoint_of(operation: Operation) -> RestEndpoint:
    """That of an operation of a plugin, with its models."""
    return RestEndpoint(operation)
