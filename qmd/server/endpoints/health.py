"""The endpoint that reports whether the server can answer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.operations.definition import operation
from qmd.server.endpoints.definition import Call
from qmd.values.facts import Describe

FAMILY = {"toolset": None, "command": None, "group": "server"}


@dataclass(frozen=True, slots=True)
class Health:
    status: Literal["healthy", "unhealthy"]
    model_loaded: Annotated[bool, Describe("Whether the embedding model is in memory")]


@operation(lane="health")
def health(call: Call) -> Health:
    """
    Whether the server can answer.

    Needs no token and tells nothing more. 503 when the index cannot be read.
    """
    call.kb.contexts()  # a cheap query, which fails if the database cannot be read
    return Health("healthy", call.kb.model_loaded())
