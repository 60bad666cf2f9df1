"""Prints lists: those of operations row by row, and what others share with them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import click

from qmd.cli import terminal
from qmd.cli.command import Decorator, together
from qmd.cli.formats import Places, places
from qmd.cli.remote import Remote, received
from qmd.cli.session import session
from qmd.operations.definition import Operation, Replied, Row, Styled
from qmd.values.graph import MAX_LISTED
from qmd.values.wire import ListBudget, to_wire

#: In front of a name that stands below its facts.
_INDENT = 2


def limit_options(most: int = MAX_LISTED) -> Decorator:
    """
    Add ``-n`` and ``--all``. The command gets one argument ``limit``; None is for all.

    Args:
        most: The largest number that ``-n`` takes.
    """
    options = together(
        click.option("-n", "--limit", type=click.IntRange(1, most), default=20, show_default=True,
                     metavar="N", help="Show at most N."),
        click.option("--all", "is_all", is_flag=True, help="Show all of them."),
    )  # fmt: skip

    def add(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def with_limit(limit: int, is_all: bool, **arguments: Any) -> Any:
            return function(limit=None if is_all else limit, **arguments)

        return options(with_limit)

    return add


@dataclass(frozen=True, slots=True)
class ListingView:
    """How a listing is printed."""

    where: Places
    max_tokens: int | None

    def budget(self) -> ListBudget:
        """The room for a reply whose files have the names of this output."""
        return ListBudget(self.max_tokens, as_object=self._object)

    def write_json(self, value: object) -> None:
        terminal.write_json(self._object(value))

    def link(self, file: str, *, line: int | None = None) -> str:
        """The name of a file, ``name:line`` if there is a line, that opens it when clicked."""
        number = "" if line is None else f":{line}"
        text = terminal.paint(self.where.fitting_name(file, len(number) + _INDENT), "file")
        text += terminal.paint(number, "line")
        return self.where.link(text, file, line or 1)

    def note_rest(self, shown: int, total: int, noun: str) -> None:
        """Say how many items are missing, if any are."""
        if total > shown:
            rest = total - shown
            remedy = "--all shows them" if self.max_tokens is None else "raise -n or --max-tokens"
            terminal.note(f"… {rest:,} more {noun}{'' if rest == 1 else 's'}: {remedy}")

    def _object(self, value: object) -> object:
        return _with_names(to_wire(value), self.where)


def _with_names(value: object, where: Places) -> object:
    """A JSON value with the names that an output has for its files."""
    if isinstance(value, Mapping):
        return {
            key: where.name(each)
            if key == "file" and isinstance(each, str)
            else _with_names(each, where)
            for key, each in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_with_names(each, where) for each in value]
    return value


def show(
    operation: Operation,
    arguments: Mapping[str, Any],
    *,
    as_json: bool,
    mode: str = "local",
    max_tokens: int | None = None,
    full_path: bool = False,
) -> None:
    """Run an operation, and print the list that it replies, row by row."""
    if mode == "server":
        value, sent = _answer_of_server(operation, {**arguments, "max_tokens": max_tokens})
    with session().open() as kb:
        view = ListingView(places(kb.collections, full_path=full_path), max_tokens)
        if mode != "server":
            value = sent = operation.call(kb, arguments, view.budget())
    if as_json and not operation.json_is_list:
        view.write_json(sent)
        return
    rows = list(operation.rows(value))
    if as_json:
        view.write_json(list_of(operation, sent))
    else:
        write_rows(rows, view)
    if operation.left_out_text is not None:
        if rest := operation.left_out_text(value, "--max-tokens"):
            terminal.note(rest)
    else:
        view.note_rest(operation.item_count(value), operation.total(value), operation.item(value))
    if not (rows or as_json or operation.total(value)):
        terminal.note(operation.sentence(operation.when_empty, Replied(value, arguments)))


def write_rows(rows: Iterable[Row], view: ListingView) -> None:
    """Print the lines of a list for people."""
    for row in rows:
        terminal.write(f"{_line(row, view)}\n")


def list_of(operation: Operation, sent: Any) -> object:
    """The items of the one list of a reply that has any."""
    wire = to_wire(sent)
    assert isinstance(wire, Mapping)
    return next(filter(None, (wire.get(name) for name in operation.lists)), [])


def _answer_of_server(operation: Operation, arguments: Mapping[str, Any]) -> tuple[Any, object]:
    """The reply of the running server, and the same in its wire form."""
    is_all = "limit" in arguments and arguments["limit"] is None
    limit = {"limit": MAX_LISTED} if is_all else {}
    sent = Remote(session().settings.db).answer(operation, {**arguments, **limit})
    value = received(operation.reply, sent)
    if is_all and operation.total(value) > MAX_LISTED:
        raise click.UsageError(
            f"--all needs --mode local: a server lists at most {MAX_LISTED:,} items, and there are"
            f" {operation.total(value):,}."
        )
    return value, sent


def _line(row: Row, view: ListingView) -> str:
    """A row as a terminal has room for it."""
    facts = "".join(_part(each, view) for each in row.facts)
    name = view.link(row.file, line=row.line) if row.file else ""
    if row.more:
        text = "".join(_part(each, view) for each in row.more)
        return terminal.beside(f"{facts}  {name}" if facts and name else facts or name, text, 0)
    return terminal.table_row(facts, name, terminal.one_line(row.text)) if name else facts


def _part(part: Styled | str, view: ListingView) -> str:
    if isinstance(part, str):
        return terminal.one_line(part)
    if part.file and not part.text:
        return view.link(part.file, line=part.line)
    text = (
        terminal.paint(terminal.one_line(part.text), part.style)
        if part.style
        else terminal.one_line(part.text)
    )
    return view.where.link(text, part.file, part.line or 1) if part.file else text
