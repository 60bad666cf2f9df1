"""
The JSON Schemas of arguments as clients get them: in the dialect that the SDKs of all models take.

Google's SDK fails on ``additionalProperties: false``, and several converters know a ``type`` only
as one word. So neither is published. `qmd.tools.validation` refuses unknown arguments all the same.
An object without any property would be refused by the strict mode of OpenAI's SDK, so each tool has
an argument, except where a specification prescribes that it has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: Keywords that say what a value of one type may be; the others hold for all types.
_OF_ONE_TYPE = {"items": "array", "minimum": "number", "maximum": "number"}


def published(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a tool's arguments, or of one of them, in this dialect."""
    sent = {key: value for key, value in schema.items() if key != "additionalProperties"}
    if "properties" in sent:
        members = sent["properties"].items()
        sent["properties"] = {name: published(member) for name, member in members}
    if "items" in sent:
        sent["items"] = published(sent["items"])
    return sent if isinstance(sent.get("type", ""), str) else _alternatives(sent)


def _alternatives(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A schema with a list of types, as one with a list of schemas."""
    common = {key: schema[key] for key in schema if key != "type" and key not in _OF_ONE_TYPE}
    options = [
        {"type": kind} | {key: schema[key] for key in schema if _OF_ONE_TYPE.get(key) == kind}
        for kind in schema["type"]
    ]
    return {"anyOf": options, **common}
