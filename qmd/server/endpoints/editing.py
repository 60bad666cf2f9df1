"""The endpoint that lists the changes of tools."""

from __future__ import annotations

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint


def _changes(call: Call) -> models.ChangeList:
    arguments: models.ChangesArguments = call.arguments
    changes = call.kb.undo.changes(arguments.session, limit=arguments.limit)
    return models.ChangeList(tuple(changes))


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="GET",
        path="/changes",
        name="changes",
        group="write",
        summary="What tools have changed, the latest first",
        description="Each change with its tool, its session and its files.",
        query=models.ChangesArguments,
        reply=models.ChangeList,
        run=_changes,
    ),
)
