"""How a paragraph is cut into the lines of a terminal."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.cli.terminal import Wrapping, columns, hanging, paint

STYLES = re.compile(r"\x1b\[[0-9;]*m")


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")


def test_lines_begin_below_the_first_character() -> None:
    text = "one line of a note that has no room in forty columns"
    assert hanging(text, 4, Terminal()) == (
        "one line of a note that has no room\n    in forty columns"
    )
    assert hanging(text, 4, io.StringIO()) == text


def test_chinese_lines_end_after_any_character_but_begin_with_no_punctuation() -> None:
    lines = hanging("备份" * 9 + "完成。每天夜里两点。", 0, Terminal()).split("\n")
    assert lines == ["备份" * 9 + "完", "成。每天夜里两点。"]


def test_colours_have_no_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    words = ["word"] * 7
    coloured = " ".join(paint(word, "match") for word in words)
    assert STYLES.sub("", hanging(coloured, 0, Terminal())) == hanging(
        " ".join(words), 0, Terminal()
    )


@given(st.text("ab 中，。（/-", max_size=200))
def test_nothing_is_lost_and_only_words_are_too_long(text: str) -> None:
    shown = hanging(text, 2, Terminal())
    assert "".join(shown.split()) == "".join(text.split())
    for line in shown.split("\n  "):
        assert columns(line.rstrip()) <= 38 or " " not in line.strip()


WORDS = st.lists(
    st.sampled_from(
        ["a", "word", "- ", "1. ", "> ", "\n", " ", "备份，", "完成。", "longer-word", "```\n"]
    ),
    max_size=60,
)  # fmt: skip


@given(WORDS, st.integers(1, 7))
def test_a_text_that_arrives_in_pieces_is_wrapped_as_a_whole_one(
    parts: list[str], size: int
) -> None:
    text = "".join(parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("COLUMNS", "40")
        patch.setattr("sys.stdout", Terminal())
        whole, pieces = Wrapping(), Wrapping()
        wrapped = whole.feed(text) + whole.end()
        fed = [pieces.feed(text[at : at + size]) for at in range(0, len(text), size)]
        assert "".join(fed) + pieces.end() == wrapped
    if "备" not in text and "完" not in text:
        assert wrapped.split() == text.split()
    assert "".join(wrapped.split()) == "".join(text.split())
    if "```" not in text:
        words = max((columns(word) for word in text.split()), default=0)
        assert all(columns(line) <= max(40, words) for line in wrapped.split("\n"))


def test_a_list_item_goes_on_below_its_first_word_and_code_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys.stdout", Terminal())
    code = "```\nqmd search one two three four five six seven eight nine\n```\n"
    wrapping = Wrapping()
    shown = wrapping.feed(f"- the box with the tapes is in the basement\n{code}end")
    assert shown + wrapping.end() == (f"- the box with the tapes is in the \n  basement\n{code}end")
