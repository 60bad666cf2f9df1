"""Makes the tools of all operations, and selects those that one server offers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from importlib import import_module
from typing import Annotated, Any

from pydantic import BeforeValidator, ConfigDict, create_model, model_validator

from qmd.errors import FileChangedError, InputError, QmdError
from qmd.kb import KnowledgeBase
from qmd.operations import Joined, Operation, every_joined, every_tool
from qmd.operations.definition import ByHand, Replied
from qmd.operations.problems import invalid_arguments
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect, error_text
from qmd.system.plugins import turned_on
from qmd.tools.arguments import Arguments, members, whole_number
from qmd.tools.definition import Tool
from qmd.tools.schemas import output_schema, prescribed_schema
from qmd.values.facts import Describe, Range
from qmd.values.text import MIN_TOKENS, one_line
from qmd.values.wire import ListBudget, to_wire
from qmd.values.writing import Language

#: Toolset → (the name of a server that offers no other toolset, the module with the ``TOOLS`` that
#: do not come from operations; "" for none).
TOOLSETS: Mapping[str, tuple[str, str]] = {
    "qmd": ("qmd", ""),
    "graph": ("qmd graph", ""),
    "edit": ("qmd edit", ""),
    "capture": ("qmd capture", ""),
    "memory": ("qmd memory", ""),
    "posts": ("AfdianToMarkdown", ""),
    "summary": ("SummaryMCP", ""),
    "notes": ("Axon", ""),
    "images": ("MetaTag Genie", "qmd.tools.images"),
    "chatgpt": ("qmd", ""),
}
ALL = "all"
#: The toolsets whose tools have names of others, which their client prescribes.
ALONE = frozenset({"chatgpt"})

#: The toolsets that read and write files in no collection, so that no scope contains them.
UNSCOPED = frozenset({"posts", "summary", "images"})

Condition = Callable[["KnowledgeBase"], bool]


def _can_write(kb: KnowledgeBase) -> bool:
    return kb.policy.writable


#: The toolsets of a server for which nobody has named any → whether the database calls for it.
CALLED_FOR: Mapping[str, Condition] = {
    "qmd": lambda kb: True,
    "edit": _can_write,
    "notes": _can_write,
    "posts": lambda kb: kb.has_posts(),
    "images": lambda kb: _can_write(kb) and kb.has_photos(),
}


@dataclass(frozen=True, slots=True)
class ToolSelection:
    """
    The tools of one server.

    Attributes:
        tools: The tools that clients can call.
        withheld: The tools that a read-only server does not offer. A call of one is answered with
            the reason.
        conditions: Tool → whether it is listed for a database as it is now; the tools that are not
            here are always listed.
        language: The language of the descriptions; None for that of each specification.
    """

    server_name: str
    toolsets: tuple[str, ...]
    tools: tuple[Tool[Any], ...]
    withheld: tuple[Tool[Any], ...] = ()
    conditions: Mapping[str, Condition] = field(default_factory=dict)
    language: Language | None = None

    def listed(self, kb: KnowledgeBase) -> tuple[Tool[Any], ...]:
        """The tools that the database calls for."""
        holds = {condition: condition(kb) for condition in set(self.conditions.values())}
        return tuple(
            tool
            for tool in self.tools
            if tool.name not in self.conditions or holds[self.conditions[tool.name]]
        )


def select(
    names: Sequence[str] = (), *, read_only: bool = False, language: Language | None = None
) -> ToolSelection:
    """
    Select the tools of some toolsets.

    Args:
        names: The toolsets; empty or "all" for all.
        read_only: Withhold the tools that write.
        language: Of the descriptions; None for that of each specification.

    Raises:
        InputError: A name is not that of a toolset, or that of one which must be served alone.
    """
    for name in names:
        if name not in (*TOOLSETS, ALL):
            raise InputError(
                f"There is no toolset {name!r}.", hint="Toolsets: " + ", ".join((*TOOLSETS, ALL))
            )
    has_all = not names or ALL in names
    chosen = tuple(name for name in TOOLSETS if name in names or (has_all and name not in ALONE))
    if len(chosen) > 1 and not ALONE.isdisjoint(chosen):
        alone = ", ".join(sorted(ALONE.intersection(chosen)))
        raise InputError(
            f"The toolset {alone} stands alone: other toolsets have tools of the same names.",
            hint=f"Give it a server of its own: --toolset {alone}",
        )
    is_alone = len(chosen) == 1
    tools = tuple(
        tool.worded(language) for name in chosen for tool in tools_of(name, alone=is_alone)
    )
    server_name = TOOLSETS[chosen[0]][0] if is_alone else "qmd"
    selection = ToolSelection(server_name, chosen, tools, language=language)
    return withholding(selection) if read_only else selection


def withholding(selection: ToolSelection) -> ToolSelection:
    """A selection whose tools that write are withheld."""
    return replace(
        selection,
        tools=tuple(tool for tool in selection.tools if tool.read_only),
        withheld=(*selection.withheld, *(tool for tool in selection.tools if not tool.read_only)),
    )


def scoped(selection: ToolSelection) -> ToolSelection:
    """The tools of a selection that are offered to a client with a scope."""
    names = {tool.name for name in UNSCOPED for tool in tools_of(name, alone=False)}
    return replace(
        selection,
        toolsets=tuple(name for name in selection.toolsets if name not in UNSCOPED),
        tools=tuple(tool for tool in selection.tools if tool.name not in names),
        withheld=tuple(tool for tool in selection.withheld if tool.name not in names),
    )


def select_by_database(
    *, read_only: bool = False, language: Language | None = None
) -> ToolSelection:
    """
    Select the tools of a server for which nobody has named any: those that its database calls for.

    Args: As `select`.
    """
    selection = select(tuple(CALLED_FOR), read_only=read_only, language=language)
    return replace(
        selection,
        conditions={
            tool.name: condition
            for name, condition in CALLED_FOR.items()
            for tool in tools_of(name, alone=False)
        },
    )


def tools_of(toolset: str, *, alone: bool) -> Sequence[Tool[Any]]:
    """The tools of a toolset; ``alone``: as on a server that offers no other one."""
    derived = _derived(toolset, alone, turned_on())
    if not TOOLSETS[toolset][1]:
        return derived
    module = import_module(TOOLSETS[toolset][1])
    together: Mapping[str, Tool[Any]] = {} if alone else getattr(module, "TOGETHER", {})
    return [*(together.get(tool.name, tool) for tool in module.TOOLS), *derived]


def toolset_of(tool: str) -> str | None:
    """The toolset with the tool of this name, as on a server with all; None if there is none."""
    for toolset in TOOLSETS:
        if any(tool == each.name for each in tools_of(toolset, alone=False)):
            return toolset
    return None


#: The budget of a list, which endpoints take in the query string, so it has a greatest value.
ListTokens = Annotated[
    int | None,
    Range(MIN_TOKENS, 999_999),
    Describe("Most tokens to return", zh="最多返回多少 token"),
    BeforeValidator(whole_number),
]


@cache
def _derived(toolset: str, alone: bool, plugins: tuple[str, ...]) -> tuple[Tool[Any], ...]:
    """
    The tools of a toolset: one for each operation, or for several that are joined.

    Args:
        plugins: Those that are turned on now.
    """
    joined = {part: each for each in every_joined() for part in each.parts}
    members = [
        each
        for each in every_tool()
        if toolset == (each.family if each.toolset == "" else each.toolset)
        and not each.in_shell_alone
        and each.for_one_toolset in (None, alone)
    ]
    chosen = dict.fromkeys(joined.get(each, each) for each in members)
    return tuple(_joined_tool(each) if isinstance(each, Joined) else _tool(each) for each in chosen)


def arguments_of(operation: Operation, *, without: tuple[str, ...] = ()) -> type[Arguments]:
    """
    The argument model of an operation, for its tool and its endpoint.

    ``without``: the names of arguments that are sent in another way.
    """
    return _arguments_of(operation, without)


@cache
def _arguments_of(operation: Operation, without: tuple[str, ...]) -> type[Arguments]:
    definitions = members(field for field in operation.arguments if field.name not in without)
    if operation.has_budget:
        definitions["max_tokens"] = (ListTokens, None)
    name = f"{operation.name.title().replace('_', '')}Arguments"
    hand = operation.tool or ByHand()
    base = type(name, (Arguments,), {"model_config": ConfigDict(**hand.arguments)})  # type: ignore[typeddict-item]
    prepared: Any = (
        {} if hand.prepare is None else {"prepared": model_validator(mode="before")(hand.prepare)}
    )
    return create_model(name, __base__=base, __validators__=prepared, **definitions)


def called(operation: Operation, arguments: Arguments) -> tuple[dict[str, Any], ListBudget]:
    """What an operation is called with: its arguments, without those that are absent."""
    sent = {name: each for name, each in arguments.model_dump().items() if each is not None}
    return sent, ListBudget(sent.pop("max_tokens", None) if operation.lists else None)


def reply_to(
    operation: Operation, kb: KnowledgeBase, arguments: Arguments, dialect: Dialect
) -> Reply:
    """
    What an operation replies as a tool.

    Raises:
        QmdError: As the operation.
    """
    sent, budget = called(operation, arguments)
    bound = {"max_total_bytes": dialect.max_bytes} if operation.is_bounded else {}
    value = operation.call(kb, {**sent, **bound}, budget)
    if operation.tool is not None and operation.tool.reply is not None:
        return operation.tool.reply(Replied(value, sent, kb, operation.name), dialect)
    text = TextBlock(text_of(operation, value, sent, dialect))
    is_error = operation.fails is not None and operation.fails(value)
    return Reply((text,), to_wire(value, dialect.field), is_error)


def _tool(operation: Operation) -> Tool[Any]:
    arguments, hand = arguments_of(operation), operation.tool or ByHand()
    summary = " ".join(operation.paragraphs[: 1 if operation.tool_says_summary else 2])
    wordings = _wordings(arguments, summary, operation.zh)
    spoken = wordings.pop(hand.language)
    usual_title = operation.name.replace("_", " ").capitalize()
    return Tool(
        name=operation.tool_name or operation.name,
        title=usual_title if operation.title == "" else operation.title,
        description=spoken.pop("does"),
        arguments=arguments,
        run=partial(reply_to, operation),
        output_schema=_output_schema(operation),
        read_only=not operation.writes,
        idempotent=operation.idempotent,
        bulky=operation.lane == "bulk",
        outputs_more=hand.outputs_more,
        is_prescribed=hand.in_full,
        wordings=wordings,
        argument_texts={} if hand.language == "en" else spoken,  # those of the arguments do
        refusal=hand.refusal or invalid_arguments,
        failed=hand.failed or (_failed if operation.writes else None),
    )


def _output_schema(operation: Operation) -> Callable[[Dialect], dict[str, Any]] | None:
    hand = operation.tool
    if hand is None:
        return partial(output_schema, operation.reply) if operation.writes else None
    if hand.structured is None:
        return None
    if hand.as_specified:
        schema = prescribed_schema(hand.structured)
        return lambda dialect: schema
    return partial(output_schema, hand.structured, **hand.more())


def _joined_tool(joined: Joined) -> Tool[Any]:
    first = joined.parts[0]

    def run(kb: KnowledgeBase, arguments: Arguments, dialect: Dialect) -> Reply:
        sent, budget = called(first, arguments)
        texts = []
        structured: dict[str, object] = {}
        for left, operation in zip(range(len(joined.parts), 0, -1), joined.parts, strict=True):
            value = operation.call(kb, sent, budget, share=1 / left)
            texts.append(TextBlock(text_of(operation, value, sent, dialect)))
            structured[operation.name] = to_wire(value, dialect.field)
        return Reply(tuple(texts), structured)

    return Tool(
        name=joined.name,
        title=joined.title,
        description=joined.text,
        arguments=arguments_of(first),
        run=run,
        bulky=any(each.lane == "bulk" for each in joined.parts),
        wordings={"zh": _wordings(arguments_of(first), joined.text, joined.zh)["zh"]},
    )


def _wordings(
    arguments: type[Arguments], english: str, chinese: str
) -> dict[Language, dict[str, str]]:
    """The description of a tool in each language, and those of its arguments by their names."""
    described = {
        field.alias or name: fact
        for name, field in arguments.model_fields.items()
        for fact in field.metadata
        if isinstance(fact, Describe) and fact.zh
    }
    return {
        "en": {"does": english, **{name: fact.text for name, fact in described.items()}},
        "zh": {"does": chinese, **{name: fact.zh for name, fact in described.items()}},
    }


def _failed(error: QmdError) -> Reply:
    """The reply for an error; of a note that has changed, with the diff."""
    text = error_text(error)
    if isinstance(error, FileChangedError) and error.diff:
        text = f"{text}\n\nWhat has changed since:\n{error.diff}"
    return Reply((TextBlock(text),), is_error=True)


def text_of(
    operation: Operation, value: Any, arguments: Mapping[str, object], dialect: Dialect
) -> str:
    """The text of a reply: of a list a heading, and the items below it, each on one line."""
    replied, budget = Replied(value, arguments), dialect.field("max_tokens")
    if operation.text is not None:
        return operation.text(replied)
    if getattr(value, "nearest", ()):  # what was named is not there
        return one_line(operation.sentence(operation.when_empty, replied))
    lines = [operation.sentence(operation.heading, replied), *operation.texts(value)]
    if operation.left_out_text is not None:
        lines += filter(None, [operation.left_out_text(value, budget)])
    elif rest := operation.total(value) - operation.item_count(value):
        lines.append(f"… {rest:,} more: raise limit or {budget}")
    return "\n".join(map(one_line, lines))
