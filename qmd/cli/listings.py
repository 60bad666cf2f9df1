"""What the listings of operations and documents share: their options, budget and last line."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from qmd.cli.places import Places, places
from qmd.cli.terminal import note, paint, write_json
from qmd.values.graph import MAX_LISTED
from qmd.values.tokens import MIN_TOKENS
from qmd.values.wire import ListBudget, to_wire

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

#: In front of a name that stands below its facts.
_INDENT = 2

F = TypeVar("F", bound=Callable[..., Any])

max_tokens_option = click.option(
    "--max-tokens",
    type=click.IntRange(MIN_TOKENS),
    metavar="N",
    help="Most tokens to print, estimated; says what is left out.",
)


def limit_options(default: int | None, *, most: int = MAX_LISTED) -> Callable[[F], F]:
    """
    Add ``-n`` and ``--all``. The command gets one argument ``limit``; None is for all.

    Args:
        default: The limit without either option.
        most: The largest number that ``-n`` takes.
    """

    def add(function: F) -> F:
        @functools.wraps(function)
        def with_limit(limit: int | None, is_all: bool, **arguments: Any) -> Any:
            return function(limit=None if is_all else limit, **arguments)

        decorated = click.option("--all", "is_all", is_flag=True, help="Show all of them.")(
            with_limit
        )
        return cast(
            "F",
            click.option(
                "-n",
                "--limit",
                type=click.IntRange(1, most),
                default=default,
                show_default=default is not None,
                metavar="N",
                help="Show at most N.",
            )(decorated),
        )

    return add


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """What the options of a listing say."""

    max_tokens: int | None
    full_path: bool
    as_json: bool

    def view(self, kb: KnowledgeBase) -> ListingView:
        return ListingView(places(kb.collections, full_path=self.full_path), self.max_tokens)


@dataclass(frozen=True, slots=True)
class ListingView:
    """How a listing is printed."""

    where: Places
    max_tokens: int | None

    def budget(self) -> ListBudget:
        """The room for a reply whose files have the names of this output."""
        return ListBudget(self.max_tokens, as_object=self._object)

    def write_json(self, value: object) -> None:
        write_json(self._object(value))

    def link(self, file: str, color: bool, *, line: int | None = None) -> str:
        """The name of a file, ``name:line`` if there is a line, that opens it when clicked."""
        number = "" if line is None else f":{line}"
        text = paint(self.where.fitting_name(file, len(number) + _INDENT), "file", color)
        text += paint(number, "line", color)
        return self.where.link(text, file, line or 1)

    def note_rest(self, shown: int, total: int, noun: str) -> None:
        """Say how many items are missing, if any are."""
        if total > shown:
            rest = total - shown
            remedy = "--all shows them" if self.max_tokens is None else "raise -n or --max-tokens"
            note(f"… {rest:,} more {noun}{'' if rest == 1 else 's'}: {remedy}")

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
