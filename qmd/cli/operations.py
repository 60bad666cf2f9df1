"""Makes the commands of the operations that `qmd.operations` declares."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from functools import cache
from typing import TYPE_CHECKING, Any, Literal, NoReturn, get_args, get_origin

import click

from qmd.cli import complete, render_reports
from qmd.cli.command import Command, json_option
from qmd.cli.listings import ListingOptions, ListingView, max_tokens_option
from qmd.cli.places import full_path_option
from qmd.cli.progress import progress_bar
from qmd.cli.remote import Remote, received
from qmd.cli.session import session
from qmd.cli.setting_options import setting_option
from qmd.cli.terminal import (
    beside,
    note,
    one_line,
    paint,
    table_row,
    use_color,
    write,
    write_json,
    write_text,
)
from qmd.errors import OutsideRootsError
from qmd.operations import Operation, every_operation
from qmd.operations.definition import Replied, Row, Styled
from qmd.values.facts import FieldFacts, Range, Shell, without_none
from qmd.values.graph import MAX_LISTED
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from collections.abc import Callable


def listed() -> Iterable[tuple[str, Operation]]:
    """The operations that have a section of the help, by the full names of their commands."""
    for each in every_operation():
        if each.words is not None and each.section:
            yield each.words, each


@cache
def commands_below(group: str) -> dict[str, Operation]:
    """The operations that are commands of a group, by their names there; "" for the top level."""
    prefix = f"{group} " if group else ""
    return {
        words.removeprefix(prefix): each
        for each in every_operation()
        if (words := each.words) is not None
        and words.startswith(prefix)
        and " " not in words.removeprefix(prefix)
    }


@cache
def command_of(operation: Operation) -> Command:
    """The command of an operation."""
    words = operation.words
    assert words is not None

    def run(
        as_json: bool,
        mode: str = "local",
        max_tokens: int | None = None,
        full_path: bool = False,
        **arguments: Any,
    ) -> None:
        options = ListingOptions(max_tokens=max_tokens, full_path=full_path, as_json=as_json)
        sent = _as_called(operation, arguments)
        if _has_rows(operation):
            _list(operation, options, mode, sent)
        else:
            _tell(operation, sent, as_json=as_json)

    command = Command(
        words.rpartition(" ")[2],
        callback=run,
        params=[param for each in operation.arguments for param in _params(each)],
        help="\n\n".join((*operation.paragraphs, *_about_arguments(operation.arguments))),
        examples=operation.examples or _examples(words, operation.arguments),
        pages=not operation.writes,
        destroys=operation.destroys,
    )
    at_the_end = command.params[-2:]  # --db and --index
    del command.params[-2:]
    for add in _options(operation):
        add(command)
    command.params += at_the_end
    return command


def _options(operation: Operation) -> Iterable[Callable[[Command], Command]]:
    """The options that an operation has besides its arguments."""
    if OutsideRootsError in operation.errors:
        yield setting_option("write_roots")
    if operation.has_budget:
        yield max_tokens_option
        if operation.names_files:
            yield full_path_option
    yield json_option
    if _has_rows(operation):
        yield _mode_option


def _has_rows(operation: Operation) -> bool:
    """Whether its reply is a list that is printed row by row, and that a server sends in full."""
    return bool(operation.lists) and not operation.view


_mode_option = click.option(
    "--mode",
    type=click.Choice(["local", "server"]),
    default="local",
    help="server: the running server answers, not this process.",
)


def _params(field: FieldFacts) -> Iterable[click.Parameter]:
    """The options or the argument of the shell for an argument of an operation."""
    shell = field.get(Shell) or Shell()
    completes: Callable[..., Any] | None = getattr(complete, shell.completes, None)
    if _is_positional(field):
        # With a default, also None, click takes a command line without the argument.
        default: dict[str, Any] = {} if field.is_required else {"default": field.default}
        yield click.Argument(
            [field.name],
            type=_type(field),
            required=field.is_required,
            **default,
            metavar=shell.metavar or None,
            shell_complete=completes,
        )
        return
    hint, is_list = without_none(field.hint), get_origin(field.hint) is tuple
    is_limit = field.name == "limit"
    short, name = "-n" if is_limit else shell.short, field.name.replace("_", "-")
    yield click.Option(
        [
            *filter(None, [short]),
            f"--{name}/--no-{name}" if field.default is True else f"--{name}",
            field.name,
        ],
        type=_type(field),
        is_flag=hint is bool,
        multiple=is_list,
        callback=_names if is_list else None,
        default=field.default,
        show_default=field.default not in (None, "", False, ()),
        metavar=shell.metavar or ("N" if hint is int else None),
        help=f"{field.description}.",
        shell_complete=completes,
    )
    if is_limit and hint is not field.hint:
        yield click.Option(["--all", "is_all"], is_flag=True, help="Show all of them.")


def _is_positional(field: FieldFacts) -> bool:
    shell = field.get(Shell)
    return field.is_required or (shell is not None and shell.positional)


def _type(field: FieldFacts) -> Any:
    """The type of an option as click has it."""
    hint, bounds = without_none(field.hint), field.get(Range)
    if bounds is not None and hint is int:
        return click.IntRange(bounds.low, bounds.high)
    if get_origin(hint) is Literal:
        return click.Choice(get_args(hint))
    if get_origin(hint) is tuple:
        return str
    return hint if isinstance(hint, type) else _as_json_or_text


def _names(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    """Each once, of options that take several by comma."""
    names = (name.strip() for value in values for name in value.split(","))
    return tuple(dict.fromkeys(filter(None, names)))


def _as_json_or_text(text: str) -> object:
    """A value of one of several types as it is typed: ``3``, ``true``, ``["a"]``, or a word."""

    def refuse(name: str) -> NoReturn:
        raise ValueError(f"{name} is no JSON")

    try:
        value = json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return text
    items = value if isinstance(value, list) else [value]
    is_simple = all(isinstance(each, (str, bool, int, float)) for each in items)
    return value if is_simple and not isinstance(value, str) else text


def _about_arguments(fields: Iterable[FieldFacts]) -> Iterable[str]:
    """What stands in a help text of the arguments without an option's name."""
    for field in fields:
        shell = field.get(Shell) or Shell()
        if _is_positional(field) and field.description:
            name = shell.metavar.strip("[]") or field.name.upper()
            yield f"{name}: {field.description[0].lower()}{field.description[1:]}."


