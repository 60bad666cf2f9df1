"""
What is wrong with the arguments of a call, as values, and the words for it.

A face finds the problems when it checks a call. `Refusal` words them, because some specifications
prescribe the texts; `invalid_arguments` is the wording for all others.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from qmd.errors import InputError, QmdError

if TYPE_CHECKING:
    from qmd.operations.bounds import Excess

#: "missing": a required argument is absent or null. "unknown": no argument has this name. "type":
#: the value has another JSON type. "choice": a text is not one of those allowed. "value": any
#: other.
ProblemKind = Literal["missing", "unknown", "type", "choice", "value"]


@dataclass(frozen=True, slots=True)
class ArgumentProblem:
    """
    One argument that cannot be used.

    Attributes:
        path: The argument's name; for a field of an object, the object's name and the field's.
        schema: The JSON Schema of the argument; empty if it is unknown.
        value: The value that the client sent.
        expected: What a validator says that it expects, if that is more than the schema says.
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
    The arguments of a call are invalid.

    Attributes:
        arguments: The arguments that the client sent.
        schema: The JSON Schema of all arguments of the tool.
        excesses: The arguments that are too long. If there are any, no others were checked.
        problems: The arguments that do not satisfy the model.
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
        """The names of the arguments that the tool has."""
        return tuple(self.schema["properties"])


#: Words the problems of a call: takes the tool's name and the problems, returns the error.
Refusal = Callable[[str, InvalidArgumentsError], QmdError]


# --- words ---------------------------------------------------------------------------


def invalid_arguments(operation: str, error: InvalidArgumentsError) -> InputError:
    """
    The error that words the problems of a call in English, unknown arguments first.

    ``operation``: the name of the tool or endpoint.
    """
    unknown = [problem for problem in error.problems if problem.kind == "unknown"]
    others = [problem for problem in error.problems if problem.kind != "unknown"]
    sentences = [
        *map(str, error.excesses),
        *(_unknown(problem.name, error.names) for problem in unknown),
        *(_wrong(problem, error.arguments) for problem in others),
    ]
    if unknown:
        sentences.append(f"known arguments: {', '.join(error.names) or 'none'}")
    return InputError(f"Invalid arguments for {operation}: " + "; ".join(sentences))


#: Arguments, in lower case, that of all searches only `query` has.
_OF_QUERY = frozenset({"searches", "intent", "rerank", "candidatelimit"})


def _unknown(name: str, names: Iterable[str]) -> str:
    by_lower_case = {valid_name.lower(): valid_name for valid_name in names}
    plain_name = name.replace("_", "").lower()
    similar_name = closest(plain_name, by_lower_case, cutoff=0.75)
    hint = f" (did you mean {by_lower_case[similar_name]}?)" if similar_name else ""
    if plain_name in _OF_QUERY:
        hint = " (query takes it)"
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


def _types(schema: Mapping[str, Any]) -> str:
    """The JSON types of a value, in words."""
    types = schema["type"]
    return " or ".join(_TYPES[name] for name in ([types] if isinstance(types, str) else types))


def expectation(schema: Mapping[str, Any]) -> str:
    """The values that a JSON Schema allows, in words: "an integer from 1 to 1000"."""
    if "enum" in schema:
        return " or ".join(map(_shown, schema["enum"]))
    low, high = schema.get("minimum"), schema.get("maximum")
    items = schema.get("items", {})
    members = items.get("properties")
    if "enum" in items:
        return f"a list of {expectation(items)}"
    if members:
        fields = [f"{name} ({expectation(member)})" for name, member in members.items()]
        return f"a list of objects with {' and '.join(fields)}"
    expected = _types(schema)
    if low is not None and high is not None:
        return f"{expected} from {low:g} to {high:g}"
    return expected if low is None else f"{expected} of at least {low:g}"


def _shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def parameter_sentences(problems: Iterable[ArgumentProblem]) -> list[str]:
    """
    The problems in the words that the specifications of notes and agent share.

    Missing arguments come first. Problems for which these specifications have no words are left
    out: those of an object's fields, and wrong values of the right type.
    """
    sentences = {
        "missing": "Missing required parameter: {name}",
        "type": "Parameter '{name}' must be {expected}",
        "choice": "Parameter '{name}' must be one of: {choices}",
    }
    in_order = sorted(problems, key=lambda problem: problem.kind != "missing")
    return [
        sentences[problem.kind].format(
            name=problem.name,
            expected=_types(problem.schema).removesuffix(" of strings"),
            choices=", ".join(problem.schema.get("enum", ())),
        )
        for problem in in_order
        if problem.kind in sentences and len(problem.path) == 1
    ]


# --- names ---------------------------------------------------------------------------

#: Characters. No name in qmd is longer, and comparing long names takes too much time.
LONGEST = 100


def closest(name: str, names: Iterable[str], *, cutoff: float = 0.6) -> str | None:
    """The most similar of ``names``; None if none is similar enough (``cutoff``: 0 to 1)."""
    if len(name) > LONGEST:
        return None
    similar_names = difflib.get_close_matches(name, list(names), n=1, cutoff=cutoff)
    return similar_names[0] if similar_names else None


def shortened(name: str) -> str:
    """A name for a message: at most `LONGEST` characters and an ellipsis."""
    return name if len(name) <= LONGEST else name[:LONGEST] + "…"
