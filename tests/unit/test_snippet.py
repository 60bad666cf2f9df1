"""The lines that show why a document was found."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.parse.lines import line_starts, split_lines
from qmd.search.present import MAX_CHARS, make_snippet, needles
from qmd.search.query import parse_string


def snippet(query: str, text: str, span: tuple[int, int] | None = None) -> tuple[str, int]:
    return make_snippet(text, 0, needles(parse_string(query)), span)


def test_the_best_line_comes_with_its_neighbours_and_true_numbers() -> None:
    text = "one\ntwo\nthe red boat\nfour\nfive\nsix\n"
    assert snippet("red boat", text) == ("2: two\n3: the red boat\n4: four\n5: five", 3)


def test_line_numbers_are_those_of_an_editor() -> None:
    text = "one\r\ntwo\rthree\u2028still three\n\nneedle\x0cstill five\n"
    assert snippet("needle", text)[1] == 5
    assert "5: needle\x0cstill five" in snippet("needle", text)[0].split("\n")


def test_numbers_count_from_the_start_of_the_file_with_its_frontmatter() -> None:
    text = "---\ntitle: x\n---\n\nneedle\n"
    assert make_snippet(text, text.index("\nneedle"), needles(parse_string("needle"))).line == 5


def test_a_line_with_more_of_the_query_wins() -> None:
    text = "数据\n库存\n数据库的迁移\n迁移\n"
    assert snippet("数据库迁移", text)[1] == 3
    assert snippet("boat red", "red\nboat\nred boat\n")[1] == 3


def test_a_word_such_as_the_counts_less_than_one_that_tells_something() -> None:
    text = "what is in it for the boat\na needle\n"
    assert snippet("what is the needle for", text)[1] == 2
    assert snippet('"what is"', "a needle\n\nwhat is in it\n")[1] == 3
    assert snippet("what is the", text)[1] == 1


def test_a_long_line_is_cropped_around_the_word() -> None:
    text = "x " * 500 + "needle" + " y" * 500
    shown, line = snippet("needle", text)
    assert line == 1
    assert len(shown) <= MAX_CHARS
    assert shown.startswith("1: …")
    assert shown.endswith("…")
    assert "needle" in shown


@pytest.mark.parametrize("wide", ["ﬁ" * 300, "İ" * 300, "㎏" * 400])
def test_a_word_is_shown_also_behind_signs_that_folding_makes_longer(wide: str) -> None:
    assert "needle" in snippet("needle", wide + " needle " + wide)[0]


def test_without_a_matching_line_the_chunk_starts_the_snippet() -> None:
    text = "one\ntwo\nthree\nfour\n"
    start = text.index("three")
    assert snippet("absent", text, (start, len(text)))[1] == 3
    assert snippet("absent", text)[1] == 1


def test_an_empty_document_has_an_empty_snippet() -> None:
    assert snippet("needle", "") == ("", 1)


NOTE = """\
---
title: Red boat
aliases:
  - Dinghy
author: Li Lei
status: draft
---

# *Red* boat

It sails to the islands.

## Sails and masts

Two of each.
"""


def named_snippet(query: str, text: str = NOTE, span: tuple[int, int] | None = None) -> int:
    start = text.index("---\n\n") + 4
    names = ["Red boat", "2025 plans", "Dinghy"]
    return make_snippet(text, start, needles(parse_string(query)), span, names).line


def test_a_hit_by_its_names_shows_the_first_paragraph() -> None:
    for query in ("red boat", "dinghy", "2025 plans", "boat nowhere"):
        assert named_snippet(query) == 11


def test_body_then_headings_then_frontmatter_show_what_matched() -> None:
    assert named_snippet("red islands") == 11
    assert named_snippet("masts") == 13
    assert named_snippet("li lei") == 5
    assert named_snippet("draft cargo") == 6
    assert named_snippet("draft boat") == 11  # the title holds as much of it


def test_a_heading_that_repeats_the_title_is_no_match_however_it_is_underlined() -> None:
    text = "---\ntitle: Red boat\n---\n\nRed boat\n========\n\n\nIt floats.\n"
    assert named_snippet("red boat", text) == 9


def test_a_hit_by_meaning_shows_its_chunk_and_a_hit_by_name_the_lead() -> None:
    start = NOTE.index("## Sails")
    assert named_snippet("nowhere", span=(start, len(NOTE))) == 13
    assert named_snippet("dinghy", span=(start, len(NOTE))) == 11


def test_the_body_is_shown_without_the_frontmatter_above_it() -> None:
    text = "---\nauthor: Li Lei\n---\nIt sails.\n"
    start = text.index("It sails")
    assert make_snippet(text, start, needles(parse_string("sails"))).text == "4: It sails."
    assert make_snippet(text, start, needles(parse_string("lei"))).text.startswith(
        "1: ---\n2: author"
    )


def test_a_note_of_names_alone_has_a_snippet() -> None:
    for text in ("---\ntitle: Red boat\n---\n\n", "---\ntitle: Red boat\n---\n\n# Red boat\n"):
        assert named_snippet("red boat", text) in {1, 4, 5}


LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=80),
        st.sampled_from(["needle", "数据库", "needle " * 90, "库" * 400, "", "İ" * 310 + "needle"]),
    ),
    max_size=8,
)


@settings(deadline=None)
@given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["needle", "数据库 x", "->"]))
def test_every_shown_line_is_that_line_of_the_source(
    lines: list[str], end: str, query: str
) -> None:
    text = end.join(lines)
    source = split_lines(text)
    assert len(line_starts(text)) == len(source)
    shown, best = snippet(query, text)
    assert len(shown) <= MAX_CHARS
    if not source:
        assert shown == ""
        return
    numbers = []
    for line in shown.split("\n"):
        number, _, content = line.partition(": ")
        numbers.append(int(number))
        whole = source[int(number) - 1]
        if content != whole:
            piece = content.removeprefix("…").removesuffix("…")
            assert piece and piece in whole and piece != content
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    assert best in numbers


def test_a_heading_is_not_left_alone_before_a_long_paragraph() -> None:
    text = "# Exception handling\n\n" + "It catches what is thrown. " * 40 + "\n"
    shown, line = snippet("exception", text)
    assert line == 1
    assert shown.startswith("1: # Exception handling\n2: \n3: It catches")
    assert shown.endswith("…")
    assert len(shown) <= MAX_CHARS


@pytest.mark.parametrize("filler", ["plain words\n", "数据库 words\n"])
def test_a_word_at_the_end_of_a_very_long_document_is_shown(filler: str) -> None:
    text = filler * (2_400_000 // len(filler)) + "the needle\n"
    shown, line = snippet("needle", text)
    assert line == text.count("\n")
    assert f"{line}: the needle" in shown
