"""Draws the progress of a long job on stderr, if stderr is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from qmd import cli

if TYPE_CHECKING:
    from qmd.values import Progress, ProgressCallback


@contextmanager
def progress_bar() -> Iterator[ProgressCallback | None]:
    """Give a callback that draws the progress, or None if stderr is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    with cli.bars.drawn() as draw:
        yield draw


@contextmanager
def progress_bar_if_needed() -> Iterator[ProgressCallback]:
    """As `progress_bar`, but nothing is imported or drawn before the callback is called."""
    with ExitStack() as stack:
        opened: list[ProgressCallback | None] = []

        def draw(tick: Progress) -> None:
            if not opened:
                opened.append(stack.enter_context(progress_bar()))
            if opened[0] is not None:
                opened[0](tick)

        yield draw
