"""Makes the endpoints of the operations that `qmd.operations` declares."""

from __future__ import annotations

from types import ModuleType
from typing import Any, cast, get_type_hints

from qmd.operations import Operation, operations_of, texts
from qmd.operations.definition import Replied
from qmd.operations.replies import Reply, TextBlock
from qmd.server.endpoints.definition import Answer, Call, Method, NoArguments, RestEndpoint
from qmd.tools.operations import arguments_of, called, reply_to
from qmd.tools.schemas import ReplyModel, reply_model


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


def endpoints_of(family: str) -> tuple[RestEndpoint, ...]:
    """The endpoints of the operations of a family."""
    return tuple(_endpoint(each) for each in operations_of(family) if not each.in_shell_alone)


def endpoints_in(module: ModuleType) -> tuple[RestEndpoint, ...]:
    """Those of the operations that only a server has: they take the `Call`."""
    members = vars(module).values()
    operations = (each for each in members if isinstance(each, Operation))
    return tuple(_endpoint(each, of_server=True) for each in operations)


def _endpoint(operation: Operation, *, of_server: bool = False) -> RestEndpoint:
    summary, *more = operation.paragraphs
    reply, has_body = _reply(operation), operation.method in ("POST", "PUT")
    arguments = arguments_of(operation, without=tuple(operation.in_path))
    if not arguments.model_fields:
        arguments = NoArguments

    def run(call: Call) -> Answer:
        if (operation.text or operation.tool) and operation.sends is None:
            return in_order(reply, reply_to(operation, call.kb, call.arguments, texts.REST))
        sent, budget = called(operation, call.arguments)
        sent |= {name: call.path[name] for name in operation.in_path}
        value: Any = operation.call(call if of_server else call.kb, sent, budget)
        return cast("Answer", operation.sends(Replied(value, sent)) if operation.sends else value)

    return RestEndpoint(
        method=cast("Method", operation.method),
        path=operation.path,
        name=operation.name,
        group=operation.group or operation.family,
        summary=summary.rstrip("."),
        description=more[0] if more else "",
        body=arguments if has_body else None,
        query=NoArguments if has_body else arguments,
        reply_model=reply,
        run=run,
        raises=operation.errors,
        lane=operation.lane,
        examples=operation.bodies,
    )


def _reply(operation: Operation) -> type[ReplyModel]:
    """The model of what is sent; a reply that is no list has its text as ``content``."""
    if operation.sends is not None:
        return reply_model(get_type_hints(operation.sends)["return"])
    if operation.tool is not None and operation.tool.structured is not None:
        return reply_model(operation.tool.structured, content=str, **operation.tool.more())
    if operation.text is None:
        return reply_model(operation.reply)
    return reply_model(operation.reply, content=str)
