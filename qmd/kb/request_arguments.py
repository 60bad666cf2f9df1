"""Methods that take the fields of `SearchRequest` as arguments, from their one definition."""

from __future__ import annotations

import functools
from collections.abc import Callable
from inspect import Parameter, Signature
from typing import Concatenate, ParamSpec, TypeVar, cast

from qmd.values import SearchReply, SearchRequest
from qmd.values.facts import FieldFacts, ForCommands, field_facts

RequestFields = ParamSpec("RequestFields")
OwnerT = TypeVar("OwnerT")


def takes_fields(
    request_type: Callable[RequestFields, SearchRequest], **defaults: object
) -> Callable[
    [Callable[[OwnerT, SearchRequest], SearchReply]],
    Callable[Concatenate[OwnerT, RequestFields], SearchReply],
]:
    """
    Let callers of a search method give the fields of its request, and type checkers know them.

    The name of the method is that of its command; a field that is for other commands is a
    TypeError.

    Args:
        defaults: Where they differ from those of the request.
    """
    request_with = cast("Callable[..., SearchRequest]", request_type)

    def wrap(
        method: Callable[[OwnerT, SearchRequest], SearchReply],
    ) -> Callable[Concatenate[OwnerT, RequestFields], SearchReply]:
        signature = _signature(method.__name__, defaults)

        @functools.wraps(method)
        def with_fields(
            self: OwnerT, /, *query: RequestFields.args, **options: RequestFields.kwargs
        ) -> SearchReply:
            signature.bind(self, *query, **options)
            return method(self, request_with(*query, **{**defaults, **options}))

        vars(with_fields)["__signature__"] = signature
        return with_fields

    return wrap


def _signature(command: str, defaults: dict[str, object]) -> Signature:
    """What `help` and editors show, and calls are checked by."""
    parameters = [
        Parameter(
            field.name,
            Parameter.POSITIONAL_OR_KEYWORD if field.is_required else Parameter.KEYWORD_ONLY,
            default=defaults.get(
                field.name, Parameter.empty if field.is_required else field.default
            ),
            annotation=field.hint,
        )
        for field in field_facts(SearchRequest)
        if _is_for(command, field)
    ]
    this = Parameter("self", Parameter.POSITIONAL_ONLY)
    return Signature([this, *parameters], return_annotation=SearchReply)


def _is_for(command: str, field: FieldFacts) -> bool:
    commands = field.get(ForCommands)
    return commands is None or command in commands.names
