"""
Makes the JSON Schemas of replies from the dataclasses of `qmd.values`, with pydantic.

So a new field of such a dataclass appears in the structured content of tools, in the replies of
REST and in OpenAPI without any other change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from qmd.operations.texts import Dialect
from qmd.tools.schema_rules import rewritten, types_and_names, without_titles
from qmd.values.facts import FieldFacts, OmitDefault, wire_fields, without_none

#: Type → the default in the schema, for a field that is left out if it is None.
_EMPTY: Mapping[Any, object] = {str: "", tuple: [], Mapping: {}}


class ReplyModel(BaseModel):
    """Base of the models that describe replies; a reply has no other fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def reply_model(value_type: type, name: str | None = None, **more: Any) -> type[ReplyModel]:
    """
    The pydantic model of a dataclass in its wire form, in snake case.

    Args:
        name: The model's name in OpenAPI; None for the name of the dataclass.
        more: Name → type of fields that are always sent in addition.
    """
    return _reply_model(value_type, name, **more)


@cache
def _reply_model(value_type: Any, name: str | None, **more: Any) -> type[ReplyModel]:
    members = {field.wire_name: _member(field) for field in wire_fields(value_type)}
    always = {key: member for key, member in members.items() if member[1] is ...}
    extra = {key: (_sent_type(hint), ...) for key, hint in more.items()}
    definitions: dict[str, Any] = {**always, **extra, **members}
    return create_model(
        name or value_type.__name__,
        __base__=ReplyModel,
        __doc__=_description(value_type),
        **definitions,
    )


def output_schema(value_type: type, dialect: Dialect, **more: Any) -> dict[str, Any]:
    """
    The JSON Schema of a dataclass as a tool's structured content, as short as possible.

    Args:
        more: As in `reply_model`.
    """
    schema = reply_model(value_type, **more).model_json_schema(mode="serialization")
    return rewritten(schema, types_and_names(dialect.field))


def prescribed_schema(value_type: type) -> dict[str, Any]:
    """The JSON Schema of a dataclass with the facts of its fields, as specifications demand."""
    schema = reply_model(value_type).model_json_schema(mode="serialization")
    schema.pop("description", None)  # the docstring, which is not for clients
    result = rewritten(schema, without_titles, inline=False)
    for field in result["properties"].values():
        field.pop("default", None)  # a field that is left out has no value
    return result


def _member(field: FieldFacts) -> tuple[Any, Any]:
    """The annotation and the default of a field in the pydantic model; ``...``: always sent."""
    hint, default = field.hint, field.default
    if not field.has(OmitDefault):
        default = ...  # always sent
    elif default is None:  # never sent as null
        hint = without_none(hint)
        default = _EMPTY.get(get_origin(hint) or hint)
    annotation = _sent_type(hint)
    for fact in field.facts:
        annotation = Annotated[annotation, fact]
    return annotation, default


def _sent_type(hint: Any) -> Any:
    """A type in which each dataclass is replaced by its pydantic model."""
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return reply_model(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is tuple:
        return tuple[(_sent_type(arguments[0]), ...)]  # type: ignore[misc]
    if origin in (Union, UnionType):
        return Union[tuple(map(_sent_type, arguments))]  # noqa: UP007
    return hint


def _description(value_type: type) -> str | None:
    """The docstring of a dataclass if it has one line; longer ones are for programmers only."""
    text = (value_type.__doc__ or "").strip()
    return None if "\n" in text or text.startswith(f"{value_type.__name__}(") else text or None
