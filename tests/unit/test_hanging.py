"""How a paragraph is cut into the lines of a terminal."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.cli.terminal import columns, hanging, paint

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


def test_colours_have_no_width() -> None:
    words = ["word"] * 7
    coloured = " ".join(paint(word, "match", color=True) for word in words)
    assert STYLES.sub("", hanging(coloured, 0, Terminal())) == hanging(
        " ".join(words), 0, Terminal()
    )


@given(st.text("ab 中，。（/-", max_size=200))
def test_nothing_is_lost_and_only_words_are_too_long(text: str) -> None:
    shown = hanging(text, 2, Terminal())
    assert "".join(shown.split()) == "".join(text.split())
    for line in shown.split("\n  "):
        assert columns(line.rstrip()) <= 38 or " " not in line.strip()
