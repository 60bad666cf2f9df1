"""
Makes the options of ``qmd search``, ``vsearch`` and ``query`` from the fields of `SearchRequest`.

A new field gets an option with its name. `_SPELLINGS` has a line for each option that differs
from its field in name, metavar or help.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar, get_args, get_origin

import click

from qmd.cli import complete
from qmd.cli.formats import format_options
from qmd.cli.places import full_path_option
from qmd.cli.query_words import QueryWord
from qmd.cli.setting_options import apply_options
from qmd.errors import InputError
from qmd.search.query.dates import filter_date
from qmd.values.facts import (
    DateOrSpan,
    FieldFacts,
    ForCommands,
    Inline,
    OnProperties,
    Range,
    field_facts,
    without_none,
)
from qmd.values.search import VSEARCH_MIN_SCORE, SearchCommand, SearchRequest

F = TypeVar("F", bound=Callable[..., Any])
ValueT = TypeVar("ValueT")
Callback = Callable[[click.Context, click.Parameter, Any], object]
Mode = Literal["auto", "server", "local"]


class View(NamedTuple):
    """The options that are not part of a request: who answers, and how the hits are printed."""

    mode: Mode
    output: str
    full: bool
    line_numbers: bool
    full_path: bool


class _Spelling(NamedTuple):
    """
    The parts of an option that differ from its field.

    Attributes:
        names: The names of the option; empty for the name of the field.
        metavar: The placeholder for the value in the help.
        help: The help text; None for the description of the field.
        without: The name and the help of the option that sets the field to None.
        completions: The values that the shell offers.
    """

    names: tuple[str, ...] = ()
    metavar: str | None = None
    help: str | None = None
    without: tuple[str, str] | None = None
    completions: complete.Completions | None = None


#: In the order of the help; a field without a line comes last.
_SPELLINGS = {
    "limit": _Spelling(
        ("-n", "--limit"),
        help="Most hits to return.",
        without=("--all", "All hits, without a limit."),
    ),
    "min_score": _Spelling(metavar="S"),
    "min_relevance": _Spelling(metavar="S", help="Drop hits less likely to answer."),
    "max_tokens": _Spelling(
        help="Most tokens to print, estimated: shortens snippets, then leaves out the last hits."
    ),
    "collections": _Spelling(
        ("-c", "--collection"),
        "NAME",
        help="Only this collection; repeat for several.",
        completions=complete.collections,
    ),
    "path": _Spelling(
        metavar="PREFIX",
        help="Only below this folder, with or without the collection in front.",
        completions=complete.documents,
    ),
    "tags": _Spelling(
        ("--tag",),
        "T",
        help="Only documents with all of these tags; repeat for several.",
        completions=complete.tags,
    ),
    "properties": _Spelling(("-p", "--property"), "KEY:VALUE", completions=complete.conditions),
    "after": _Spelling(
        metavar="DATE", help="Only of this date or later: the note's own, else the file's."
    ),
    "before": _Spelling(metavar="DATE", help="Only before this date."),
    "sort": _Spelling(
        metavar="BY",
        help="By date, title or a property instead of by rank; -BY descends.",
        completions=complete.sort_keys,
    ),
    "group_by": _Spelling(
        metavar="KEY",
        help="Put hits with the same property together.",
        completions=complete.property_keys,
    ),
    "explain": _Spelling(help="Say how each score came about."),
    "rerank": _Spelling(("--no-rerank",), help="Leave the fused order as it is."),
    "expand": _Spelling(
        ("--no-expand",), help="Search for the query alone, without other versions of it."
    ),
    "spelling": _Spelling(("--no-spelling",), help="Search for the words as they are typed."),
    "candidates": _Spelling(("-C", "--candidates", "--candidate-limit")),
    "intent": _Spelling(metavar="TEXT"),
}

#: The options that the help of a search shows first.
USUAL = (
    *("--limit", "--collection", "--path", "--tag", "--property", "--after", "--before"),
    *("--sort", "--full", "--json"),
)

#: Options that all searches accept, so that a script may give all of them the same.
_ACCEPTED_BY_ALL = ("rerank", "expand", "candidates", "intent")

_VIEW_OPTIONS = (
    click.option("--full", is_flag=True, help="The whole text of each hit."),
    click.option("--line-numbers", is_flag=True, help="Number the lines of --full."),
    full_path_option,
    click.option("--mode", type=click.Choice(get_args(Mode)), default="auto",
                 help="Who answers: a running server, this process, or this process with a "
                      "vector from the server, if one runs."),
    format_options,
)  # fmt: skip


def search_options(
    command: SearchCommand,
) -> Callable[[Callable[[SearchRequest, View], None]], Callable[..., None]]:
    """
    Add the options of a search to a command.

    The command's function gets the request and the view that the options make.
    """

    def wrap(function: Callable[[SearchRequest, View], None]) -> Callable[..., None]:
        def with_values(
            query: tuple[str, ...],
            mode: Mode,
            output: str,
            full: bool,
            line_numbers: bool,
            full_path: bool,
            **options: object,
        ) -> None:
            for field in _option_fields():
                if options.pop(_without_parameter(field), False):
                    options[field.name] = None
            if full and options["max_tokens"] is not None:
                raise click.UsageError(
                    "--full and --max-tokens exclude each other; "
                    "read single documents with 'qmd get --max-tokens'."
                )
            request = _gather(SearchRequest, {"query": " ".join(query), **options})
            function(request, View(mode, output, full, line_numbers, full_path))

        decorated: Callable[..., None] = functools.update_wrapper(with_values, function)
        for option in reversed((*_request_options(command), *_VIEW_OPTIONS)):
            decorated = option(decorated)
        return click.argument("query", nargs=-1, required=True, type=QueryWord())(decorated)

    return wrap


def option_name(field: FieldFacts) -> str:
    """The long name on the command line, such as ``--no-rerank``."""
    return next(name for name in _option_names(field) if name.startswith("--"))


def unlimited_option_name(field: FieldFacts) -> str | None:
    """The option that sets None, such as ``--all``."""
    without = _spelling(field).without
    return None if without is None else without[0]


def filter_options(*names: str) -> Callable[[F], F]:
    """Add the options of the searches for these fields of a request to another command."""
    fields = {field.name: field for field in _option_fields()}

    def add(function: F) -> F:
        return apply_options([_option(fields[name], "search") for name in names], function)

    return add


def _request_options(command: SearchCommand) -> Iterator[Callable[..., Any]]:
    for field in _option_fields():
        spelling = _spelling(field)
        yield _option(field, command)
        if spelling.without is not None:
            name, text = spelling.without
            yield click.option(name, _without_parameter(field), is_flag=True, help=text)


def _option(field: FieldFacts, command: SearchCommand) -> Callable[[F], F]:
    spelling = _spelling(field)
    commands = field.get(ForCommands)
    default = field.default
    if field.name == "min_score" and command == "vsearch":
        default = VSEARCH_MIN_SCORE
    return click.option(
        *_option_names(field),
        field.name,
        default=default,
        metavar=spelling.metavar or _metavar(field),
        help=spelling.help or _help(field),
        hidden=commands is not None and command not in commands.names,
        shell_complete=spelling.completions,
        **{**_type_of_option(field, default), **_refusal(field, command)},
    )


def _type_of_option(field: FieldFacts, default: object) -> dict[str, Any]:
    """The arguments of `click.option` for the type and the range of a field."""
    hint, bounds = without_none(field.hint), field.get(Range)
    if hint is bool:
        return {"is_flag": True, "flag_value": not default}
    if get_origin(hint) is Literal:
        return {"type": click.Choice(get_args(hint)), "show_default": default is not None}
    if get_origin(hint) is tuple:
        item = get_args(hint)[0]
        choice = click.Choice(get_args(item)) if get_origin(item) is Literal else item
        check: Callback | None = _checked_conditions if field.has(OnProperties) else None
        return {"type": choice, "multiple": True, "callback": check}
    if bounds is not None and bounds.high is None:
        return {"type": click.IntRange(bounds.low), "show_default": default is not None}
    if bounds is not None:
        callback = _in_range(field, bounds)
        return {"type": hint, "callback": callback, "show_default": default is not None}
    return {"type": hint, "callback": _parsed_date if field.has(DateOrSpan) else None}


def _refusal(field: FieldFacts, command: SearchCommand) -> dict[str, Any]:
    """The callback that refuses an option of another search; empty if ``command`` takes it."""
    commands = field.get(ForCommands)
    if commands is None or command in commands.names or field.name in _ACCEPTED_BY_ALL:
        return {}
    names = " and ".join(f"qmd {name}" for name in commands.names)

    def refuse(ctx: click.Context, param: click.Parameter, value: object) -> object:
        if value:
            message = f"{option_name(field)} is an option of '{names}', not of '{ctx.info_name}'."
            raise click.UsageError(message, ctx)
        return value

    return {"callback": refuse}


def _metavar(field: FieldFacts) -> str | None:
    """N for an integer; None for the word that click chooses."""
    return "N" if without_none(field.hint) is int else None


def _in_range(field: FieldFacts, bounds: Range) -> Callback:
    name = field.name.replace("_", " ")
    allowed = f"lies {bounds}"
    if without_none(field.hint) is int:
        allowed = f"is {bounds.low} to {bounds.high:,}"
    unlimited = unlimited_option_name(field)
    exception = "" if unlimited is None else f"; {unlimited} has none"

    def check(ctx: click.Context, param: click.Parameter, value: float) -> float:
        if value not in bounds:  # NaN is in no range
            message = f"the {name} {allowed}, not {value:,}{exception}."
            raise click.BadParameter(message, ctx, param)
        return value

    return check


def _parsed_date(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    if value is None:
        return None
    try:
        return filter_date(value)
    except InputError as error:
        raise click.BadParameter(f"{error}. {error.hint}", ctx, param) from error


def _checked_conditions(
    ctx: click.Context, param: click.Parameter, value: tuple[str, ...]
) -> tuple[str, ...]:
    if value:
        from qmd.values.conditions import parse_filter

        for condition in value:
            try:
                parse_filter(condition)
            except InputError as error:
                raise click.BadParameter(f"{error} {error.hint}", ctx, param) from error
    return value


def _help(field: FieldFacts) -> str:
    repeat = "; repeat for several" if get_origin(field.hint) is tuple else ""
    return f"{field.description}{repeat}."


def _option_names(field: FieldFacts) -> tuple[str, ...]:
    return _spelling(field).names or (f"--{field.name.replace('_', '-')}",)


def _spelling(field: FieldFacts) -> _Spelling:
    return _SPELLINGS.get(field.name, _Spelling())


def _without_parameter(field: FieldFacts) -> str:
    """The name of the click parameter for the option that sets the field to None."""
    return f"without_{field.name}"


@functools.cache
def _option_fields() -> tuple[FieldFacts, ...]:
    """The fields of a request that are options, in the order of the help."""
    fields = {field.name: field for field in _leaves(SearchRequest) if not field.is_required}
    return tuple(fields[name] for name in dict.fromkeys((*_SPELLINGS, *fields)))


def _leaves(value_type: type) -> Iterator[FieldFacts]:
    """The fields of a value; an inline field is replaced by the fields of its type."""
    for field in field_facts(value_type):
        if field.has(Inline):
            yield from _leaves(field.hint)
        else:
            yield field


def _gather(value_type: type[ValueT], parts: dict[str, object]) -> ValueT:
    """Make a value, and the values of its inline fields, from ``parts``: field name → value."""
    return value_type(
        **{
            field.name: _gather(field.hint, parts) if field.has(Inline) else parts[field.name]
            for field in field_facts(value_type)
        }
    )
