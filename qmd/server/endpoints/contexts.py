"""The endpoints that add and remove contexts, which describe what lies below a path."""

from __future__ import annotations

from qmd.errors import ContextNotFoundError, InputError, NotFoundError
from qmd.server import rest_models as models
from qmd.server.endpoints.client_paths import context_path
from qmd.server.endpoints.definition import Call, RestEndpoint


def _add_context(call: Call) -> models.ContextAdded:
    arguments: models.AddContextArguments = call.arguments
    try:
        path = context_path(arguments.path, call.kb.collections())
        added = call.kb.add_context(path, arguments.text)
    except NotFoundError as error:
        raise InputError(str(error), hint=error.hint) from error
    return models.ContextAdded(
        status="added", path=added.path, content=f"Added context for {added.path}"
    )


def _remove_context(call: Call) -> models.ContextRemoved:
    address = call.path["path"]
    # The first slash is lost if a client joins "/contexts" and "/path/to/docs".
    spellings = [address] if address.startswith("/") else [address, f"/{address}"]
    for spelling in spellings if address else ():
        try:
            path = context_path(spelling, call.kb.collections())
            removed = call.kb.remove_context(path)
        except (NotFoundError, InputError):
            continue
        return models.ContextRemoved(status="removed", path=removed.path)
    raise ContextNotFoundError(
        f"There is no context for {address}", hint="GET /contexts lists the paths that have one."
    )


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/contexts/add",
        name="add_context",
        group="contexts",
        summary="Describe what lies below a path",
        description="Replaces the earlier text of the path; hits below the path show the new text.",
        body=models.AddContextArguments,
        reply=models.ContextAdded,
        run=_add_context,
        lane="write",
        examples=({"path": "/home/me/docs", "text": "Project documentation"},),
    ),
    RestEndpoint(
        method="DELETE",
        path="/contexts/{path}",
        name="remove_context",
        group="contexts",
        summary="Remove a context",
        description=(
            "The path as /contexts lists it, or as qmd://collection/prefix, percent-encoded: "
            "/contexts/%2Fhome%2Fme%2Fdocs."
        ),
        reply=models.ContextRemoved,
        run=_remove_context,
        errors=(404,),
        lane="write",
    ),
)
