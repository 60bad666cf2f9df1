"""The table of common words has each common beginning once, and reads each term once for it."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from qmd.store.sqlite.common_word_build import (
    RARE_AT_ONCE,
    Close,
    Open,
    ReadTerms,
    going_on,
    plan,
)

LEAST = 10
terms = st.dictionaries(st.text("ab数", min_size=1, max_size=5), st.integers(1, 12), max_size=30)


@given(terms)
def test_words_and_beginnings_are_those_that_enough_documents_hold(held: dict[str, int]) -> None:
    steps = plan(sorted(held.items()), LEAST)
    words = {step.word for step in steps if isinstance(step, ReadTerms)} - {None}
    assert words == {term for term, documents in held.items() if documents >= LEAST}
    sums: Counter[str] = Counter()
    followers: dict[str, set[str]] = {}
    for term, documents in held.items():
        for length in range(1, len(term) + 1):
            sums[term[:length]] += documents
            followers.setdefault(term[:length], set()).add(term[length : length + 1])
    expected = {each for each in sums if sums[each] >= LEAST and len(followers[each]) > 1}
    assert {step.beginning for step in steps if isinstance(step, Open)} == expected


@given(terms)
def test_each_beginning_reads_its_terms_and_no_others(held: dict[str, int]) -> None:
    inside: list[str] = []
    read: dict[str, list[str]] = {}
    for step in plan(sorted(held.items()), LEAST):
        if isinstance(step, Open):
            inside.append(step.beginning)
        elif isinstance(step, Close):
            assert inside.pop() == step.beginning
            assert read[step.beginning] == sorted(
                term for term in held if term.startswith(step.beginning)
            )
        else:
            of_step = [term for term in sorted(held) if step.first <= term <= step.last]
            for beginning in inside:
                read.setdefault(beginning, []).extend(of_step)
    assert not inside


@given(terms)
def test_a_plan_goes_on_with_the_character_that_was_not_finished(held: dict[str, int]) -> None:
    steps = plan(sorted(held.items()), LEAST)
    assert going_on(steps, None) == steps
    assert going_on(steps, "b*") == [step for step in steps if step[0] >= "b"]


def test_terms_that_are_no_words_are_read_in_bounded_steps() -> None:
    """Each step's occurrences are in memory at once; a term more may pass the limit."""
    held = {f"a{number}": RARE_AT_ONCE // 2 for number in range(5)}
    steps = plan(sorted(held.items()), RARE_AT_ONCE)
    assert steps == [
        Open("a"),
        ReadTerms("a0", "a1"),
        ReadTerms("a2", "a3"),
        ReadTerms("a4", "a4"),
        Close("a"),
    ]
