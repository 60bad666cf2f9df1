"""
Makes the JSON Schemas that clients get of arguments and replies.

Those of replies come from the dataclasses of `qmd.values`, with pydantic: a new field of such a
dataclass appears in the structured content of tools, in the replies of REST and in OpenAPI without
any other change.

Rules make of pydantic's schemas those that clients get. A rule is a function of one schema;
`rewritten` applies it to a schema and to all in it. `shorten` and `outline` leave out what a
listing of tools has said before.

- `without_null`: null counts as absent, so no argument is a union with null, or null by default.
- `for_models`: nothing but what a model needs to call a tool, in a fixed order.
- `for_all_sdks`: the dialect that the SDKs of all models take.
- `for_programs`: all that the facts of an argument say.
- `types_and_names`: nothing but what a program needs to read a reply.
- `without_titles`: pydantic's titles only repeat the names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import cache
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict, create_model
from pydantic.fields import FieldInfo

from qmd.operations.texts import Dialect
from qmd.values.facts import (
    LARGEST_INTEGER,
    DateOrSpan,
    FieldFacts,
    InSchema,
    OmitDefault,
    OnProperties,
    wire_fields,
    without_none,
)
from qmd.values.properties import FILTER_PATTERNS

Schema = dict[str, Any]
Rule = Callable[[Schema], Schema]


def rewritten(schema: Mapping[str, Any], *rules: Rule, inline: bool = True) -> Schema:
    """
    The schema after all rules, each of which sees what those before it made of a schema.

    ``inline``: put definitions in the place of references to them.
    """
    definitions: Mapping[str, Any] = schema.get("$defs", {}) if inline else {}

    def walk(node: Mapping[str, Any]) -> Schema:
        changed = _resolved(dict(node), definitions)
        for rule in rules:
            changed = _resolved(rule(changed), definitions)
        if "properties" in changed:
            members = changed["properties"].items()
            changed["properties"] = {name: walk(member) for name, member in members}
        for keyword in ("items", "additionalProperties"):
            if isinstance(changed.get(keyword), dict):
                changed[keyword] = walk(changed[keyword])
        if "anyOf" in changed:
            changed["anyOf"] = [walk(option) for option in changed["anyOf"]]
        return changed

    result = walk(schema)
    if inline:
        result.pop("$defs", None)
    return result


def _resolved(schema: Schema, definitions: Mapping[str, Any]) -> Schema:
    """A reference with the definition in its place; what stands beside it counts more."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name not in definitions:
        return schema
    return {**definitions[name], **{key: each for key, each in schema.items() if key != "$ref"}}


# --- rules ---------------------------------------------------------------------------


def without_null(schema: Schema) -> Schema:
    """No union with null, and no default that means that the argument is absent."""
    plain = dict(schema)
    if plain.get("type") != "object":
        for option in plain.pop("anyOf", ()):
            if option.get("type") != "null":
                plain = {**option, **plain}
    if plain.get("default", 0) in (None, []):
        del plain["default"]
    return plain


_KEYWORDS = (
    *("type", "enum", "items", "minimum", "maximum", "default"),
    *("properties", "required", "additionalProperties", "description"),
)


def for_models(schema: Schema) -> Schema:
    """The keywords that a model reads, in a fixed order."""
    if schema.get("type") == "object":
        schema = {"properties": {}, **schema}
    return {key: schema[key] for key in _KEYWORDS if key in schema}


#: Keywords that say what a value of one type may be; the others hold for all types.
_OF_ONE_TYPE = {"items": "array", "minimum": "number", "maximum": "number"}


def for_all_sdks(schema: Schema) -> Schema:
    """
    The dialect that the SDKs of all models take.

    Google's fails on ``additionalProperties: false``, and converters know a ``type`` only as
    one word. `qmd.tools.arguments` refuses unknown arguments all the same. An object without any
    property would be refused by the strict mode of OpenAI's SDK, so each tool has an argument,
    except where a specification prescribes that it has none.
    """
    sent = {key: each for key, each in schema.items() if key != "additionalProperties"}
    if isinstance(sent.get("type", ""), str):
        return sent
    common = {key: sent[key] for key in sent if key != "type" and key not in _OF_ONE_TYPE}
    options = [
        {"type": kind} | {key: sent[key] for key in sent if _OF_ONE_TYPE.get(key) == kind}
        for kind in sent["type"]
    ]
    return {"anyOf": options, **common}


