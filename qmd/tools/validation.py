"""
The arguments of a call against the model of a tool: what is wrong, first as values, then in words.

`validate` finds the problems. How they are worded is the toolset's choice (`Tool.refusal`), since
specifications prescribe their texts; `invalid_arguments` is the wording of all that prescribe none.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from qmd.errors import InputError, QmdError
from qmd.tools.arguments import Arguments, input_schema
from qmd.tools.bounds import Excess, excesses
from qmd.tools.spelling import closest

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)

ProblemKind = Literal["missing", "unknown", "type", "choice", "value"]
"""
"missing": required, and absent or null. "unknown": no argument has this name. "type": not of the
JSON type. "choice": a text that is none of the allowed ones. "value": anything else.
"""


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """
    One argument that cannot be used.

    ``path`` leads to it: its name or, in an object, the object's name and that of the field.
    ``schema`` is the JSON Schema of the argument, empty for an unknown one. ``value`` is what was
    sent. ``expected`` is the sentence of a validator that says more than the schema.
    """

    path: tuple[str, ...]
    kind: ProblemKind
    schema: Mapping[str, Any]
    value: object = None
    expected: str | None = None

    @property
    def name(self) -> str:
        return self.path[-1]


class InvalidArgumentsError(Exception):
    """
    A call's arguments cannot be used, because of either ``excesses`` or ``problems``.

    ``arguments`` are those that were sent; ``schema`` is the one they have to satisfy.
    """

    def __init__(
        self,
        arguments: Mapping[str, Any],
        schema: Mapping[str, Any],
        *,
        excesses: tuple[Excess, ...] = (),
        problems: tuple[ArgumentProblem, ...] = (),
    ) -> None:
        super().__init__("; ".join(map(str, excesses or problems)))
        self.arguments = arguments
        self.schema = schema
        self.excesses = excesses
        self.problems = problems

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments that there are."""
        return tuple(self.schema["properties"])


Refusal = Callable[[str, InvalidArgumentsError], QmdError]
"""Words the problems of a call: takes the tool's name, and returns the error to be raised."""


def validate(
    model: type[ArgumentsT], arguments: Mapping[str, Any] | None, *, camel_case: bool = True
) -> ArgumentsT:
    """
    Check a call's arguments against ``model``, by one case of their names; null counts as absent.

    Raises:
        InvalidArgumentsError.
    """
    sent = arguments or {}
    schema = input_schema(model, camel_case=camel_case)
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


def _problem(
    detail: ErrorDetails, schema: Mapping[str, Any], arguments: Mapping[str, Any]
) -> ArgumentProblem:
    """The problem that pydantic describes with ``detail``."""
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
        _kind(detail["type"], schema, value, is_item=len(path) < len(detail["loc"])),
        schema,
        value,
        None if sentence is None else str(sentence),
    )


def _kind(
    error_type: str, schema: Mapping[str, Any], value: object, *, is_item: bool
) -> ProblemKind:
    if error_type == "extra_forbidden":
        return "unknown"
    if value is None:
        return "missing"
    if "enum" in schema:
        return "choice" if isinstance(value, str) else "type"
    if not is_item and (error_type.endswith("_type") or error_type == "is_instance_of"):
        return "type"
    return "value"


# --- words ---------------------------------------------------------------------------


def parse_arguments(
    operation: str,
    model: type[ArgumentsT],
    arguments: Mapping[str, Any] | None,
    *,
    camel_case: bool = True,
) -> ArgumentsT:
    """
    As `validate`, with the problems worded by `invalid_arguments`.

    Raises:
        InputError: One sentence for each problem: what is expected and what was sent.
    """
    try:
        return validate(model, arguments, camel_case=camel_case)
    except InvalidArgumentsError as error:
        raise invalid_arguments(operation, error) from error


def invalid_arguments(operation: str, error: InvalidArgumentsError) -> InputError:
    """The problems of a call in English, unknown arguments first; ``operation`` names the tool."""
    unknown = [each for each in error.problems if each.kind == "unknown"]
    others = [each for each in error.problems if each.kind != "unknown"]
    sentences = [
        *map(str, error.excesses),
        *(_unknown(each.name, error.names) for each in unknown),
        *(_wrong(each, error.arguments) for each in others),
    ]
    if unknown:
        sentences.append(f"known arguments: {', '.join(error.names) or 'none'}")
    return InputError(f"Invalid arguments for {operation}: " + "; ".join(sentences))


def _unknown(name: str, names: Iterable[str]) -> str:
    plain = {each.lower(): each for each in names}
    close = closest(name.replace("_", "").lower(), plain, cutoff=0.75)
    hint = f" (did you mean {plain[close]}?)" if close else ""
    return f"unknown argument {_shown(name)}{hint}"


def _wrong(problem: ArgumentProblem, arguments: Mapping[str, Any]) -> str:
    expected = problem.expected or expectation(problem.schema)
    if problem.kind == "missing" and problem.name not in arguments:
        return f"{problem.name} is required ({expected})"
    return f"{problem.name} must be {expected}, got {_shown(problem.value)}"


_TYPES = {
    "integer": "an integer",
    "number": "a number",
    "string": "a string",
    "boolean": "true or false",
    "array": "a list of strings",
    "object": "an object",
}


def expectation(schema: Mapping[str, Any]) -> str:
    """What an argument with this JSON Schema has to be: "an integer from 1 to 1000"."""
    if "enum" in schema:
        return " or ".join(map(_shown, schema["enum"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    expected = _TYPES[schema["type"]]
    if low is not None and high is not None:
        return f"{expected} from {low:g} to {high:g}"
    return expected if low is None else f"{expected} of at least {low:g}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def parameter_sentences(problems: Iterable[ArgumentProblem]) -> list[str]:
    """
    The problems in the words that the specifications of notes and agent share, what is missing
    first. They have no words for the fields of an object, nor for a value of the right type.
    """
    sentences = {
        "missing": "Missing required parameter: {name}",
        "type": "Parameter '{name}' must be {expected}",
        "choice": "Parameter '{name}' must be one of: {choices}",
    }
    in_order = sorted(problems, key=lambda problem: problem.kind != "missing")
    return [
        sentences[each.kind].format(
            name=each.name,
            expected=_TYPES[each.schema["type"]].removesuffix(" of strings"),
            choices=", ".join(each.schema.get("enum", ())),
        )
        for each in in_order
        if each.kind in sentences and len(each.path) == 1
    ]
