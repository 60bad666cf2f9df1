"""What a tool is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from qmd.errors import ProtocolError, QmdError
from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments, input_schema, parse_arguments
from qmd.tools.texts import Dialect, error_text
from qmd.values import DocumentInfo

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

    ``bulky``: one call may read as much as many others together; a server runs few at once.

    A toolset that another specification prescribes to the letter also gives its own
    ``schema`` of the arguments, its own ``check`` of them (called with what the client sent)
    and ``failed``, which words an error, be it of the arguments or of the work.
    """

    name: str
    title: str | None
    description: str
    arguments: type[ArgumentsT]
    run: Callable[[KnowledgeBase, ArgumentsT, Dialect], Reply]
    output_schema: Callable[[Dialect], dict[str, Any]] | None = None
    read_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    bulky: bool = False
    schema: Mapping[str, Any] | None = None
    check: Callable[[Mapping[str, Any]], ArgumentsT] | None = None
    failed: Callable[[QmdError], Reply] | None = None

    def input_schema(self, *, camel_case: bool = True) -> Mapping[str, Any]:
        """The JSON Schema of the arguments; shared, not to be changed."""
        if self.schema is not None:
            return self.schema
        return input_schema(self.arguments, camel_case=camel_case)

    def parse(self, raw: Mapping[str, Any] | None, *, camel_case: bool = True) -> ArgumentsT:
        """Raises InputError: with everything that is wrong; ProtocolError."""
        if self.check is not None:
            return self.check(raw or {})
        return parse_arguments(self.name, self.arguments, raw, camel_case=camel_case)

    def call(self, kb: KnowledgeBase, raw: Mapping[str, Any] | None, dialect: Dialect) -> Reply:
        """
        Check the arguments and run; an error becomes a reply in the toolset's own words.

        Raises:
            ProtocolError: The specification wants an error of the protocol.
        """
        try:
            return self.run(kb, self.parse(raw, camel_case=dialect.camel_case), dialect)
        except ProtocolError:
            raise
        except QmdError as error:
            return self.failure(error)

    def failure(self, error: QmdError) -> Reply:
        """The reply that tells of an error. Raises ProtocolError, as `call` does."""
        if self.failed is not None:
            return self.failed(error)
        return Reply((TextBlock(error_text(error)),), is_error=True)


def object_schema(properties: dict[str, Any], *, optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """A JSON Schema of an object that has all these properties, but for the optional ones."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}
