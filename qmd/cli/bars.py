"""The bars that `qmd.cli.terminal` draws; rich takes a while to load."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as Bars
from rich.table import Column

from qmd.cli.terminal import one_line

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
    "ocr": "Reading",
    "model": "Model",
    "bench": "Asking",
    "push": "Pushing",
    "import": "Importing",
}

_LONGEST_ITEM = 200  # characters of a file's name, more than a line has


@contextmanager
def drawn_progress() -> Iterator[ProgressCallback]:
    """Give a callback that draws the progress on stderr."""
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


def _drawer(bars: Bars) -> ProgressCallback:
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
