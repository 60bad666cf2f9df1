"""
JSON Schemas of the values that clients send and get, made from their dataclasses by pydantic.

A field that is added to a dataclass of `qmd.values` is in the tools' arguments and structured
content, in REST's bodies and replies and in OpenAPI, without a line in between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model

from qmd.tools.texts import Dialect
from qmd.values.facts import FieldFacts, OmitDefault, wire_fields, without_none

#: What a client may take a field for that was not sent and has no default but None.
_EMPTY: Mapping[Any, object] = {str: "", tuple: [], Mapping: {}}


class ReplyModel(BaseModel):
    """Base of the models that describe replies: what is not described is not sent."""

    model_config = ConfigDict(extra="forbid", frozen=True, protected_namespaces=())


def reply_model(value_type: type, name: str | None = None, **more: Any) -> type[ReplyModel]:
    """
    The pydantic model of a value as it is sent in snake case.

    Args:
        name: The model's name in OpenAPI, if it is not that of the dataclass.
        more: Annotations of fields that a face always sends with the value.
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
    The JSON Schema of a value in a tool's structured content, as short as it can be and true.

    Args:
        more: As of `reply_model`.
    """
    schema = reply_model(value_type, **more).model_json_schema(mode="serialization")
    return _compact(schema, schema.get("$defs", {}), dialect)


def prescribed_schema(value_type: type) -> dict[str, Any]:
    """The JSON Schema of a value with what its facts say, where a specification prescribes it."""
    schema = reply_model(value_type).model_json_schema(mode="serialization")
    schema.pop("description", None)  # the docstring, which is not for clients
    result: dict[str, Any] = without_titles(schema)
    for field in result["properties"].values():
        field.pop("default", None)  # what is not sent has no value
    return result


def without_titles(schema: Any) -> Any:
    """pydantic repeats every name as a title; a property called title is none."""
    if isinstance(schema, list):
        return [without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: {name: without_titles(each) for name, each in value.items()}
        if key == "properties"
        else without_titles(value)
        for key, value in schema.items()
        if key != "title"
    }


def _member(field: FieldFacts) -> tuple[Any, Any]:
    """The annotation of a field as it is sent, and its default."""
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
    """A type with the models of the dataclasses in it."""
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
    """A docstring of one line; longer ones are for whoever reads the code."""
    text = (value_type.__doc__ or "").strip()
    return None if "\n" in text or text.startswith(f"{value_type.__name__}(") else text or None


def _compact(
    schema: Mapping[str, Any], definitions: Mapping[str, Any], dialect: Dialect
) -> dict[str, Any]:
    """Types and names alone: a client checks replies by them, and a model reads them."""
    if "$ref" in schema:
        return _compact(definitions[schema["$ref"].rpartition("/")[2]], definitions, dialect)
    if "anyOf" in schema:
        return {"type": [each["type"] for each in schema["anyOf"]]}
    if "enum" in schema:
        return {"enum": schema["enum"]}
    short: dict[str, Any] = {"type": schema["type"]}
    if "items" in schema:
        short["items"] = _compact(schema["items"], definitions, dialect)
    if "properties" in schema:
        short["properties"] = {
            dialect.field(name): _compact(each, definitions, dialect)
            for name, each in schema["properties"].items()
        }
        short["required"] = [dialect.field(name) for name in schema.get("required", ())]
    return short
