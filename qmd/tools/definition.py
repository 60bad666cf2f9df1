"""
Defines what a tool is, and what a client gets to know of it before it calls one.

That is brief, because a model reads the whole of it before each answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from pydantic.alias_generators import to_camel

from qmd.errors import ProtocolError, QmdError
from qmd.kb import KnowledgeBase
from qmd.operations.problems import InvalidArgumentsError, Refusal, invalid_arguments
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect, error_text
from qmd.tools.arguments import Arguments, input_schema, unlisted_arguments, validate
from qmd.tools.schemas import for_all_sdks, outline, rewritten, shorten
from qmd.values.facts import Obvious
from qmd.values.writing import Language

ArgumentsT = TypeVar("ArgumentsT", bound=Arguments)


@dataclass(frozen=True, slots=True)
class Tool(Generic[ArgumentsT]):
    """
    One tool.

    Attributes:
        run: Does the work of a call. It blocks, may be called from any thread, and raises QmdError.
        output_schema: Makes the JSON Schema of `Reply.structured` for a dialect.
        read_only, idempotent: The hints of MCP for clients.
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


#: What a client takes for granted of a hint that it does not get. Of a tool that only reads the
#: other hints say nothing.
_DEFAULT_HINTS = {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": False}


@dataclass(frozen=True, slots=True)
class ListedTool:
    """A tool in a listing; ``hints`` have the names of MCP."""

    name: str
    title: str | None
    description: str
    input_schema: dict[str, Any]
    output_schema: dict[str, Any] | None
    hints: Mapping[str, bool]


def listing(tools: Iterable[Tool[Any]], dialect: Dialect) -> list[ListedTool]:
    """
    What a client gets to know of the tools that one server offers.

    Nothing stands there twice: neither a description or a bound of an argument, nor what is
    `Obvious`. A schema of replies tells the names of what is in them, and only where the text has
    less. A tool with `Tool.is_prescribed` is listed whole.
    """
    listed: set[tuple[object, ...]] = set()
    return [
        _whole(tool, dialect) if tool.is_prescribed else _brief(tool, dialect, listed)
        for tool in tools
    ]


def _whole(tool: Tool[Any], dialect: Dialect) -> ListedTool:
    return ListedTool(
        tool.name,
        tool.title,
        tool.description,
        tool.input_schema(),
        None if tool.output_schema is None else tool.output_schema(dialect),
        _hints(tool),
    )


def _brief(tool: Tool[Any], dialect: Dialect, listed: set[tuple[object, ...]]) -> ListedTool:
    """The tool without what the listing tells already."""
    whole = _whole(tool, dialect)
    properties = whole.input_schema["properties"]
    for name in _obvious(tool.arguments) & properties.keys():
        properties[name].pop("description", None)
    for name, schema in properties.items():
        shorten(name, schema, listed)
    output = whole.output_schema if tool.outputs_more else None
    return ListedTool(
        whole.name,
        None if _words(whole.title) == _words(whole.name) else whole.title,
        whole.description,
        whole.input_schema,
        None if output is None else outline(output, listed),
        {
            name: value
            for name, value in whole.hints.items()
            if value is not _DEFAULT_HINTS.get(name)
            and not (tool.read_only and name in ("destructiveHint", "idempotentHint"))
        },
    )


def _hints(tool: Tool[Any]) -> dict[str, bool]:
    return {
        "readOnlyHint": tool.read_only,
        "destructiveHint": not tool.read_only,
        "idempotentHint": tool.idempotent,
        "openWorldHint": False,
    }


def _obvious(arguments: type[Arguments]) -> set[str]:
    return {
        to_camel(name)
        for name, field in arguments.model_fields.items()
        if any(isinstance(fact, Obvious) for fact in field.metadata)
    }


def _words(text: str | None) -> str:
    return (text or "").replace("_", " ").casefold()
