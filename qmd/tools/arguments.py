"""
The arguments of the tools: strict models and their JSON Schema; `qmd.tools.validation` checks them.

Models are written in snake case; a transport that speaks camel case uses the aliases.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypedDict

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, InstanceOf
from pydantic.alias_generators import to_camel

from qmd.errors import InputError
from qmd.search.query.dates import iso_date
from qmd.values import Filters
from qmd.values.search import MAX_LIMIT


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
TextAsSent = InstanceOf[str]
"""A text with whatever it holds; pydantic's own check of a text refuses half a surrogate pair."""
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
    schema.pop("description", None)  # the docstring of the class, which is not for clients
    return _compact(schema, schema.get("$defs", {}))


_KEYWORDS = ("type", "enum", "items", "minimum", "maximum", "default")
_OBJECT_KEYWORDS = ("properties", "required", "additionalProperties")


def _compact(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> dict[str, Any]:
    """A schema without titles, unions with null and references, in the order of its keywords."""
    flat = dict(schema)
    for each in flat.pop("anyOf", ()):
        if each.get("type") != "null":
            flat = {**each, **flat}
    if "$ref" in flat:
        flat = {**definitions[flat["$ref"].rpartition("/")[2]], **flat}
    if flat.get("default", 0) in (None, []):
        del flat["default"]
    if flat.get("type") == "object":
        flat["properties"] = {
            name: _compact(each, definitions) for name, each in flat.get("properties", {}).items()
        }
    return {key: flat[key] for key in (*_KEYWORDS, *_OBJECT_KEYWORDS, "description") if key in flat}
