"""Lines of Markdown as the excerpts of the page show them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.server.page.note_text import has_signs, plain_line


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("## Next steps", "Next steps"),
        ("#tag and C# stay", "#tag and C# stay"),
        ("> [!warning] Before an upgrade", "Before an upgrade"),
        ("> > twice quoted", "twice quoted"),
        ("- [ ] paint the boat", "☐ paint the boat"),
        ("  - [x] done", "  ☑ done"),
        ("  * milk", "milk"),
        ("1. Stop the service", "1. Stop the service"),
        ("- ", "- "),
        ("see [[Backups#Restore]] and [[plan|the plan]]", "see Backups > Restore and the plan"),
        ("see [the manual](https://example.com/a) ![map](m.png)", "see the manual map"),
        ("**bold**, ==marked==, ~~gone~~ and `code`", "bold, marked, gone and code"),
        ("2 ** 3 == 8 and a[0](x", "2 ** 3 == 8 and a[0](x"),
        ("---", ""),
        ("* * *", ""),
        ("| milk | **2 l** |  |", "milk · 2 l"),
        ("|[[Backups\\|the tapes]]|a \\| b|", "the tapes · a | b"),
        ("| --- | :-: |", ""),
        ("|--|", ""),
        ("ls | wc -l", "ls | wc -l"),
        ("```bash", ""),
        ("一行**中文**，见[[数据库备份]]。", "一行中文，见数据库备份。"),
    ],
)
def test_signs_of_markdown_are_left_out(line: str, shown: str) -> None:
    assert plain_line(line) == shown


@given(st.text(alphabet="ab 字#>-=_", max_size=60))
def test_words_stay(line: str) -> None:
    letters = [sign for sign in line if sign.isalnum()]
    assert [sign for sign in plain_line(line) if sign.isalnum()] == letters


@pytest.mark.parametrize(
    ("query", "expected"), [("[[Plan", True), ("a == b", True), ("#a b", False)]
)
def test_a_query_for_signs_is_noticed(query: str, expected: bool) -> None:
    assert has_signs(query) is expected
