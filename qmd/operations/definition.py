"""
Defines an operation: a function whose signature and docstring say what all faces need to know.

From a declaration come

- the command, with its options, ``--json``, ``--max-tokens``, ``--full-path``, ``--mode`` and what
  the Tab key completes (`qmd.cli.operations`);
- the tool, with its schemas, hints, budget and texts in both languages (`qmd.tools.toolsets`);
- the endpoint and its part of OpenAPI (`qmd.server.endpoints.definition`).

The facts of `qmd.values.facts` stand in the annotations of the arguments. The first paragraph of
the docstring is the summary, the second says more on every face, further ones are for the shell.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import is_dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin, get_type_hints

from qmd.errors import QmdError
from qmd.values.facts import (
    FieldFacts,
    ForCommands,
    Inline,
    NotSent,
    ShellOnly,
    Singular,
    wire_fields,
)
from qmd.values.wire import ListBudget, from_wire

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase as KnowledgeBase  # noqa: PLC0414 - operations do so
    from qmd.operations.problems import Refusal
    from qmd.operations.replies import Reply
    from qmd.operations.texts import Dialect
    from qmd.values.writing import Language
else:
    #: The engine is imported for type checkers alone: a help text does not need it.
    KnowledgeBase = object

#: The queue of a server in which calls wait: "bulk" for those that may read as much as many others,
#: "web" for those that write what they fetch from elsewhere, for which no other write waits. Only
#: operations of a server have the last three. Reads and turns of conversations ("chat") run side by
#: side, writes and embeddings one by one.
Lane = Literal["read", "bulk", "write", "web", "embed", "chat", "health"]


class Styled(NamedTuple):
    """
    Text with its style on a terminal, and the file that it opens when clicked.

    With a ``file`` and no text it is the name of that file.
    """

    text: str = ""
    style: str = ""
    file: str | None = None
    line: int | None = None


class Row(NamedTuple):
    """
    One line of a list: facts, the name of a file, and a text such as its title.

    A terminal cuts ``text`` to its width. ``more`` stands in its place where nothing may be cut,
    and below the name if there is no room beside it.
    """

    facts: tuple[Styled | str, ...] = ()
    file: str = ""
    line: int | None = None
    text: str = ""
    more: tuple[Styled | str, ...] = ()


class Replied(NamedTuple):
    """
    A reply, and the arguments that led to it: what a sentence about it is made of.

    Attributes:
        kb: Who replied; None on a face whose words depend on nothing else.
        operation: The name of what was done.
    """

    value: Any
    arguments: Mapping[str, Any]
    kb: KnowledgeBase | None = None
    operation: str = ""


class ByHand(NamedTuple):
    """
    A tool whose texts a specification prescribes, so that they are not derived.

    Attributes:
        reply: Words a reply; None for the usual.
        structured: The type of what programs get; None for texts alone.
        more: Makes the names and types of what they get besides.
        outputs_more: Programs get more than the texts say.
        as_specified: The schema of what programs get has all facts of its fields.
        in_full: A listing has the whole tool.
        failed: Makes the reply to any error; None for the usual.
        refusal: Words the problems of wrong arguments; None for the usual.
        arguments: Options of the model of the arguments, as pydantic has them.
        prepare: Completes what a client has sent, before it is checked; None for nothing.
        language: Of the specification.
    """

    reply: Callable[[Replied, Dialect], Reply] | None = None
    structured: type | None = None
    more: Callable[[], Mapping[str, Any]] = dict
    outputs_more: bool = False
    as_specified: bool = False
    in_full: bool = False
    failed: Callable[[QmdError], Reply] | None = None
    refusal: Refusal | None = None
    arguments: Mapping[str, Any] = {}
    prepare: Callable[[Any], Any] | None = None
    language: Language = "en"


#: A text with fields of the reply in braces, or what words one.
Sentence = str | Callable[[Replied], str]


class Operation:
    """
    One thing that qmd does. (No dataclass, whose making would take a fiftieth of `qmd search`.)

    Attributes:
        run: Calls the knowledge base, which is its first argument.
        zh: What it does, in Chinese, for models; of no use without a tool.
        text: Words a reply that is no list, for people and models.
        rows: The lines of a list for people.
        lines: The lines of a reply for models; None for those of ``rows``.
        heading: What models read above the lines.
        when_empty: The sentence for an empty reply.
        left_out_text: Words what is missing, for the name of the budget; "" for nothing. None for
            the usual.
        noun: What one item of the list is.
        fails: Whether a reply says that nothing could be done; None for never.
        json_is_list: ``--json`` prints the list alone, as it did before there were operations.
        never_cut: Its list is short, and no budget cuts it.
        view: The function of `qmd.cli.render_reports` that prints a reply for people; "" for its
            text or its rows.
        done_by: ``module:function`` of `qmd.cli` for a command that does more than to print a
            reply: it gets the operation, its arguments and ``options``. "" for the usual.
        options: Options that only the shell has, by their names in `qmd.cli.operations`.
        usual: The options that the help shows first, in this order.
        tool_says_summary: The tool says the summary alone, because the server lists it for
            everyone.
        tool: What is prescribed of its tool; None for nothing.
        tool_name: The name of its tool; "" for its own.
        for_one_toolset: The tool is for a server that offers no other toolset (True), or that
            offers several (False); None for any server.
        title: Of the tool; "" for its name, None for none.
        toolset: The toolset with its tool; "" for that of the family, None for no tool.
        group: Where the reference of REST lists it; "" for the family.
        route: Method and path of its endpoint, if others than those of its name; arguments whose
            names stand in braces are parts of the path.
        sends: Makes what the endpoint sends of a reply; its annotation names the record. None for
            the reply itself.
        command: Its name in the shell; "" for its own name, None for no command.
        other_names: Names of the command at the top level that no help lists.
        section: Where the help of all commands lists it; "" for "Search and read", or for nowhere
            if its command stands in a group.
        examples: Command lines; () for one that is made from the arguments.
        bodies: Requests of REST, as examples.
        in_shell_alone: A short form of another operation, for people who type.
        destroys: No hint of the shell suggests it to a person who typed another name.
        idempotent: Whether a second call with the same arguments changes nothing.
        errors: What it raises besides errors of its arguments.
    """

    run: Callable[..., Any]
    zh: str = ""
    text: Callable[[Replied], str] | None = None
    rows: Callable[[Any], Iterable[Row]] = lambda value: ()
    heading: Sentence = ""
    when_empty: Sentence = ""
    lines: Callable[[Any], Iterable[str]] | None = None
    left_out_text: Callable[[Any, str], str] | None = None
    noun: str = ""
    fails: Callable[[Any], bool] | None = None
    json_is_list: bool = False
    never_cut: bool = False
    view: str = ""
    done_by: str = ""
    options: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    tool_says_summary: bool = False
    tool: ByHand | None = None
    tool_name: str = ""
    for_one_toolset: bool | None = None
    title: str | None = ""
    toolset: str | None = ""
    group: str = ""
    route: str = ""
    sends: Callable[[Replied], Any] | None = None
    command: str | None = ""
    other_names: tuple[str, ...] = ()
    section: str = ""
    examples: tuple[str, ...] = ()
    bodies: tuple[Mapping[str, Any], ...] = ()
    in_shell_alone: bool = False
    destroys: bool = False
    idempotent: bool = True
    errors: tuple[type[QmdError], ...] = ()
    lane: Lane = "read"

    def __init__(self, run: Callable[..., Any], about: Mapping[str, Any]) -> None:
        if unknown := about.keys() - Operation.__annotations__.keys():
            raise TypeError(f"Operations have no {', '.join(sorted(unknown))}: {run.__name__}")
        self.run = run
        self._about = about
        vars(self).update(about)

    def but(self, **about: Any) -> Operation:
        """The same operation with some attributes changed."""
        return Operation(self.run, {**self._about, **about})

    @property
    def name(self) -> str:
        return self.run.__name__

    @property
    def family(self) -> str:
        return self.run.__module__.rpartition(".")[2]

    @property
    def writes(self) -> bool:
        return self.lane in ("write", "web")

    @property
    def command_name(self) -> str | None:
        """The full name of its command; None if it has none."""
        return self.name.replace("_", "-") if self.command == "" else self.command

    @property
    def listed_in(self) -> str:
        """The section of the help that has its command; "" for none."""
        words = self.command_name or " "
        return self.section or ("" if " " in words else "Search and read")

    @cached_property
    def method(self) -> str:
        """Of its endpoint."""
        return self.route.partition(" ")[0] or ("POST" if self.writes or self.bodies else "GET")

    @cached_property
    def path(self) -> str:
        """Of its endpoint, with the names of arguments in braces."""
        return self.route.partition(" ")[2] or f"/{self.name}"

    @property
    def in_path(self) -> list[str]:
        """The names of the arguments that are parts of the path."""
        return re.findall(r"\{(\w+)\}", self.path)

    @cached_property
    def paragraphs(self) -> tuple[str, ...]:
        """Those of the docstring, each on one line."""
        text = inspect.cleandoc(self.run.__doc__ or "")
        return tuple(" ".join(each.split()) for each in text.split("\n\n"))

    @cached_property
    def fields(self) -> tuple[FieldFacts, ...]:
        """
        All arguments but the knowledge base, and what no face sends. An `Inline` one stands for the
        fields of its value; those that are for other operations are among them.
        """
        fields: list[FieldFacts] = []
        for each in list(inspect.signature(self.run).parameters.values())[1:]:
            default = () if each.default is inspect.Parameter.empty else (each.default,)
            field = FieldFacts(each.name, self._hints[each.name], *default)
            if field.has(Inline):
                fields += wire_fields(field.hint)
            elif not field.has(NotSent):
                fields.append(field)
        return tuple(each.for_command(self.name) for each in fields)

    @cached_property
    def arguments(self) -> tuple[FieldFacts, ...]:
        """The fields that it takes from programs."""
        fields = (each for each in self.fields if self.takes(each))
        return tuple(each for each in fields if not each.has(ShellOnly))

    def takes(self, field: FieldFacts) -> bool:
        """Whether a field means something to this operation."""
        commands = field.get(ForCommands)
        return commands is None or self.name in commands.names

    def gathered(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """What `run` takes: arguments as they were sent, some as the values that they make."""
        values = dict(arguments)
        for name, hint in self._hints.items():
            field = FieldFacts(name, hint)
            item: Any = _item_type(field.hint)
            if field.has(Inline):
                for part in wire_fields(field.hint):
                    values.pop(part.name, None)
                    values.pop(part.wire_name, None)
                values[name] = from_wire(field.hint, arguments)
            elif field.has(Singular):
                one = values.pop(field.wire_name, None)
                values[name] = (*(() if one is None else (one,)), *values.get(name, ()))
            elif item and name in values:
                values[name] = tuple(from_wire(item, each) for each in values[name])
        return values

    @cached_property
    def is_bounded(self) -> bool:
        """Whether a transport has a bound of the size of its replies."""
        return FieldFacts("", self._hints.get("max_total_bytes")).has(NotSent)

    @property
    def shows_progress(self) -> bool:
        """Whether it takes a callback ``progress``, which the shell draws."""
        return "progress" in self._hints

    @property
    def reply(self) -> type:
        reply: type = self._hints["return"]
        # One that lets others run between its steps is a generator, which returns the reply.
        return get_args(reply)[2] if get_origin(reply) is Generator else reply

    @cached_property
    def lists(self) -> tuple[str, ...]:
        """The fields of the reply that are printed as lists, in the order in which they are cut."""
        if self.text is not None or self.tool is not None or self.view:
            return ()
        return tuple(each.name for each in wire_fields(self.reply) if _item_type(each.hint))

    @property
    def has_budget(self) -> bool:
        return bool(self.lists) and not self.never_cut and self.sends is None

    @cached_property
    def names_files(self) -> bool:
        """Whether the reply names files, which the shell can name by their paths on the disk."""
        items = [_item_type(each.hint) for each in wire_fields(self.reply)]
        fields = [
            field for each in (self.reply, *filter(None, items)) for field in wire_fields(each)
        ]
        return any(field.name == "file" for field in fields)

    @cached_property
    def _hints(self) -> dict[str, Any]:
        # Plugins may import it for type checkers alone, too.
        return get_type_hints(
            self.run, localns={"KnowledgeBase": KnowledgeBase}, include_extras=True
        )

    def call(
        self,
        kb: Any,
        arguments: Mapping[str, Any],
        budget: ListBudget,
        *,
        share: float = 1,
    ) -> Any:
        """
        Run it, and shorten the lists of its reply.

        Args:
            kb: The knowledge base, or what else `run` takes first.
            share: The part of the budget's room for them.

        Raises:
            QmdError: As `run`.
        """
        value = self.run(kb, **self.gathered(arguments))
        for name in self.lists if self.has_budget else ():
            value = budget.fit(value, name, share=share)
        return value

    def item_count(self, value: Any) -> int:
        """How many items a reply has."""
        return sum(len(getattr(value, name)) for name in self.lists)

    def total(self, value: Any) -> int:
        """How many there are, with those that have no room."""
        total: int = getattr(value, "total", None) or self.item_count(value) + getattr(
            value, "left_out", 0
        )
        return total

    def item(self, value: Any) -> str:
        """What one item of a reply is called."""
        filled = [name for name in self.lists if getattr(value, name)]
        return self.noun or (filled or self.lists)[0].removesuffix("s")

    def sentence(self, sentence: Sentence, replied: Replied) -> str:
        """A sentence about a reply, such as `when_empty`."""
        if not isinstance(sentence, str):
            return sentence(replied)
        return sentence.format_map(_Fields(self, replied.value))

    def texts(self, value: Any) -> Iterable[str]:
        """The lines of a reply for models, each with one item."""
        return map(_line, self.rows(value)) if self.lines is None else self.lines(value)


class Joined(NamedTuple):
    """
    One tool for several operations with the same arguments, because models read every tool.

    Its reply has theirs by their names.
    """

    name: str
    title: str
    text: str
    zh: str
    parts: tuple[Operation, ...]


def operation(**about: Any) -> Callable[[Callable[..., Any]], Operation]:
    """
    Declare a function to be an operation; ``about``: the attributes of `Operation`.

    ``FAMILY`` of its module has those of all operations that say nothing else.
    """

    def declare(run: Callable[..., Any]) -> Operation:
        family: Mapping[str, Any] = run.__globals__.get("FAMILY", {})
        return Operation(run, {**family, **about})

    return declare


class _Fields(dict[str, Any]):
    """The fields of a reply, for a text with their names in braces."""

    def __init__(self, operation: Operation, value: Any) -> None:
        super().__init__(total=operation.total(value))
        self._operation = operation
        self._value = value

    def __missing__(self, name: str) -> Any:
        if not hasattr(self._value, name):
            raise TypeError(
                f"The reply has no {name}, which a text of {self._operation.name} names"
            )
        return getattr(self._value, name)


def _item_type(hint: object) -> type | None:
    """The dataclass of the items of a list; None for anything else."""
    item = get_args(hint)[0] if get_origin(hint) is tuple else None
    return item if isinstance(item, type) and is_dataclass(item) else None


def _line(row: Row) -> str:
    """A row as one line of text, without what only a terminal needs."""
    place = row.file if row.line is None else f"{row.file}:{row.line}"
    begin = " ".join(filter(None, (_text(row.facts), place)))
    rest = _text(row.more) or row.text
    if not (place and rest):
        return begin or rest
    return f"{begin}{' - ' if row.line is None else ': '}{rest}"


def _text(parts: Iterable[Styled | str]) -> str:
    texts = (each if isinstance(each, str) else each.text or each.file or "" for each in parts)
    return " ".join("".join(texts).split())
