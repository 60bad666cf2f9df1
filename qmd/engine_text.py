"""Sentences of the engine, in English, with the fields by which a face can translate them."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from typing import Any


class EngineText(str):
    """
    A sentence of the engine, in English, which a face may say in another language.

    Attributes:
        template: The sentence with its fields in braces.
        fields: What stands in them; a field may be such a sentence itself.
    """

    __slots__ = ("fields", "template")

    template: str
    fields: Mapping[str, object]

    def __new__(cls, template: str, fields: Mapping[str, object]) -> EngineText:
        sentence = super().__new__(cls, template.format_map(fields))
        sentence.template = template
        sentence.fields = fields
        return sentence

    def as_json(self) -> dict[str, object]:
        fields = {
            name: value.as_json() if isinstance(value, EngineText) else str(value)
            for name, value in self.fields.items()
        }
        return {"template": self.template, "fields": fields}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> EngineText:
        fields = {
            name: field if isinstance(field, str) else cls.from_json(field)
            for name, field in value["fields"].items()
        }
        return cls(value["template"], fields)

    def __reduce__(self) -> tuple[type[EngineText], tuple[str, Mapping[str, object]]]:
        return type(self), (self.template, self.fields)


def engine_text(template: str, /, **fields: object) -> str:
    """A sentence whose fields a face can tell from its words."""
    return EngineText(template, fields)


def sentences(*texts: str | None) -> str:
    """Sentences one after the other, without those that are missing or empty; "" for none."""

    def joined(message: str, hint: str) -> str:
        return engine_text("{message} {hint}", message=message, hint=hint)

    parts = list(filter(None, texts))
    return reduce(joined, parts) if parts else ""


def with_cause(effect: str, cause: str) -> str:
    return engine_text("{effect}: {cause}", effect=effect, cause=cause)
