"""Makes the commands of the operations that `qmd.operations` declares."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import is_dataclass
from functools import cache, wraps
from typing import Any, Literal, NoReturn, TypeVar, cast, get_args, get_origin

import click

from qmd import cli
from qmd.cli import complete
from qmd.cli.command import Command, QueryWord, command, json_option
from qmd.cli.formats import FORMATS
from qmd.cli.session import session
from qmd.cli.terminal import progress_bar, write_json, write_text
from qmd.config import load_settings
from qmd.errors import InputError, OutsideRootsError, QmdError
from qmd.operations import Operation, every_command
from qmd.operations.definition import Replied
from qmd.search.query import filter_date
from qmd.system import plugins
from qmd.values import facts
from qmd.values.properties import parse_filter
from qmd.values.text import MIN_TOKENS

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]


def listed() -> Iterable[tuple[str, Operation]]:
    """The operations that have a section of the help, by the full names of their commands."""
    turn_on_plugins()
    return ((each.command_name or "", each) for each in every_command() if each.listed_in)


def turn_on_plugins() -> None:
    """Let this process know the operations of the plugins that the settings turn on."""
    # A wrong setting is reported by the command that opens the database; a help text needs none.
    with suppress(QmdError):
        plugins.turn_on(load_settings().plugins)


@cache
def commands_below(group: str) -> dict[str, Operation]:
    """The operations that are commands of a group, by their names there; "" for the top level."""
    turn_on_plugins()
    split = ((each, *(each.command_name or "").rpartition(" ")) for each in every_command())
    return {name: each for each, above, _, name in split if above == group}


@cache
def command_of(operation: Operation) -> Command:
    """The command of an operation."""

    def run(is_all: bool = False, **options: Any) -> None:
        values = {field: options.pop(_key(field), None) for field in operation.fields}
        arguments = {
            _key(field): _as_called(field, value)
            for field, value in values.items()
            if value is not None and operation.takes(field)  # of the others it takes the option
        }
        if is_all:
            arguments["limit"] = None
        if operation.done_by:
            module, _, function = operation.done_by.partition(":")
            getattr(getattr(cli, module), function)(operation, arguments, **options)
        elif has_rows(operation):
            cli.listings.show(operation, arguments, **options)
        else:
            _tell(operation, arguments, **options)

    words = operation.command_name or ""
    function: Callable[..., Any] = run
    decorators = [each for field in operation.fields for each in _params(operation, field)]
    for add in reversed([*decorators, *_options(operation)]):
        function = add(function)
    return command(
        words.rpartition(" ")[2],
        help="\n\n".join((*operation.paragraphs, *_about_arguments(operation.arguments))),
        examples=operation.examples or _examples(words, operation.arguments),
        usual=operation.usual,
        pages=not operation.writes,
        destroys=operation.destroys,
    )(function)


def _format_options(function: F) -> F:
    """Add ``--format`` and its short forms; the command gets one argument ``output``."""

    @wraps(function)
    def with_format(**options: Any) -> Any:
        chosen = [name for name in FORMATS[1:] if options.pop(f"as_{name}")]
        named = options.pop("format_name")
        if named is not None:
            chosen.append(named)
        if len(set(chosen)) > 1:
            raise click.UsageError("One format only: " + " or ".join(dict.fromkeys(chosen)) + "?")
        return function(output=chosen[0] if chosen else "cli", **options)

    for name in reversed(FORMATS[1:]):
        click.option(f"--{name}", f"as_{name}", is_flag=True, help=f"Short for --format {name}.")(
            with_format
        )
    click.option(
        "--format", "format_name", type=click.Choice(FORMATS), help="How to print the result."
    )(with_format)
    return cast("F", with_format)


#: The options besides those of arguments. The other names in `Operation.options` are settings.
_OPTIONS: Mapping[str, Decorator] = {
    "again": click.option(
        "--again", is_flag=True, help="Of several, update those that are saved already."
    ),
    "files": click.option(
        "--file",
        "files",
        multiple=True,
        metavar="FILE",
        shell_complete=complete.files,
        help="Keep this file beside the note, and link to it; repeatable.",
    ),
    "format": _format_options,
    "full": click.option("--full", is_flag=True, help="The whole text of each hit."),
    "full_path": click.option(
        "--full-path", is_flag=True, help="Name each file by its path on the disk."
    ),
    "json": json_option,
    "line_numbers": click.option(
        "--line-numbers", is_flag=True, help="Number the lines of --full."
    ),
    "max_tokens": click.option(
        "--max-tokens",
        type=click.IntRange(MIN_TOKENS),
        metavar="N",
        help="Most tokens to print, estimated; says what is left out.",
    ),
    "mode": click.option(
        "--mode",
        type=click.Choice(["local", "server"]),
        default="local",
        help="server: the running server answers, not this process.",
    ),
    # For commands that always print the whole text.
    "full_hidden": click.option("--full", is_flag=True, hidden=True, expose_value=False),
    "mode_auto": click.option(
        "--mode",
        type=click.Choice(["auto", "server", "local"]),
        default="auto",
        help="Who answers: a running server, this process, or this process with a vector from the"
        " server, if one runs.",
    ),
}


def _options(operation: Operation) -> Iterable[Decorator]:
    """The options that an operation has besides its arguments."""
    names = list(operation.options)
    if OutsideRootsError in operation.errors:
        names.append("write_roots")
    if operation.has_budget:
        names += ["max_tokens", "full_path"] if operation.names_files else ["max_tokens"]
    if "format" not in names:
        names.append("json")
    if has_rows(operation):
        names.append("mode")
    return (_OPTIONS.get(each) or cli.command.setting_option(each) for each in names)


def has_rows(operation: Operation) -> bool:
    """Whether its reply is a list that is printed row by row, and that a server sends in full."""
    return bool(operation.lists) and not operation.done_by


def _params(operation: Operation, field: facts.FieldFacts) -> Iterable[Decorator]:
    """The options or the argument of the shell for an argument of an operation."""
    commands, hint = field.get(facts.ForCommands), facts.without_none(field.hint)
    is_ignored = commands is not None and commands.ignored
    if is_dataclass(_item(field)) or not (operation.takes(field) or is_ignored):
        return
    if _is_positional(field):
        yield _argument(field)
        return
    yield _option(field, hidden=not operation.takes(field))
    names = {each.name for each in operation.fields}
    if field.name == "limit" and hint is not field.hint and "all" not in names:
        yield click.option("--all", "is_all", is_flag=True, help="Show all of them.")


def _argument(field: facts.FieldFacts) -> Decorator:
    shell = field.get(facts.Shell) or facts.Shell()
    # With a default, also None, click takes a command line without the argument.
    value = field.default if shell.default is facts.Required else shell.default
    default: dict[str, Any] = {} if value is facts.Required else {"default": value}
    return click.argument(
        field.name,
        type=QueryWord() if shell.join == " " else _type(field),
        nargs=-1 if shell.join else 1,
        required=not default,
        metavar=shell.metavar or None,
        shell_complete=getattr(complete, shell.completes, None),
        **default,
    )


def _option(field: facts.FieldFacts, *, hidden: bool) -> Decorator:
    shell, hint = field.get(facts.Shell) or facts.Shell(), facts.without_none(field.hint)
    default = field.default if shell.default is facts.Required else shell.default
    name = f"--{field.name.replace('_', '-')}"
    names = [f"{name}/--no-{name[2:]}" if default is True else name]
    if field.name == "limit":
        names.insert(0, "-n")
    repeat = "; repeat for several" if _item(field) and not shell.by_comma else ""
    return click.option(
        *(shell.names or names),
        _key(field),
        type=_type(field),
        is_flag=hint is bool,
        multiple=_item(field) is not None,
        callback=_names if shell.by_comma else None,
        default=default,
        show_default=default not in (None, "", False, ()),
        metavar=shell.metavar or ("N" if hint is int else None),
        help=f"{shell.help or field.description}{repeat}.",
        hidden=hidden,
        shell_complete=getattr(complete, shell.completes, None),
    )


def _item(field: facts.FieldFacts) -> Any:
    """The type of the items of a list; None for anything else."""
    hint = facts.without_none(field.hint)
    return get_args(hint)[0] if get_origin(hint) is tuple else None


def _key(field: facts.FieldFacts) -> str:
    """The name under which an operation takes the value of an option."""
    return field.name if field.has(facts.Singular) else field.wire_name


def _is_positional(field: facts.FieldFacts) -> bool:
    shell = field.get(facts.Shell)
    return field.is_required or (shell is not None and shell.positional)


def _type(field: facts.FieldFacts) -> Any:
    """The type of an option as click has it."""
    hint, bounds = _item(field) or facts.without_none(field.hint), field.get(facts.Range)
    if bounds is not None:
        return (_Count if hint is int else _Fraction)(bounds.low, bounds.high)
    if field.has(facts.DateOrSpan):
        return _date
    if field.has(facts.OnProperties):
        return _condition
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    return hint if isinstance(hint, type) else _as_json_or_text


class _Count(click.IntRange):
    """A whole number in a range, in words: 1 to 1,000."""

    name = "whole number"

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max)


class _Fraction(click.FloatRange):
    """A number in a range: NaN is in none, though no comparison refuses it."""

    name = "number"

    def _describe_range(self) -> str:
        return _in_words(self.min, self.max)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if number != number:  # noqa: PLR0124
            self.fail(f"nan is not in the range {self._describe_range()}.", param, ctx)
        return number


def _in_words(low: float | None, high: float | None) -> str:
    if high is None:
        return f"{low:,} or more"
    return f"{low:,} to {high:,}"


def _date(text: str) -> str:
    return _read_by(filter_date, text)


def _condition(text: str) -> str:
    _read_by(parse_filter, text)
    return text


def _read_by(read: Callable[[str], T], text: str) -> T:
    """What ``read`` makes of the text of an option; what it refuses is wrong usage."""
    try:
        return read(text)
    except InputError as error:
        raise click.BadParameter(f"{str(error).rstrip('.')}. {error.hint}") from error


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Each once, of options that take several by comma."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _as_json_or_text(text: str) -> object:
    """A value of one of several types as it is typed: ``3``, ``true``, ``["a"]``, or a word."""

    def number(typed: str) -> float | str:
        # "1e3" and "1.10" would be written as 1000.0 and 1.1.
        value = float(typed)
        return value if repr(value) == typed else typed

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    try:
        value = json.loads(text, parse_float=number, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text
    items = value if isinstance(value, list) else [value]
    is_simple = all(isinstance(each, (str, bool, int, float)) for each in items)
    return value if is_simple and not isinstance(value, str) else text


def _about_arguments(fields: Iterable[facts.FieldFacts]) -> Iterable[str]:
    """What stands in a help text of the arguments without an option's name."""
    for field in fields:
        shell = field.get(facts.Shell) or facts.Shell()
        if _is_positional(field) and field.description:
            name = shell.metavar.strip("[].").partition("[")[0] or field.name.upper()
            yield f"{name}: {field.description[0].lower()}{field.description[1:]}."


