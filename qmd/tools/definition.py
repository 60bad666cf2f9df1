"""What a tool is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from qmd.kb import KnowledgeBase
from qmd.model import DocumentInfo
from qmd.tools.arguments import Arguments
from qmd.tools.texts import Dialect

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class TextBlock:
    """Text for a person or a model to read."""

    text: str


@dataclass(frozen=True, slots=True)
class DocumentBlock:
    """
    A document, with ``text`` as it is to be shown: cut, numbered, and with its context in
    front where the `Dialect` wants it there.
    """

    document: DocumentInfo
    text: str
    context: str | None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a tool answers; ``structured`` is JSON-safe and says the same for programs."""

    blocks: tuple[TextBlock | DocumentBlock, ...]
    structured: Mapping[str, Any] | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Tool(Generic[ArgumentsT]):
    """
    One tool.

    ``run`` blocks and may be called from any thread; it raises `QmdError` and nothing else
    on purpose. ``output_schema`` builds the JSON Schema of `Reply.structured` in a dialect.
    """

    name: str
    title: str
    description: str
    arguments: type[ArgumentsT]
    run: Callable[[KnowledgeBase, ArgumentsT, Dialect], Reply]
    output_schema: Callable[[Dialect], dict[str, Any]] | None = None
    read_only: bool = True


def object_schema(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A JSON Schema of an object that has all these properties, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}