def _examples(words: str, fields: Iterable[FieldFacts]) -> tuple[str, str]:
    """Two command lines for an operation that names none."""
    line = " ".join(["qmd", words, *(each.name.upper() for each in fields if each.is_required)])
    return line, f"{line} --json"


def _as_called(operation: Operation, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of an operation: ``--all`` is a limit of None, and ``-`` what is on stdin."""
    if arguments.pop("is_all", False):
        arguments["limit"] = None
    for field in operation.arguments:
        shell = field.get(Shell)
        if shell is not None and shell.stdin and arguments[field.name] == "-":
            arguments[field.name] = sys.stdin.buffer.read().decode(errors="surrogateescape")
    return arguments


def _tell(operation: Operation, arguments: Mapping[str, Any], *, as_json: bool) -> None:
    """Run an operation, and print the text of its reply."""
    value = _reply(operation, arguments)
    if as_json:
        write_json(_list_of(operation, value) if operation.bare else to_wire(value))
    elif operation.view:
        getattr(render_reports, operation.view)(Replied(value, arguments))
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
        return operation.run(kb, **arguments)


def _list(
    operation: Operation, options: ListingOptions, mode: str, arguments: Mapping[str, Any]
) -> None:
    if mode == "server":
        value, sent, view = _answer_of_server(operation, options, arguments)
    else:
        with session().open() as kb:
            view = options.view(kb)
            value = sent = operation.call(kb, arguments, view.budget())
    if options.as_json and not operation.bare:
        view.write_json(sent)
        return
    rows = list(operation.rows(value))
    if options.as_json:
        view.write_json(_list_of(operation, sent))
    else:
        color = use_color(sys.stdout)
        for row in rows:
            write(f"{_line(row, view, color)}\n")
    if operation.rest is not None:
        if rest := operation.rest(value, "--max-tokens"):
            note(rest)
    else:
        view.note_rest(operation.shown(value), operation.total(value), operation.item(value))
    if not (rows or options.as_json or operation.total(value)):
        note(operation.sentence(operation.none, Replied(value, arguments)))


def _list_of(operation: Operation, sent: Any) -> object:
    """The items of the one list of a reply that has any."""
    wire = to_wire(sent)
    assert isinstance(wire, Mapping)
    return next(filter(None, (wire.get(name) for name in operation.lists)), [])


def _answer_of_server(
    operation: Operation, options: ListingOptions, arguments: Mapping[str, Any]
) -> tuple[Any, object, ListingView]:
    """The reply of the running server, and the same in its wire form."""
    is_all = "limit" in arguments and arguments["limit"] is None
    limit = {"limit": MAX_LISTED} if is_all else {}
    remote = Remote(session().settings.db)
    sent = remote.answer(operation, {**arguments, **limit, "max_tokens": options.max_tokens})
    value = received(operation.reply, sent)
    if is_all and operation.total(value) > MAX_LISTED:
        raise click.UsageError(
            f"--all needs --mode local: a server lists at most {MAX_LISTED:,} items, and there are"
            f" {operation.total(value):,}."
        )
    with session().open() as kb:
        view = options.view(kb)
    return value, sent, view


def _line(row: Row, view: ListingView, color: bool) -> str:
    """A row as a terminal has room for it."""
    facts = "".join(_part(each, view, color) for each in row.facts)
    name = view.link(row.file, color, line=row.line) if row.file else ""
    if row.more:
        text = "".join(_part(each, view, color) for each in row.more)
        return beside(f"{facts}  {name}" if facts and name else facts or name, text, 0)
    return table_row(facts, name, one_line(row.text)) if name else facts


def _part(part: Styled | str, view: ListingView, color: bool) -> str:
    if isinstance(part, str):
        return one_line(part)
    if part.file and not part.text:
        return view.link(part.file, color, line=part.line)
    text = paint(one_line(part.text), part.style, color) if part.style else one_line(part.text)
    return view.where.link(text, part.file, part.line or 1) if part.file else text
