"""
The arguments of the tools: strict models, their JSON Schema, and errors a caller can act on.

Models are written in snake case; a transport that speaks camel case uses the aliases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypedDict, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel

from qmd.errors import InputError
from qmd.search.pipeline import MAX_LIMIT
from qmd.search.query.dates import iso_date
from qmd.tools.bounds import excesses
from qmd.tools.spelling import closest
from qmd.values import Filters


class Arguments(BaseModel):
    """Base of all argument models: no coercion, no unknown names."""

    model_config = ConfigDict(
        strict=True, extra="forbid", frozen=True, alias_generator=to_camel, allow_inf_nan=False
    )


def _whole_number(value: object) -> object:
    """JSON Schema counts 5.0 as an integer, so we do too."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _blank_is_absent(value: object) -> object:
    """Models often send "" for an optional argument they do not use."""
    return None if isinstance(value, str) and not value.strip() else value


def _iso_date(value: str | None) -> str | None:
    """A year or a month stands for its first day."""
    if value is None:
        return None
    try:
        return iso_date(value)
    except InputError:
        raise ValueError("an ISO date such as 2025-03-01") from None


Integer = Annotated[int, BeforeValidator(_whole_number)]
Count = Annotated[int, Field(ge=1), BeforeValidator(_whole_number)]
OptionalText = Annotated[str | None, BeforeValidator(_blank_is_absent)]
OptionalDate = Annotated[OptionalText, AfterValidator(_iso_date)]


class SearchOptions(TypedDict):
    """What the three searches of `KnowledgeBase` take beside the query."""

    limit: int
    min_score: float
    min_relevance: float
    filters: Filters
    explain: bool


class SearchArguments(Arguments):
    query: str = Field(description="What to look for")
    limit: Integer = Field(10, ge=1, le=MAX_LIMIT, description="Most hits to return")
    min_score: float = Field(0, ge=0, le=1, description="Drop hits that score less")
    collection: OptionalText = Field(None, description="Only this collection")
    path: OptionalText = Field(
        None, description="Only below this folder, with or without the collection in front"
    )
    tags: list[str] = Field([], description="Only documents with all of these tags")
    after: OptionalDate = Field(None, description="ISO date, inclusive")
    before: OptionalDate = Field(None, description="ISO date, exclusive")
    explain: bool = Field(False, description="Say how each score came about")
    min_relevance: float = Field(0, ge=0, le=1, description="Drop hits less likely to answer")

    def options(self) -> SearchOptions:
        return {
            "limit": self.limit,
            "min_score": self.min_score,
            "min_relevance": self.min_relevance,
            "filters": self.filters(),
            "explain": self.explain,
        }

    def filters(self) -> Filters:
        return Filters(
            collections=(self.collection,) if self.collection is not None else (),
            path=self.path,
            tags=tuple(self.tags),
            after=self.after,
            before=self.before,
        )


class VsearchArguments(SearchArguments):
    min_score: float = Field(0.3, ge=0, le=1, description="Drop hits that score less")


class GetArguments(Arguments):
    file: str = Field(description="Path, `#docid` or qmd:// URI; `:LINE` behind it beats fromLine")
    from_line: Integer | None = Field(None, description="First line, 1-based")
    max_lines: Count | None = Field(None, description="Most lines to return")
    line_numbers: bool = Field(False, description="Number the lines")


class MultiGetArguments(Arguments):
    pattern: str = Field(
        description="Glob (`journals/2025-05*.md`) or comma-separated list of files"
    )
    max_lines: Count | None = Field(None, description="Most lines of each file")
    max_bytes: Count = Field(10240, description="Skip files larger than this")
    line_numbers: bool = Field(False, description="Number the lines")


class StatusArguments(Arguments):
    pass


ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


def input_schema(model: type[Arguments], *, camel_case: bool = True) -> dict[str, Any]:
    """
    The JSON Schema of a model by one case of its names, as short as it can be and still be true.

    An optional argument is one that is not in ``required``; null for it counts as absent,
    which clients need not know, so no property is a union with null. Shared: not to be changed.
    """
    return _input_schema(model, camel_case)


@cache
def _input_schema(model: type[Arguments], camel_case: bool) -> dict[str, Any]:
    schema = model.model_json_schema(by_alias=camel_case)
    properties = {name: _compact(each) for name, each in schema.get("properties", {}).items()}
    result: dict[str, Any] = {"type": "object", "properties": properties}
    if schema.get("required"):
        result["required"] = schema["required"]
    return {**result, "additionalProperties": False}


def _compact(schema: Mapping[str, Any]) -> dict[str, Any]:
    flat = dict(schema)
    for each in flat.pop("anyOf", ()):
        if each.get("type") != "null":
            flat = {**each, **flat}
    flat.pop("title", None)
    if flat.get("default", 0) in (None, []):
        del flat["default"]
    order = ("type", "enum", "items", "minimum", "maximum", "default", "description")
    return {key: flat[key] for key in order if key in flat}


def parse_arguments(
    tool: str,
    model: type[ArgumentsT],
    raw: Mapping[str, Any] | None,
    *,
    camel_case: bool = True,
) -> ArgumentsT:
    """
    Check a call's arguments against ``model``, by one case of their names.

    Raises:
        InputError: One sentence for each thing wrong: what is expected and what was given.
    """
    too_long = excesses(raw or {})
    if too_long:
        raise InputError(f"Invalid arguments for {tool}: " + "; ".join(map(str, too_long)))
    schema = input_schema(model, camel_case=camel_case)
    properties: Mapping[str, Any] = schema["properties"]
    required = schema.get("required", ())
    given = {
        name: value
        for name, value in (raw or {}).items()
        if value is not None or name in required or name not in properties
    }
    problems = [_unknown(name, properties) for name in given if name not in properties]
    try:
        return model.model_validate(given, by_alias=camel_case, by_name=not camel_case)
    except ValidationError as error:
        wrong: dict[str, str] = {}  # by argument: a list with two bad items is one problem
        for each in error.errors(include_url=False):
            name = str(each["loc"][0])
            if each["type"] == "value_error":  # a validator of ours, which says what it expects
                wrong[name] = str(each["ctx"]["error"])
            elif each["type"] != "extra_forbidden":
                wrong[name] = _expected(properties[name])
        problems += [_wrong(name, given, expected) for name, expected in wrong.items()]
        if any(name not in properties for name in given):
            problems.append(f"known arguments: {', '.join(properties) or 'none'}")
        raise InputError(f"Invalid arguments for {tool}: " + "; ".join(problems)) from error


def _unknown(name: str, known: Mapping[str, Any]) -> str:
    plain = {each.lower(): each for each in known}
    close = closest(name.replace("_", "").lower(), plain, cutoff=0.75)
    hint = f" (did you mean {plain[close]}?)" if close else ""
    return f"unknown argument {_shown(name)}{hint}"


def _wrong(name: str, given: Mapping[str, Any], expected: str) -> str:
    if name not in given:
        return f"{name} is required ({expected})"
    return f"{name} must be {expected}, got {_shown(given[name])}"


def _expected(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return " or ".join(map(_shown, schema["enum"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    kind = {
        "integer": "an integer",
        "number": "a number",
        "string": "a string",
        "boolean": "true or false",
        "array": "a list of strings",
    }[schema["type"]]
    if low is not None and high is not None:
        return f"{kind} from {low:g} to {high:g}"
    return kind if low is None else f"{kind} of at least {low:g}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."
