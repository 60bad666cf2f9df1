"""Draws the progress of a long job on stderr, if stderr is a terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.values import Progress, ProgressCallback

_LABELS = {
    "scan": "Scanning",
    "index": "Indexing",
    "words": "Words",
    "backup": "Copying",
    "check": "Checking",
    "cleanup": "Cleaning",
    "migrate": "Updating",
    "embed": "Embedding",
    "model": "Model",
    "bench": "Asking",
    "push": "Pushing",
}

_LONGEST_ITEM = 200  # characters of a file's name, more than a line has


@contextmanager
def progress_bar() -> Iterator[ProgressCallback | None]:
    """Give a callback that draws the progress, or None if stderr is no terminal."""
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        SpinnerColumn,
        TextColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars
    from rich.table import Column

    # The name of a file gets what is left of the line, so nothing else moves with its length.
    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    bars = Bars(
        SpinnerColumn(),
        TextColumn("{task.description:<9}", markup=False),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        TextColumn("left", style="dim"),
        TextColumn("{task.fields[item]}", markup=False, style="dim", table_column=rest),
        console=Console(stderr=True),
        transient=True,
        expand=True,
    )
    with bars:
        yield _drawer(bars)


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


def _drawer(bars: object) -> ProgressCallback:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from qmd.cli.terminal import one_line

    assert isinstance(bars, Bars)
    tasks: dict[str, TaskID] = {}

    def draw(tick: Progress) -> None:
        if tick.stage not in tasks:
            for finished_task in tasks.values():
                bars.update(finished_task, visible=False)
            tasks[tick.stage] = bars.add_task(
                _LABELS.get(tick.stage, tick.stage), total=None, item=""
            )
        bars.update(
            tasks[tick.stage],
            completed=tick.done,
            total=tick.total,
            item=one_line(tick.item[-_LONGEST_ITEM:]),
        )

    return draw
