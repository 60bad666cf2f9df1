"""Merging two edits of a note: what holds for all texts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.files.edits.diff import conflicts, kept_lines, merge, merged_text

LINES = st.lists(st.sampled_from(["a", "b", "c", "", "# d"]), max_size=12)
TEXTS = st.builds(lambda lines, end: "\n".join(lines) + end, LINES, st.sampled_from(["", "\n"]))


@given(TEXTS | st.none(), TEXTS, TEXTS)
def test_the_parts_hold_each_text_whole(base: str | None, mine: str, theirs: str) -> None:
    parts = merge(base, mine, theirs)
    assert "".join(part.mine for part in parts) == mine
    assert "".join(part.theirs for part in parts) == theirs
    if base is not None:
        assert "".join(part.base for part in parts) == base


@given(TEXTS, TEXTS)
def test_an_edit_of_one_side_is_taken(base: str, changed: str) -> None:
    for mine, theirs in ((changed, base), (base, changed), (changed, changed)):
        parts = merge(base, mine, theirs)
        assert conflicts(parts) == 0
        assert merged_text(parts) == changed


@given(TEXTS, TEXTS, TEXTS)
def test_both_sides_are_treated_alike(base: str, mine: str, theirs: str) -> None:
    parts, turned = merge(base, mine, theirs), merge(base, theirs, mine)
    assert conflicts(parts) == conflicts(turned)
    if not conflicts(parts):
        assert merged_text(parts) == merged_text(turned)


@given(TEXTS | st.none(), TEXTS, TEXTS)
def test_who_always_chooses_one_side_loses_nothing_of_it(
    base: str | None, mine: str, theirs: str
) -> None:
    parts = merge(base, mine, theirs)
    chosen = merged_text(parts, dict.fromkeys(range(conflicts(parts)), "both"))
    for part in parts:
        if part.kind != "theirs":
            assert part.mine in chosen
        if part.kind != "mine":
            assert part.theirs in chosen


@given(LINES, LINES, LINES, LINES)
def test_edits_on_both_sides_of_a_line_that_stays_fit_together(
    first: list[str], last: list[str], my_first: list[str], their_last: list[str]
) -> None:
    middle = ["only once"]
    base, mine, theirs = (
        "".join(f"{line}\n" for line in lines)
        for lines in (
            [*first, *middle, *last],
            [*my_first, *middle, *last],
            [*first, *middle, *their_last],
        )
    )
    parts = merge(base, mine, theirs)
    assert conflicts(parts) == 0
    assert merged_text(parts) == "".join(f"{line}\n" for line in [*my_first, *middle, *their_last])


@given(TEXTS, TEXTS)
def test_kept_lines_are_equal_and_in_order(before: str, after: str) -> None:
    pairs = kept_lines(before, after)
    old, new = before.split("\n"), after.split("\n")
    assert all(old[i] == new[j] for i, j in pairs)
    assert all(a < c and b < d for (a, b), (c, d) in itertools.pairwise(pairs))


def test_a_long_text_is_divided_at_lines_that_occur_once() -> None:
    base = [f"line {number}\n" for number in range(2000)]
    mine, theirs = base.copy(), base.copy()
    mine[10] = "mine\n"
    mine[1500:1500] = ["mine, too\n"]
    theirs[500:900] = ["theirs\n"]
    theirs[-10] = "the file's\n"
    parts = merge("".join(base), "".join(mine), "".join(theirs))
    assert [part.kind for part in parts if part.kind != "same"] == [
        "mine",
        "theirs",
        "mine",
        "theirs",
    ]


def test_different_changes_of_a_line_are_a_conflict() -> None:
    parts = merge("a\nb\nc\n", "a\nmine\nc\n", "a\ntheirs\nc\n")
    assert [part.kind for part in parts] == ["same", "conflict", "same"]
    assert merged_text(parts, {0: "theirs"}) == "a\ntheirs\nc\n"
    assert merged_text(parts, {0: "both"}) == "a\nmine\ntheirs\nc\n"


@pytest.mark.unmeasured
def test_the_time_for_a_long_text_grows_with_its_length() -> None:
    """A hundred thousand lines of which all stay but one are one merge of a moment."""
    base = [f"line {number}\n" for number in range(100_000)]
    mine = [*base[:500], "mine\n", *base[500:]]
    parts = merge("".join(base), "".join(mine), "".join(base))
    assert [part.kind for part in parts] == ["same", "mine", "same"]
