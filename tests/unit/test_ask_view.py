"""What `qmd ask` shows: the text of an answer while it comes, and cards."""

from __future__ import annotations

import io
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from qmd.agent.parser import AnswerText, parse
from qmd.cli.ask_view import card
from qmd.system import clock

MOMENT = "2026-11-22T06:30:05.000Z"
BLOCK = '```json:tool\n{"tool": "a", "params": {"b": "```"}}\n```'

fragments = st.sampled_from(
    [
        *(BLOCK, f"\n{BLOCK}\n", "```json:tool", "```json", "```", "````", "`", "json:tool", "\n"),
        *("\r\n", " ", "text", "你好", "> ", '{"tool": "a"', "```json:tools ", "`````json:tool\n{"),
    ]
)


@settings(deadline=None)
@given(parts=st.lists(fragments, max_size=12), size=st.integers(1, 9))
def test_what_is_shown_piece_by_piece_is_the_text_of_the_answer(
    parts: list[str], size: int
) -> None:
    answer = "".join(parts)
    shown = AnswerText()
    early = "".join(shown.feed(answer[n : n + size]) for n in range(0, len(answer), size))
    parsed = parse(answer)
    assert (early + shown.rest(parsed)).rstrip() == parsed.untrimmed.rstrip()
    # What was shown early never has to be taken back.
    assert parsed.untrimmed.startswith(early)


def test_text_does_not_wait_for_the_end() -> None:
    shown = AnswerText()
    assert shown.feed("Hello, ") == "Hello, "
    assert shown.feed("world``") == "world"
    assert shown.feed("`py") == "```py"
    assert shown.feed(f"\n{BLOCK}") == "\n"
    assert shown.feed("\nand more") == ""
    assert shown.rest(parse(f"Hello, world```py\n{BLOCK}\nand more")) == "and more"


def shown_card(
    tool: str, params: dict[str, Any], result: str, *, success: bool = True, width: int = 60
) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    call = {"tool": tool, "params": params, "at": MOMENT, "duration_ms": 1234}
    end = {"success": success, "result": result[:4000], "characters": len(result)}
    console.print(card(call | end))
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert isinstance(text, str)
    return text


def test_a_card_holds_name_parameters_result_and_time() -> None:
    text = shown_card(
        "search", {"query": "数据库", "limit": 3, "tags": ["a"]}, "Found [b]1[/b] result"
    )
    lines = text.splitlines()
    assert lines[0].startswith("╭─ ✅ search ─")
    assert [line.strip("│ ") for line in lines[1:4]] == ["query 数据库", "limit 3", 'tags  ["a"]']
    assert "Found [b]1[/b] result" in text
    assert lines[-1].endswith(f" {clock.local(MOMENT):%H:%M:%S} · 1.23 s ─╯")


def test_a_card_is_short_however_long_the_result() -> None:
    text = shown_card("get", {"file": "x" * 5000}, "line\n" * 10_000)
    assert len(text.splitlines()) < 30
    assert "… 4,400 more characters" in text
    assert "… 49,960 more characters" in text


@pytest.mark.parametrize("width", [8, 20, 500])
def test_a_card_fits_terminals_of_any_width(width: int) -> None:
    text = shown_card("a", {"b": "c"}, "no", success=False, width=width)
    assert max(map(len, text.splitlines())) <= width
