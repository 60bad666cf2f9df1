"""Runs calls of tools that only read at the same time, on a few threads."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from qmd.system.cancellation import Cancellation

MAX_TOGETHER = 4
"""The most calls that run at once."""

_LOOK_S = 0.05  # how long to wait before looking whether the person has stopped the run

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def run_together(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], stopped: Callable[[], bool]
) -> Iterator[ResultT]:
    """
    Do the work of each item on a few threads, and give the results in the order of the items.

    Args:
        stopped: Returns whether the person has stopped the run.

    Raises:
        KeyboardInterrupt: The run was stopped. The work that goes on was cancelled.
    """
    cancellation = Cancellation()

    def cancellable(item: ItemT) -> ResultT:
        with cancellation.active():
            return work(item)

    pool = ThreadPoolExecutor(min(MAX_TOGETHER, len(items)), thread_name_prefix="qmd-tool")
    futures: list[Future[ResultT]] = [
        pool.submit(contextvars.copy_context().run, cancellable, item) for item in items
    ]
    try:
        for future in futures:
            while not wait([future], timeout=_LOOK_S).done:
                if stopped():
                    raise KeyboardInterrupt
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        # `wait` alone would wait for ever for work that was cancelled before it began.
        while unfinished := [future for future in futures if not future.done()]:
            cancellation.cancel()
            wait(unfinished, timeout=_LOOK_S)
