"""A model that is slow or broken costs a query a bounded time, and soon none."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from qmd.errors import ConfigError, InferenceError, TransientInferenceError
from qmd.models import guard
from qmd.models.guard import Budget, ModelGuard

TINY_S = 0.01
LONG_S = 60.0


class Clock:
    """Time that passes when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def release() -> Iterator[threading.Event]:
    """Ends, at the end of the test, what never would."""
    event = threading.Event()
    yield event
    event.set()


def failing() -> None:
    raise TransientInferenceError("no luck")


def fail(watched: ModelGuard, times: int = 1) -> None:
    for _ in range(times):
        with pytest.raises(InferenceError):
            watched.call(failing, LONG_S)


def test_what_comes_in_time_is_handed_on() -> None:
    assert ModelGuard("The model").call(lambda: 42, LONG_S) == 42


def test_a_call_that_never_ends_is_left_behind(release: threading.Event) -> None:
    with pytest.raises(TransientInferenceError, match="The model has not answered within"):
        ModelGuard("The model").call(lambda: release.wait(LONG_S), TINY_S)


def test_whatever_goes_wrong_arrives_as_an_inference_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watched = ModelGuard("The model")
    with pytest.raises(InferenceError, match="The model failed: ZeroDivisionError"):
        watched.call(lambda: 1 // 0, LONG_S)
    assert "ZeroDivisionError" in caplog.text

    def misconfigured() -> None:
        raise ConfigError("no such server", hint="name one")

    with pytest.raises(InferenceError, match="no such server") as caught:
        watched.call(misconfigured, LONG_S)
    assert caught.value.hint == "name one"


def test_a_model_that_keeps_failing_is_left_alone_for_a_while(clock: Clock) -> None:
    watched = ModelGuard("The model", clock=clock)
    fail(watched, guard.FAILURES)
    asked: list[int] = []
    with pytest.raises(TransientInferenceError, match="is not asked for 15 s more: no luck"):
        watched.call(lambda: asked.append(1), LONG_S)
    assert asked == []
    clock.now += guard.PAUSE_S
    watched.call(lambda: asked.append(1), LONG_S)
    assert asked == [1]


def test_one_failure_is_no_reason_and_an_answer_makes_up_for_it(clock: Clock) -> None:
    watched = ModelGuard("The model", clock=clock)
    for _ in range(3):
        fail(watched, guard.FAILURES - 1)
        assert watched.call(lambda: True, LONG_S)


def test_each_further_failure_doubles_the_pause_up_to_a_limit(clock: Clock) -> None:
    watched = ModelGuard("The model", clock=clock)
    fail(watched, guard.FAILURES)
    for pause in (15, 30, 60, 120, 240, 300, 300):
        with pytest.raises(TransientInferenceError, match=f"not asked for {pause} s more"):
            watched.call(lambda: True, LONG_S)
        clock.now += pause
        fail(watched)


def test_after_the_pause_one_alone_tries(clock: Clock, release: threading.Event) -> None:
    watched = ModelGuard("The model", clock=clock)
    fail(watched, guard.FAILURES)
    clock.now += guard.PAUSE_S
    begun = threading.Event()

    def slow() -> bool:
        begun.set()
        return release.wait(LONG_S)

    trial = threading.Thread(target=lambda: watched.call(slow, LONG_S))
    trial.start()
    assert begun.wait(LONG_S)
    with pytest.raises(TransientInferenceError, match="is not asked"):
        watched.call(lambda: True, LONG_S)
    release.set()
    trial.join(LONG_S)
    assert watched.call(lambda: True, LONG_S)


def test_no_crowd_of_calls_that_never_end(clock: Clock, release: threading.Event) -> None:
    watched = ModelGuard("The model", clock=clock)
    for _ in range(guard.MOST_LEFT_BEHIND):
        with pytest.raises(TransientInferenceError, match="has not answered"):
            watched.call(lambda: release.wait(LONG_S), TINY_S)
        clock.now += guard.LONGEST_PAUSE_S
    with pytest.raises(TransientInferenceError, match="still busy with 4 earlier questions"):
        watched.call(lambda: True, LONG_S)


def test_many_calls_at_once_are_no_crowd(release: threading.Event) -> None:
    watched = ModelGuard("The model")
    together = threading.Barrier(guard.MOST_LEFT_BEHIND + 3)
    found: list[int] = []

    def ask() -> None:
        found.append(watched.call(lambda: together.wait(LONG_S), LONG_S))

    threads = [threading.Thread(target=ask) for _ in range(together.parties)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG_S)
    assert sorted(found) == list(range(together.parties))


def test_calls_of_one_query_share_its_time(clock: Clock) -> None:
    budget = Budget(3.0, clock=clock)
    with budget.spend(0.5) as left_s:
        assert left_s == 1.5
        clock.now += 1
    clock.now += 50  # what is not a model's is not counted
    with budget.spend() as left_s:
        assert left_s == 2.0
        clock.now += 5
    with pytest.raises(TransientInferenceError, match=r"have taken the 3.0 s"), budget.spend():
        raise AssertionError("there was no time left")


def test_a_call_that_fails_has_taken_its_time(clock: Clock) -> None:
    budget = Budget(3.0, clock=clock)
    with pytest.raises(TransientInferenceError, match="no luck"), budget.spend():
        clock.now += 3
        failing()
    with pytest.raises(TransientInferenceError, match="have taken"), budget.spend():
        raise AssertionError("there was no time left")
