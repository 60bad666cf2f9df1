"""A call's parameters against a JSON Schema, one level deep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_TYPES: Mapping[str, tuple[str, tuple[type, ...]]] = {
    "string": ("a string", (str,)),
    "integer": ("an integer", (int, float)),
    "number": ("a number", (int, float)),
    "boolean": ("true or false", (bool,)),
    "array": ("a list", (list,)),
    "object": ("an object", (dict,)),
}


def parameter_problems(schema: Mapping[str, Any], params: Mapping[str, Any]) -> list[str]:
    """
    Everything that is wrong with the parameters of a call, in the words that the specifications
    of notes and agent share; null counts as missing.
    """
    missing = [name for name in schema.get("required", ()) if params.get(name) is None]
    problems = [f"Missing required parameter: {name}" for name in missing]
    for name, each in schema["properties"].items():
        value = params.get(name)
        if value is None:
            continue
        kind = each.get("type")
        expected = _TYPES.get(kind) if isinstance(kind, str) else None
        if expected is not None and not _is_a(value, kind, expected[1]):
            problems.append(f"Parameter '{name}' must be {expected[0]}")
        elif "enum" in each and value not in each["enum"]:
            problems.append(
                f"Parameter '{name}' must be one of: {', '.join(map(str, each['enum']))}"
            )
    return problems


def _is_a(value: object, kind: object, types: tuple[type, ...]) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    if kind == "integer" and isinstance(value, float):
        return value.is_integer()
    return isinstance(value, types)
