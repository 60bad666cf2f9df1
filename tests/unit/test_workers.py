"""Blocking calls beside an event loop: their number, their order, their time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import anyio
import pytest

from qmd.server.workers import (
    MAX_UNANSWERED_BYTES,
    MAX_UNREAD_BYTES,
    Backlog,
    CallQueue,
    TooBusyError,
    current_backlog,
)

WAIT_S = 60.0


class Gate:
    """A call that says when it began, and ends when it may."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.began = threading.Semaphore(0)
        self.go_on = threading.Event()
        self.running = self.most = 0

    def call(self) -> int:
        with self.lock:
            self.running += 1
            self.most = max(self.most, self.running)
        self.began.release()
        assert self.go_on.wait(WAIT_S)
        with self.lock:
            self.running -= 1
        return 7


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.go_on.set()


async def began(gate: Gate) -> bool:
    return await anyio.to_thread.run_sync(lambda: gate.began.acquire(timeout=WAIT_S))


@pytest.mark.parametrize("width", [1, 3])
def test_so_many_run_at_once_and_no_more(gate: Gate, width: int) -> None:
    workers = CallQueue(width, max_waiting=100)
    results: list[int] = []

    async def ask() -> None:
        results.append(await workers.run(gate.call, timeout_s=WAIT_S))

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            for _ in range(10):
                tasks.start_soon(ask)
            for _ in range(width):
                assert await began(gate)
            gate.go_on.set()

    anyio.run(run)
    assert (results, gate.most) == ([7] * 10, width)
    assert workers.wait_until_idle(0)


def test_a_call_that_was_given_up_keeps_its_place_until_it_ends(
    gate: Gate, monkeypatch: pytest.MonkeyPatch
) -> None:
    workers = CallQueue(1, max_waiting=100)
    never = threading.Event()

    async def run() -> None:
        loop = asyncio.get_running_loop()
        call = asyncio.ensure_future(workers.run(gate.call, timeout_s=WAIT_S))
        assert await began(gate)
        clock = loop.time
        monkeypatch.setattr(loop, "time", lambda: clock() + WAIT_S)  # its time is up
        with pytest.raises(TimeoutError):
            await call
        assert not workers.wait_until_idle(0)
        with pytest.raises(TimeoutError):  # the next one never begins
            await workers.run(never.set, timeout_s=0.02)
        gate.go_on.set()
        assert await workers.run(lambda: 8, timeout_s=WAIT_S) == 8

    anyio.run(run)
    assert not never.is_set()
    assert gate.most == 1


def test_one_more_than_may_wait_is_refused(gate: Gate) -> None:
    workers = CallQueue(1, max_waiting=1)

    async def run() -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(lambda: workers.run(gate.call, timeout_s=WAIT_S))
            assert await began(gate)
            tasks.start_soon(lambda: workers.run(gate.call, timeout_s=WAIT_S))
            await anyio.lowlevel.checkpoint()
            with pytest.raises(TooBusyError):
                await workers.run(gate.call, timeout_s=WAIT_S)
            gate.go_on.set()

    anyio.run(run)


def test_a_call_of_a_client_that_reads_no_replies_waits_without_a_place(gate: Gate) -> None:
    workers = CallQueue(1, max_waiting=1)

    async def run() -> None:
        backlog = Backlog()
        backlog.replied(MAX_UNREAD_BYTES + 1)
        held: list[int] = []

        async def ask() -> None:
            current_backlog.set(backlog)
            held.append(await workers.run(gate.call, timeout_s=WAIT_S))

        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(ask)
                for _ in range(10):
                    await anyio.lowlevel.checkpoint()
            assert await workers.run(lambda: 8, timeout_s=WAIT_S) == 8  # that of another client
            assert gate.most == 0
            gate.go_on.set()
            # as the thread does that writes what the client reads
            await anyio.to_thread.run_sync(backlog.sent, MAX_UNREAD_BYTES + 1)
        assert held == [7, 7, 7]

    anyio.run(run)


def test_nothing_is_read_while_too_much_waits_and_a_client_that_has_hung_up_ends_that() -> None:
    async def run() -> None:
        backlog = Backlog()
        for more, less, size in (
            (backlog.read, backlog.answered, MAX_UNANSWERED_BYTES),
            (backlog.replied, backlog.sent, MAX_UNREAD_BYTES),
        ):
            more(size)
            assert backlog.wait_for_room(lambda: False, patience_s=0)
            more(1)
            assert not backlog.wait_for_room(lambda: True, patience_s=0)
            less(size + 1)
            assert backlog.wait_for_room(lambda: True, patience_s=0)

    anyio.run(run)


def test_an_error_is_the_callers_and_frees_the_place() -> None:
    workers = CallQueue(1, max_waiting=1)

    def fail() -> None:
        raise KeyError("x")

    async def run() -> None:
        for _ in range(3):
            with pytest.raises(KeyError):
                await workers.run(fail, timeout_s=WAIT_S)
        assert await workers.run(lambda: 1, timeout_s=WAIT_S) == 1

    anyio.run(run)


def test_one_after_the_other_on_several_event_loops() -> None:
    workers = CallQueue(2, max_waiting=1)

    async def run() -> int:
        return await workers.run(lambda: 5, timeout_s=WAIT_S)

    assert [anyio.run(run), anyio.run(run)] == [5, 5]
