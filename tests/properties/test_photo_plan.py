"""What a change means for tags, people and texts, for any photo and any change."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import PhotoError
from qmd.files.photos import photo_plan
from qmd.files.photos.exiftool import escape
from qmd.files.photos.photo_plan import DESCRIPTIONS, KEYWORDS, LOCATIONS, PEOPLE, SUBJECT
from qmd.values import PhotoChange

names = st.lists(st.sampled_from("abcdef"), max_size=4).map(tuple)
optional_names = st.none() | names
texts = st.none() | st.sampled_from(["old", "new", "", " \n"])
kinds = st.sampled_from(["JPG", "PNG", "HEIC"])
changes = st.builds(PhotoChange, optional_names, optional_names, texts, texts)
photos = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys((SUBJECT, KEYWORDS, PEOPLE), names),
        **dict.fromkeys((*DESCRIPTIONS, *LOCATIONS), st.just(("was",))),
    },
)
quick = settings(deadline=None)


def applied(present, plan):  # type: ignore[no-untyped-def]
    return {**present, **plan.target}


@quick
@given(photos, changes, kinds)
def test_keywords_are_the_tags_and_the_people(present, change, kind) -> None:  # type: ignore[no-untyped-def]
    plan = photo_plan.plan(present, change, kind, overwrite=True)
    if change.tags is None and change.people is None:
        assert SUBJECT not in plan.target and PEOPLE not in plan.target
        return
    old_people = present.get(PEOPLE, ())
    old_tags = [name for name in photo_plan.keywords(present, kind) if name not in old_people]
    tags = old_tags if change.tags is None else change.tags
    people = old_people if change.people is None else change.people
    assert set(plan.target[SUBJECT]) == {*tags, *people}
    assert len(plan.target[SUBJECT]) == len(set(plan.target[SUBJECT]))
    assert (KEYWORDS in plan.target) == (kind == "JPG")
    if change.people is not None:
        assert plan.target[PEOPLE] == tuple(dict.fromkeys(change.people))


@quick
@given(photos, changes, kinds)
def test_without_overwriting_lists_are_united_in_order(present, change, kind) -> None:  # type: ignore[no-untyped-def]
    plan = photo_plan.plan(present, change, kind, overwrite=False)
    if change.tags is not None or change.people is not None:
        old = photo_plan.keywords(present, kind)
        new = plan.target[SUBJECT]
        assert {*old, *(change.tags or ()), *(change.people or ())} <= set(new)
        people = dict.fromkeys((*present.get(PEOPLE, ()), *(change.people or ())))
        tags = [name for name in dict.fromkeys((*old, *(change.tags or ()))) if name not in people]
        assert new == (*tags, *people)
    for name, value, fields in (
        ("description", change.description, DESCRIPTIONS),
        ("location", change.location, LOCATIONS),
    ):
        there = any(field in present for field in fields)
        assert (name in plan.kept) == (value is not None and there)
        assert not (there and set(fields) & set(plan.target))


@quick
@given(photos, changes, kinds, st.booleans())
def test_a_second_time_changes_nothing(present, change, kind, overwrite) -> None:  # type: ignore[no-untyped-def]
    plan = photo_plan.plan(present, change, kind, overwrite=overwrite)
    after = applied(present, plan)
    again = photo_plan.plan(after, change, kind, overwrite=overwrite)
    assert again.changed(after) == {}


@quick
@given(photos, kinds, st.booleans())
def test_no_field_means_no_change(present, kind, overwrite) -> None:  # type: ignore[no-untyped-def]
    assert photo_plan.plan(present, PhotoChange(), kind, overwrite=overwrite).target == {}


@quick
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_an_escaped_value_is_a_word_of_plain_letters(value: str) -> None:
    from html import unescape

    escaped = escape(value)
    assert escaped.isascii()
    assert all(char.isalnum() or char in "&#;" for char in escaped)
    if "\r" not in value and not any("\x7f" < char < "\xa0" for char in value):
        # Of the rest Python's own HTML rules make something else.
        legal = "".join(c for c in value if c.isprintable() or c in "\n\t ")
        assert unescape(escape(legal)) == legal


@pytest.mark.parametrize(
    "change",
    [
        PhotoChange(tags=("",)),
        PhotoChange(people=("a", " \t\u3000")),
        PhotoChange(tags=("t",) * 51),
        PhotoChange(people=("p",) * 51),
        PhotoChange(tags=("t" * 101,)),
        PhotoChange(description="d" * 10_001),
        PhotoChange(location="l" * 1_001),
        PhotoChange(tags=("a\0b",)),
        PhotoChange(description="\x1b[31m"),
        PhotoChange(description="\ud800"),
        PhotoChange(description="\uffff"),
    ],
)
def test_what_metadata_cannot_hold_is_refused(change: PhotoChange) -> None:
    with pytest.raises(PhotoError) as caught:
        photo_plan.check(change)
    assert caught.value.problem == "invalid_metadata"


def test_the_limits_themselves_are_allowed() -> None:
    photo_plan.check(
        PhotoChange(("标" * 100,) * 50, ("😀" * 100,) * 50, "描\n" * 5000, "地" * 1000)
    )
