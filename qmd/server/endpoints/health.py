"""The endpoint that reports whether the server can answer."""

from __future__ import annotations

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint


def _health(call: Call) -> models.Health:
    call.kb.contexts()  # a cheap query, which fails if the database cannot be read
    return models.Health(status="healthy", model_loaded=call.kb.model_loaded())


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="GET",
        path="/health",
        name="health",
        group="server",
        summary="Whether the server can answer",
        description="Needs no token and tells nothing more. 503 when the index cannot be read.",
        reply=models.Health,
        run=_health,
        lane="health",
    ),
)
