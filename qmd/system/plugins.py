"""
Finds what other installed packages offer, by their entry points, and loads what a person names.

The group ``qmd.formats`` offers formats of files, ``qmd.models`` models that embed, rerank or
expand, ``qmd.operations`` tools, commands and endpoints. A name of the setting ``plugins`` turns on
what all groups have by it. Nothing of a package is imported before, because its code runs with the
rights of qmd.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from typing import TYPE_CHECKING, Literal, TypeVar

from qmd import libraries
from qmd.system.worker.jobs import described

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Kind = Literal["formats", "models", "operations"]
T = TypeVar("T")

#: sys.stdout is the process's: two threads that redirect it would not put back what was there.
_redirecting = threading.RLock()
_turned_on: tuple[str, ...] = ()


def turn_on(names: Iterable[str]) -> None:
    """Use these plugins from now on, in this process."""
    global _turned_on  # noqa: PLW0603 - entry points are the process's, too
    _turned_on = tuple(names)


def turned_on() -> tuple[str, ...]:
    """The names of the plugins that this process uses."""
    return _turned_on


def installed(kind: Kind) -> dict[str, EntryPoint]:
    """The entry points of a kind, by name; nothing is imported."""
    return {point.name: point for point in libraries.metadata.entry_points(group=f"qmd.{kind}")}


def offers(
    kind: Kind, names: Iterable[str], offer: type[T], problem_of: Callable[[T], str | None]
) -> dict[str, tuple[T, ...] | str]:
    """
    What plugins offer, by their names.

    Args:
        names: Those that have nothing of this kind are left out.
        offer: The type of what is offered: an entry point names one value, or several in a tuple.
        problem_of: Why a value cannot be used, in a sentence; None if it can.

    Returns:
        The values, or a sentence that says why a plugin offers none.
    """
    names = tuple(names)
    points = installed(kind) if names else {}
    return {name: _values(points[name], offer, problem_of) for name in names if name in points}


def _values(
    point: EntryPoint, offer: type[T], problem_of: Callable[[T], str | None]
) -> tuple[T, ...] | str:
    value = loaded(point)
    if isinstance(value, str):
        return value
    for each in value:
        if not isinstance(each, offer):
            return f"{point.value} is no {offer.__name__}."
        if (problem := problem_of(each)) is not None:
            return problem
    return tuple(each for each in value if isinstance(each, offer))


def without_output(work: Callable[[], T]) -> T:
    """What ``work`` returns; what it prints is dropped, since stdout may be that of MCP."""
    with _redirecting, redirect_stdout(StringIO()):
        return work()


@cache
def loaded(point: EntryPoint) -> tuple[object, ...] | str:
    """What an entry point names, imported once; what its package raises, in words."""
    try:
        value = without_output(point.load)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the code of others may raise anything
        return described(error)
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)
