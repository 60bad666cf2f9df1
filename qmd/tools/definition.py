"""What a tool is, and what it answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeVar

from qmd.errors import ProtocolError, QmdError
from qmd.kb import KnowledgeBase
from qmd.tools.arguments import Arguments, input_schema
from qmd.tools.texts import Dialect, error_text
from qmd.tools.validation import InvalidArgumentsError, Refusal, invalid_arguments, validate
from qmd.values import DocumentInfo
from qmd.values.facts import Describe, Name

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

    SENT: ClassVar = ("uri", "name", "title", "mime_type", "text", "context")

    document: DocumentInfo
    text: str
    context: Annotated[str | None, Describe("What people said about the place it lies in")]

    @property
    def uri(self) -> str:
        return self.document.uri

    @property
    def name(self) -> Annotated[str, Describe("collection/path")]:
        return self.document.file

    @property
    def title(self) -> str:
        return self.document.title

    @property
    def mime_type(self) -> Annotated[Literal["text/markdown"], Name("mimeType")]:
        return "text/markdown"


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

    A toolset whose texts another specification prescribes gives a ``refusal``, which words what
    is wrong with the arguments, and ``failed``, which makes the reply for any error, also that.
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
    refusal: Refusal = invalid_arguments
    failed: Callable[[QmdError], Reply] | None = None

    def input_schema(self, *, camel_case: bool = True) -> Mapping[str, Any]:
        """The JSON Schema of the arguments; shared, not to be changed."""
        return input_schema(self.arguments, camel_case=camel_case)

    def parse(self, raw: Mapping[str, Any] | None, *, camel_case: bool = True) -> ArgumentsT:
        """
        The arguments that a client sent, by one case of their names.

        Raises:
            QmdError: What is wrong with them, in the toolset's words.
        """
        try:
            return validate(self.arguments, raw, camel_case=camel_case)
        except InvalidArgumentsError as error:
            raise self.refusal(self.name, error) from error

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
