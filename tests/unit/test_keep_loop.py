"""A loop outlives what goes wrong in its turns, and ends when it is told to."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from qmd.errors import DatabaseReplacedError, InputError, QmdError
from qmd.ingest.keep.loop import Loop, LoopStopped

WAIT_S = 60.0


class Turns:
    """A loop whose turns do what the test puts in, one after the other."""

    def __init__(self, **options: object) -> None:
        self.steps: queue.Queue[Callable[[], str | None]] = queue.Queue()
        self.told: queue.Queue[str | None] = queue.Queue()
        defaults: dict[str, object] = {"every_s": 0.0, "retry_s": (0.001, 0.001)}
        self.loop = Loop("test", self._turn, "No work is done", self._tell, **defaults | options)  # type: ignore[arg-type]

    def _tell(self, problem: str | None, cause: QmdError | None) -> None:
        self.told.put(problem)

    def _turn(self) -> str | None:
        return self.steps.get(timeout=WAIT_S)()

    def run(self, *steps: Callable[[], str | None]) -> list[str | None]:
        """What is told of these turns; the last one ends the loop."""
        for step in steps:
            self.steps.put(step)
        self.loop.run()
        return [self.told.get_nowait() for _ in range(self.told.qsize())]


def fail(error: BaseException) -> Callable[[], str | None]:
    def step() -> str | None:
        raise error

    return step


def test_a_failure_is_told_with_its_hint_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    told = Turns().run(
        fail(InputError("The folder is gone.", hint="Mount it.")),
        fail(RuntimeError("secret text")),
        lambda: None,
        lambda: "A person must choose.",
        fail(LoopStopped()),
    )
    assert told == [
        "No work is done: The folder is gone. Mount it.",
        "No work is done: RuntimeError; the log tells more.",
        None,
        "A person must choose.",
    ]
    assert "secret text" in caplog.text


def test_another_database_file_ends_a_loop_unless_it_is_to_wait_for_it() -> None:
    replaced = DatabaseReplacedError("It was replaced.")
    assert Turns().run(fail(replaced)) == []
    waits = Turns(ends_with=())
    assert waits.run(fail(replaced), lambda: None, fail(LoopStopped())) == [
        "No work is done: It was replaced.",
        None,
    ]


def test_a_turn_begins_when_it_is_asked_for_and_not_before() -> None:
    turns = Turns(every_s=None)
    turns.loop.start()
    turns.steps.put(lambda: None)
    assert turns.told.empty()
    turns.loop.wake()
    assert turns.told.get(timeout=WAIT_S) is None
    turns.loop.stop()
    assert turns.told.empty()


def test_the_pause_after_a_failure_ends_by_stop_alone() -> None:
    turns = Turns(retry_s=(3600.0, 3600.0))
    thread = threading.Thread(target=turns.loop.run)
    turns.steps.put(fail(InputError("No.")))
    thread.start()
    turns.told.get(timeout=WAIT_S)
    turns.loop.wake()
    turns.loop.stopping.set()
    thread.join(WAIT_S)
    assert not thread.is_alive()
    assert turns.steps.empty()


def test_a_loop_that_is_stopped_during_a_turn_waits_for_no_other() -> None:
    turns = Turns(every_s=None)
    turns.steps.put(turns.loop.stopping.set)  # returns None
    turns.loop.wake()
    thread = threading.Thread(target=turns.loop.run, daemon=True)
    thread.start()
    thread.join(WAIT_S)
    assert not thread.is_alive()


def test_stop_interrupts_what_a_turn_waits_for() -> None:
    waiting, interrupted = threading.Event(), threading.Event()
    turns = Turns(interrupt=interrupted.set)

    def wait() -> str | None:
        waiting.set()
        assert interrupted.wait(WAIT_S)
        return None

    turns.steps.put(wait)
    turns.loop.start()
    assert waiting.wait(WAIT_S)
    turns.loop.stop()
    assert turns.told.get(timeout=WAIT_S) is None
    assert turns.told.empty()
