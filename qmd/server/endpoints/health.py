"""Whether the server can answer."""

from __future__ import annotations

from pydantic import BaseModel

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, Endpoint


def _health(call: Call) -> BaseModel:
    call.kb.contexts()  # the smallest true read
    return models.Health(status="healthy", model_loaded=call.kb.model_loaded())


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
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
