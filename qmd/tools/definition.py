"""Defines what a tool is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic.alias_generators import to_camel

from qmd.errors import ProtocolError, QmdError
from qmd.kb import KnowledgeBase
from qmd.operations.definition import Language
from qmd.operations.problems import InvalidArgumentsError, Refusal, invalid_arguments
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect, error_text
from qmd.tools.arguments import Arguments, input_schema, unlisted_arguments, validate
from qmd.tools.schemas import for_all_sdks, rewritten

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[ArgumentsT]):
    """
    One tool.

    Attributes:
        run: Does the work of a call. It blocks, may be called from any thread, and raises QmdError.
        output_schema: Makes the JSON Schema of `Reply.structured` for a dialect.
        read_only, destructive, idempotent: The hints of MCP for clients.
        outputs_more: Clients read the structured content, because it has more than the text; so
            a listing has an outline of its schema.
        is_prescribed: The schemas are those of a specification or of the client, to the letter.
        wordings: Language, but that of its specification → "does" → the description, argument →
            its description; a dot leads to a field of an argument.
        argument_texts: Argument → its description in place of that of ``arguments``, "" for none.
        bulky: One call may read as much as many others, so a server runs few of them at once.
        refusal: Words the problems of invalid arguments. A toolset has its own if a specification
            prescribes the texts.
        failed: Makes the reply for any error, if a specification prescribes its form.
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
    outputs_more: bool = False
    is_prescribed: bool = False
    wordings: Mapping[Language, Mapping[str, str]] = field(default_factory=dict)
    argument_texts: Mapping[str, str] = field(default_factory=dict)
    refusal: Refusal = invalid_arguments
    failed: Callable[[QmdError], Reply] | None = None

    def worded(self, language: Language | None) -> Tool[ArgumentsT]:
        """It with its descriptions in a language; None for that of its specification."""
        if language is None or language not in self.wordings:
            return self
        texts = dict(self.wordings[language])
        return replace(self, description=texts.pop("does"), argument_texts=texts)

    def input_schema(self, *, camel_case: bool = True) -> dict[str, Any]:
        """The JSON Schema of the arguments, as clients get it."""
        schema = input_schema(self.arguments, camel_case=camel_case)
        schema = deepcopy(schema) if self.is_prescribed else rewritten(schema, for_all_sdks)
        for name in unlisted_arguments(self.arguments):
            del schema["properties"][to_camel(name) if camel_case else name]
        for path, text in self.argument_texts.items():
            member = schema
            for name in path.split("."):
                member = member["properties"][name]
            if text:
                member["description"] = text
            else:
                del member["description"]
        return schema

    def parse(self, raw: Mapping[str, Any] | None, *, camel_case: bool = True) -> ArgumentsT:
        """
        Check the arguments that a client sent, and make them the tool's model.

        Args:
            camel_case: Whether the client writes names in camel case; else in snake case.

        Raises:
            QmdError: The arguments are invalid; the message is worded by the toolset.
        """
        try:
            return validate(self.arguments, raw, camel_case=camel_case)
        except InvalidArgumentsError as error:
            raise self.refusal(self.name, error) from error

    def call(self, kb: KnowledgeBase, raw: Mapping[str, Any] | None, dialect: Dialect) -> Reply:
        """
        Check the arguments and run the tool. An error becomes a reply, worded by the toolset.

        Raises:
            ProtocolError: The tool's specification demands an error of the protocol instead.
        """
        return self._reply(
            lambda: self.run(kb, self.parse(raw, camel_case=dialect.camel_case), dialect)
        )

    def call_checked(self, kb: KnowledgeBase, arguments: ArgumentsT, dialect: Dialect) -> Reply:
        """Run the tool like `call`, with arguments that were checked before."""
        return self._reply(lambda: self.run(kb, arguments, dialect))

    def _reply(self, run: Callable[[], Reply]) -> Reply:
        try:
            return run()
        except ProtocolError:
            raise
        except QmdError as error:
            return replace(self.failure(error), code=error.code)

    def failure(self, error: QmdError) -> Reply:
        """The reply for an error. Raises ProtocolError, as `call` does."""
        if self.failed is not None:
            return self.failed(error)
        return Reply((TextBlock(error_text(error)),), is_error=True)