def _examples(words: str, fields: Iterable[facts.FieldFacts]) -> tuple[str, str]:
    """Two command lines for an operation that names none."""
    line = " ".join(["qmd", words, *(each.name.upper() for each in fields if each.is_required)])
    return line, f"{line} --json"


def _as_called(field: facts.FieldFacts, value: Any) -> Any:
    """An argument as an operation takes it: the words of a query as a text, ``-`` as stdin."""
    shell = field.get(facts.Shell)
    if shell is not None and shell.join:
        return shell.join.join(value)
    if shell is not None and shell.stdin and value == "-":
        return sys.stdin.buffer.read().decode(errors="surrogateescape")
    return value


def _tell(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    """Run an operation, and print the text of its reply."""
    value = _reply(operation, arguments)
    if as_json:
        write_json(value)
    elif operation.view:
        getattr(cli.render_reports, operation.view)(value)
    else:
        assert operation.text is not None
        write_text(f"{operation.text(Replied(value, arguments))}\n")
    if operation.fails is not None and operation.fails(value):
        click.get_current_context().exit(1)


def _reply(operation: Operation, arguments: Mapping[str, Any]) -> Any:
    writes = operation.writes and not arguments.get("dry_run")
    with session().open(write=writes) as kb, ExitStack() as stack:
        if operation.shows_progress:
            arguments = {**arguments, "progress": stack.enter_context(progress_bar())}
        return operation.run(kb, **operation.gathered(arguments))
