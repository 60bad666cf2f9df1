"""Makes the endpoints of the operations that `qmd.operations` declares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

from qmd.operations import Operation, operations_of, texts
from qmd.operations.replies import Reply, TextBlock
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.server.rest_models import NoArguments
from qmd.tools.operations import arguments_of, called, reply_to
from qmd.tools.schemas import ReplyModel, reply_model

Shape = Callable[[Reply], Answer]


def in_order(model: type[ReplyModel], reply: Reply) -> dict[str, Any]:
    """A tool's structured content and, as ``content``, its text, in the order of the model."""
    assert reply.structured is not None
    parts = {**reply.structured, "content": first_text(reply)}
    return {name: parts[name] for name in model.model_fields if name in parts}


def first_text(reply: Reply) -> str:
    """The first text of a reply, which the specification prescribes; REST has fields for others."""
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text


def endpoint_by_hand(operation: Operation, reply: type, shape: Shape) -> RestEndpoint:
    """The endpoint of an operation whose answer REST prescribes: a shape of what its tool says."""

    def run(call: Call) -> Answer:
        return shape(reply_to(operation, call.kb, call.arguments, texts.REST))

    return replace(_endpoint(operation), reply=reply, run=run)


def endpoints_of(family: str) -> tuple[RestEndpoint, ...]:
    """The endpoints of the operations of a family."""
    return tuple(_endpoint(each) for each in operations_of(family) if not each.in_shell_alone)


def _endpoint(operation: Operation) -> RestEndpoint:
    summary, *more = operation.paragraphs
    arguments, reply = arguments_of(operation), _reply(operation)

    has_body = operation.writes or bool(operation.bodies)

    def run(call: Call) -> Answer:
        if operation.text is not None:
            return in_order(reply, reply_to(operation, call.kb, call.arguments, texts.REST))
        sent, budget = called(operation, call.arguments)
        return cast("Answer", operation.call(call.kb, sent, budget))

    return RestEndpoint(
        method="POST" if has_body else "GET",
        path=f"/{operation.name}",
        name=operation.name,
        group=operation.group or operation.family,
        summary=summary.rstrip("."),
        description=more[0] if more else "",
        body=arguments if has_body else None,
        query=NoArguments if has_body else arguments,
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
