"""Makes the endpoints of the operations that `qmd.operations` declares."""

from __future__ import annotations

from typing import Any, cast

from qmd.operations import Operation, operations_of, texts
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.server.rest_models import NoArguments
from qmd.tools.operations import arguments_of, called, text_of
from qmd.tools.schemas import ReplyModel, reply_model
from qmd.values.wire import to_wire


def endpoints_of(family: str) -> tuple[RestEndpoint, ...]:
    """The endpoints of the operations of a family."""
    return tuple(_endpoint(each) for each in operations_of(family) if not each.in_shell_alone)


def _endpoint(operation: Operation) -> RestEndpoint:
    summary, *more = operation.paragraphs
    arguments, reply = arguments_of(operation), _reply(operation)

    def run(call: Call) -> Answer:
        sent, budget = called(operation, call.arguments)
        value: Any = operation.call(call.kb, sent, budget)
        if operation.text is None:
            return cast("Answer", value)
        parts = {**to_wire(value), "content": text_of(operation, value, sent, texts.REST)}
        return {name: parts[name] for name in reply.model_fields if name in parts}

    return RestEndpoint(
        method="POST" if operation.writes else "GET",
        path=f"/{operation.name}",
        name=operation.name,
        group=operation.group or operation.family,
        summary=summary.rstrip("."),
        description=more[0] if more else "",
        body=arguments if operation.writes else None,
        query=NoArguments if operation.writes else arguments,
        reply=reply,
        run=run,
        raises=operation.errors,
        lane=operation.lane,
        examples=operation.bodies,
    )


def _reply(operation: Operation) -> type[ReplyModel]:
    """The model of a reply; one that is no list has its text as ``content``."""
    if operation.text is None:
        return reply_model(operation.reply)
    return reply_model(operation.reply, content=str)
