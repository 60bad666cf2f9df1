"""
The argument models of the tools, their JSON Schemas, and the check of what a client sends.

The fields of the models are in snake case; a transport with camel case uses their aliases.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from functools import cache
from inspect import isclass
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    InstanceOf,
    ValidationError,
    create_model,
)
from pydantic.alias_generators import to_camel
from pydantic_core import ErrorDetails

from qmd.errors import InputError
from qmd.operations.bounds import excesses
from qmd.operations.problems import (
    ArgumentProblem,
    InvalidArgumentsError,
    ProblemKind,
    invalid_arguments,
)
from qmd.search.query import filter_date
from qmd.tools.schemas import for_models, for_programs, rewritten, without_null
from qmd.values import facts
from qmd.values.properties import parse_filter


class Arguments(BaseModel):
    """Base of all argument models: types are not converted, and unknown names are refused."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, allow_inf_nan=False
    )


def whole_number(value: object) -> object:
    """Accept 5.0 as an integer, as JSON Schema does."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _blank_is_absent(value: object) -> object:
    """Treat a blank text as absent: models often send "" for an argument they do not use."""
    return None if isinstance(value, str) and not value.strip() else value


def _filter_date(value: str | None) -> str | None:
    """The day or time that a date or a span means. Raises ValueError."""
    if value is None:
        return None
    try:
        return filter_date(value)
    except InputError:
        raise ValueError("a date such as 2026-11-20, or a span such as 7d") from None


def _condition(value: str) -> str:
    """Check a condition on a property. Raises ValueError."""
    try:
        parse_filter(value)
    except InputError:
        raise ValueError("a condition such as status:draft, rating:>4 or due:<2026-12-01") from None
    return value


#: A condition on a property; `OnProperties` belongs to a list of them, for the description.
Condition = Annotated[str, AfterValidator(_condition)]
Integer = Annotated[int, BeforeValidator(whole_number)]
Count = Annotated[int, Field(ge=1), BeforeValidator(whole_number)]
#: Any text. (The check for `str` in pydantic refuses half of a surrogate pair.)
TextAsSent = InstanceOf[str]

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


# --- models ---------------------------------------------------------------------------


def members(fields: Iterable[facts.FieldFacts]) -> dict[str, Any]:
    """The members of an argument model: name → type and default."""
    definitions: dict[str, Any] = {}
    for field in fields:
        definitions[field.wire_name] = argument(field)
        if field.has(facts.Singular):
            definitions[field.name] = (_items_type(field), [])
    return definitions


def _items_type(field: facts.FieldFacts) -> Any:
    """The type of the list that may be sent for a field that is `Singular`."""
    item: Any = get_args(field.hint)[0]
    text = f"Only these; {field.wire_name} names one"
    return Annotated[list[item], facts.Describe(text), facts.Unlisted()]


@cache
def _model_of(value_type: type) -> type[Arguments]:
    """The model of an argument that is a dataclass."""
    definitions: dict[str, Any] = members(facts.wire_fields(value_type))
    return create_model(value_type.__name__, __base__=Arguments, **definitions)


def argument(field: facts.FieldFacts) -> tuple[Any, Any]:
    """
    The type and the default of an argument in the model; a default of ``...``: it is required.

    The type does not allow null, which counts as absent before the check.
    """
    hint: Any = facts.without_none(field.hint)
    validators: list[object] = []
    if get_origin(hint) is tuple:
        item: Any = get_args(hint)[0]
        item = _model_of(item) if isclass(item) and is_dataclass(item) else item
        hint = item if field.has(facts.Singular) else list[item]
    if field.has(facts.OnProperties):
        hint = list[Condition]
    if hint is int:
        validators = [BeforeValidator(whole_number)]
    if field.has(facts.AsSent):
        hint = TextAsSent
    elif hint is str and not field.is_required:
        hint, validators = str | None, [BeforeValidator(_blank_is_absent)]
    if field.has(facts.DateOrSpan):
        validators.append(AfterValidator(_filter_date))
    for fact in (*field.facts, *validators):
        hint = Annotated[hint, fact]
    return hint, ... if field.is_required else _default(field)


def _default(field: facts.FieldFacts) -> object:
    if field.has(facts.Singular) or field.default == "":
        return None
    return list(field.default) if isinstance(field.default, tuple) else field.default


def unlisted_arguments(model: type[Arguments]) -> frozenset[str]:
    """The names, in snake case, of the arguments that are accepted and not listed."""
    return frozenset(
        name
        for name, field in model.model_fields.items()
        if any(isinstance(fact, facts.Unlisted) for fact in field.metadata)
    )


# --- JSON Schemas ---------------------------------------------------------------------


def input_schema(model: type[Arguments], *, camel_case: bool = True) -> dict[str, Any]:
    """
    The JSON Schema of an argument model, as short as possible, because a model reads it.

    An argument that is not in ``required`` is optional. Null counts as absent too, but clients need
    not know that, so no property is a union with null. The result is shared: do not change it.

    Args:
        camel_case: Whether names are in camel case; else in snake case.
    """
    return _input_schema(model, camel_case)


@cache
def _input_schema(model: type[Arguments], camel_case: bool) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=camel_case)
    schema.pop("description", None)  # the docstring of the class, which is not for clients
    return rewritten(schema, without_null, for_models)


def program_schema(model: type[Arguments], *, in_body: bool = True) -> dict[str, Any]:
    """
    The JSON Schema of an argument model for programs, in snake case, with all that is to be said.

    Args:
        in_body: The arguments are sent as JSON, in which null counts as absent; else as text.
    """
    schema = input_schema(model, camel_case=False)
    required = schema.get("required", ())
    members: dict[str, Any] = {}
    for name, member in schema["properties"].items():
        field = model.model_fields[name]
        members[name] = for_programs(
            member, field, in_body=in_body, is_optional=name not in required
        )
        for item in get_args(field.annotation):
            if isclass(item) and issubclass(item, Arguments):
                members[name]["items"] = program_schema(item, in_body=False)
    return {**schema, "properties": members}


# --- checks --------------------------------------------------------------------------


def validate(
    model: type[ArgumentsT], arguments: Mapping[str, Any] | None, *, camel_case: bool = True
) -> ArgumentsT:
    """
    Check the arguments of a call against ``model``; null counts as absent.

    A name in the other case counts as the listed one: models write ``max_tokens`` for
    ``maxTokens``.

    Args:
        camel_case: Whether the client writes names in camel case; else in snake case.

    Raises:
        InvalidArgumentsError: With all problems at once.
    """
    schema = input_schema(model, camel_case=camel_case)
    sent = _spelled(model, arguments or {}, schema["properties"])
    too_long = excesses(sent)
    if too_long:
        raise InvalidArgumentsError(sent, schema, excesses=tuple(too_long))
    required = schema.get("required", ())
    properties = schema["properties"]
    present = {
        name: value
        for name, value in sent.items()
        if value is not None or name in required or name not in properties
    }
    try:
        return model.model_validate(present, by_alias=camel_case, by_name=not camel_case)
    except ValidationError as error:
        problems = {}  # by path: a list with two bad items is one problem
        for detail in error.errors(include_url=False):
            problem = _problem(detail, schema, present)
            problems[problem.path] = problem
        raise InvalidArgumentsError(sent, schema, problems=tuple(problems.values())) from error


def _spelled(
    model: type[Arguments], arguments: Mapping[str, Any], listed: Mapping[str, Any]
) -> Mapping[str, Any]:
    """The arguments with the listed names; a name stays if that would overwrite another one."""
    if arguments.keys() <= listed.keys():
        return arguments
    listed_names = {
        spelling: name
        for field in model.model_fields
        for name in (field, to_camel(field))
        if name in listed
        for spelling in (field, to_camel(field))
    }
    spelled: dict[str, Any] = {}
    for name, value in arguments.items():
        listed_name = listed_names.get(name, name)
        spelled[name if listed_name in arguments else listed_name] = value
    return spelled


def _problem(
    detail: ErrorDetails, schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> ArgumentProblem:
    """The problem in one ``detail`` of a pydantic error."""
    path: list[str] = []
    value: Any = arguments
    for step in detail["loc"]:
        if "properties" not in schema:  # an item of a list; the argument is the list
            break
        name = str(step)
        path.append(name)
        schema = schema["properties"].get(name, {})
        value = value.get(name)
    sentence = detail["ctx"]["error"] if detail["type"] == "value_error" else None
    return ArgumentProblem(
        tuple(path),
        _kind(detail["type"], schema, value, is_item=_is_item(detail, path, schema)),
        schema,
        value,
        None if sentence is None else str(sentence),
    )


def _is_item(detail: ErrorDetails, path: list[str], schema: Mapping[str, Any]) -> bool:
    """Whether an item of a list is wrong. (For one of several types, pydantic names the type.)"""
    return len(path) < len(detail["loc"]) and not isinstance(schema.get("type"), list)


def _kind(
    error_type: str, schema: Mapping[str, Any], value: object, *, is_item: bool
) -> ProblemKind:
    if error_type == "extra_forbidden" and not is_item:
        return "unknown"
    if value is None:
        return "missing"
    if "enum" in schema:
        return "choice" if isinstance(value, str) else "type"
    if not is_item and (error_type.endswith("_type") or error_type == "is_instance_of"):
        return "type"
    return "value"


def parse_arguments(
    operation: str,
    model: type[ArgumentsT],
    arguments: Mapping[str, Any] | None,
    *,
    camel_case: bool = True,
) -> ArgumentsT:
    """
    Check the arguments of a REST request like `validate`; `invalid_arguments` words the problems.

    Raises:
        InputError: A sentence for each problem says what is expected and what was sent.
    """
    try:
        return validate(model, arguments, camel_case=camel_case)
    except InvalidArgumentsError as error:
        raise invalid_arguments(operation, error) from error
