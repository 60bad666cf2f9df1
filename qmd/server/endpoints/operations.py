"""Makes the endpoints of the operations that `qmd.operations` declares."""

from __future__ import annotations

from typing import Any

from qmd.operations import Operation, operations_of
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.tools.operations import arguments_of, called


def endpoints_of(family: str) -> tuple[RestEndpoint, ...]:
    """The endpoints of the operations of a family."""
    return tuple(map(_endpoint, operations_of(family)))


def _endpoint(operation: Operation) -> RestEndpoint:
    def run(call: Call) -> Answer:
        sent, budget = called(operation, call.arguments)
        answer: Any = operation.call(call.kb, sent, budget)
        return answer

    summary, *more = operation.paragraphs
    return RestEndpoint(
        method="GET",
        path=f"/{operation.name}",
        name=operation.name,
        group=operation.group or operation.family,
        summary=summary.rstrip("."),
        description=more[0] if more else "",
        query=arguments_of(operation),
        reply=operation.reply,
        run=run,
        errors=tuple(sorted({each.http_status for each in operation.errors})),
        lane=operation.lane,
    )