def types_and_names(rename: Callable[[str], str]) -> Rule:
    """Types, choices and names alone; ``rename`` gives the name that is sent."""

    def rule(schema: Schema) -> Schema:
        if "anyOf" in schema:
            return {"type": [option["type"] for option in schema["anyOf"]]}
        if "enum" in schema:
            return {"enum": schema["enum"]}
        short: Schema = {"type": schema["type"]}
        if "items" in schema:
            short["items"] = schema["items"]
        if "properties" in schema:
            members = schema["properties"].items()
            short["properties"] = {rename(name): member for name, member in members}
            short["required"] = [rename(name) for name in schema.get("required", ())]
        return short

    return rule


def without_titles(schema: Schema) -> Schema:
    """A schema without its title, and without a default of null."""
    return {
        key: each
        for key, each in schema.items()
        if key != "title" and (key, each) != ("default", None)
    }


# --- what programs get ---------------------------------------------------------------

_DATE = {
    "anyOf": [
        {"type": "string", "format": "date"},
        {"type": "string", "format": "date-time"},
        {"type": "string", "pattern": "^[1-9][0-9]{3}(-(0[1-9]|1[0-2]))?$"},
        {"type": "string", "pattern": "^([0-9]{1,6}(m|h|d|w|mo|y)|today|yesterday|今天|昨天)$"},
        {"type": "string", "pattern": r"^\s*$"},
        {"type": "null"},
    ]
}

_CONDITION = {
    "type": "string",
    "anyOf": [{"pattern": pattern} for pattern in FILTER_PATTERNS],
}


def for_programs(schema: Schema, field: FieldInfo, *, in_body: bool, is_optional: bool) -> Schema:
    """All that the facts of an argument say beyond its type; ``in_body``: it is sent as JSON."""
    facts = {type(fact): fact for fact in field.metadata}
    described = dict(schema)
    if OnProperties in facts:
        described["items"] = _CONDITION
    if in_body and DateOrSpan in facts:
        del described["type"]
        described = {**_DATE, **described}
    elif in_body:
        if described.get("type") == "integer":
            described = {"minimum": -LARGEST_INTEGER, "maximum": LARGEST_INTEGER, **described}
        if is_optional:  # null counts as absent
            described["type"] = [described["type"], "null"]
            if "enum" in described:
                described["enum"] = [*described["enum"], None]
    if isinstance(field.json_schema_extra, dict):
        described |= field.json_schema_extra
    if InSchema in facts:
        described |= facts[InSchema].keywords
    return described


# --- what a listing of tools says ----------------------------------------------------


def shorten(name: str, schema: Schema, listed: set[tuple[object, ...]]) -> None:
    """Leave out of an argument what is ``listed`` already, and what says "any" or "not at all"."""
    for keyword in ("description", "minimum", "maximum", "default"):
        statement = (name, keyword, schema.get(keyword))
        says_nothing = (keyword, schema.get(keyword)) in _NOTHING
        if keyword in schema and (statement in listed or says_nothing):
            del schema[keyword]
        listed.add(statement)


_NOTHING = frozenset({("minimum", 0), ("minimum", 1), ("default", 0), ("default", False)})


def outline(schema: Schema, listed: set[tuple[object, ...]]) -> Schema:
    """A schema of replies with the names of what is always there, unless they were ``listed``."""
    short: dict[str, Any] = {"type": schema["type"]}
    members = {name: schema["properties"][name] for name in schema.get("required", ())}
    items = {
        name: outline(member["items"], listed)
        for name, member in members.items()
        if "items" in member
    }
    lists = {
        name: {"type": "array", "items": item}
        for name, item in items.items()
        if item != {"type": "object"}
    }
    if lists:
        short["properties"] = lists
    statements = {("", "required", name) for name in members}
    if not statements <= listed:
        short["required"] = list(members)
    listed |= statements
    return short


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
