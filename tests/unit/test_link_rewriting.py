"""Which links of a note a move rewrites, and how."""

from __future__ import annotations

import json

import pytest

from qmd.files.moved_links import LinkTree, Move, rewrite_canvas, rewrite_note
from qmd.ingest.rules import LinkFormat

FILES = ("a/Old.md", "src.md", "b/Other.md", "c/Other.md", "pic.png")


def move(new: str, format_: LinkFormat | None = None, files: tuple[str, ...] = FILES) -> Move:
    after = [new if path == "a/Old.md" else path for path in files]
    return Move(LinkTree(files), LinkTree(after), "a/Old.md", new, format_)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[[Old]]", "[[New]]"),
        ("![[old#Heading#Sub|shown]]", "![[New#Heading#Sub|shown]]"),
        ("[[a/Old.md#^block]]", "[[New#^block]]"),
        ("| [[Old\\|cell]] |", "| [[New\\|cell]] |"),
        ("[x](a/Old.md)", "[x](b/New.md)"),
        ("[x](./a/Old.md#part \"title\")", "[x](./b/New.md#part \"title\")"),
        ("[x](</a/Old>)", "[x](</b/New>)"),
        ("[x][r] and [r]\n\n[r]: a/Old.md 'T'\n", "[x][r] and [r]\n\n[r]: b/New.md 'T'\n"),
        ('---\nup: "[[Old]]"\n---\n', '---\nup: "[[New]]"\n---\n'),
        ('---\nup:\n  - "[[a/Old|x]]"\n---\n', '---\nup:\n  - "[[New|x]]"\n---\n'),
        ("`[[Old]]`\n\n```\n[[Old]]\n```\n%% [[Old]] %%\n", None),
        ("[[Other]] [[Nothing]] [[#Heading]] [w](https://example.org/a/Old.md)", None),
    ],
)  # fmt: skip
def test_the_path_of_each_kind_of_link_is_rewritten_and_nothing_else(
    before: str, after: str | None
) -> None:
    assert rewrite_note(before, move("b/New.md"), "src.md").text == (
        before if after is None else after
    )


def test_a_wikilink_that_still_leads_there_stays() -> None:
    text = "[[Old]] [[old|x]] ![[Old#h]]\r\n"
    assert rewrite_note(text, move("d/e/Old.md"), "src.md").text == text


def test_the_whole_path_is_written_where_the_name_alone_is_not_unique() -> None:
    assert rewrite_note("[[Old]]", move("d/Other.md"), "src.md").text == "[[d/Other]]"


@pytest.mark.parametrize(
    ("format_", "link"),
    [("shortest", "[[New]]"), ("absolute", "[[b/New]]"), ("relative", "[[../b/New]]")],
)
def test_the_format_of_the_vault_is_followed(format_: LinkFormat, link: str) -> None:
    assert rewrite_note("[[Old]]", move("b/New.md", format_), "c/Other.md").text == link


@pytest.mark.parametrize("format_", ["shortest", "absolute", "relative"])
def test_a_markdown_link_from_the_root_of_a_vault_keeps_its_slash(format_: LinkFormat) -> None:
    text = "[x](/a/Old.md#h) [x](/a/Old) ![](</a/Old.md>) [r]\n\n[r]: /a/Old.md\n"
    result = rewrite_note(text, move("b/New.md", format_), "c/Other.md")
    assert result.text == text.replace("/a/Old", "/b/New")


def test_a_link_that_the_new_name_would_catch_keeps_its_meaning() -> None:
    # Below the folder of the note comes first: the moved note would be [[Other]] for c/x/src.md.
    files = ("a/Old.md", "b/Other.md", "c/src.md")
    result = rewrite_note("[[Other]] [[Old]]", move("c/Other.md", files=files), "c/src.md")
    assert result.text == "[[b/Other]] [[c/Other]]"


def test_the_links_of_the_moved_note_itself_are_adjusted() -> None:
    text = "[o](../b/Other.md) ![p](../pic.png) [[Old#h]] [[../src]] [me](Old.md)"
    result = rewrite_note(text, move("x/y/New.md"), "a/Old.md", "x/y/New.md")
    assert result.text == (
        "[o](../../b/Other.md) ![p](../../pic.png) [[New#h]] [[../../src]] [me](New.md)"
    )


def test_spaces_and_signs_are_encoded_as_they_were() -> None:
    new = move("b/Ünï (1) #2.md")
    assert rewrite_note("[x](a/Old.md)", new, "src.md").text == "[x](b/Ünï%20%281%29%20%232.md)"
    assert rewrite_note("[x](<a/Old.md>)", new, "src.md").text == "[x](<b/Ünï (1) %232.md>)"


def test_a_name_that_a_wikilink_cannot_hold_is_reported() -> None:
    result = rewrite_note("one\n[[Old]]\n", move("b/New #2.md"), "src.md")
    assert result.text == "one\n[[Old]]\n"
    assert [(link.line, link.link) for link in result.left] == [(2, "[[Old]]")]


def test_a_quote_in_the_new_name_does_not_end_a_property() -> None:
    text = "---\na: '[[Old]]'\nb: \"[[Old]]\"\n---\n[[Old]]\n"
    result = rewrite_note(text, move("b/Bob's.md"), "src.md")
    assert result.text == "---\na: '[[Old]]'\nb: \"[[Bob's]]\"\n---\n[[Bob's]]\n"
    assert [link.line for link in result.left] == [2]


def test_the_cards_of_a_canvas_are_rewritten_and_its_layout_stays() -> None:
    text = (
        '{\n\t"nodes":[\n\t\t{"id":"1","type":"file","file":"a/Old.md","x":0},\n'
        '\t\t{"id":"2","type":"text","text":"see [[Old|\\u00e9]]\\n","x":1}\n\t],"edges":[]\n}'
    )
    result = rewrite_canvas(text, move("b/New.md"), "c.canvas")
    assert result.text == text.replace("a/Old.md", "b/New.md").replace("[[Old|", "[[New|")
    assert [link.line for link in result.changed] == [3, 4]
    json.loads(result.text)


def test_what_is_no_canvas_stays() -> None:
    assert rewrite_canvas('{"file": "a/Old.md"', move("b/New.md"), "c.canvas").text.endswith('md"')


@pytest.mark.parametrize(
    ("source", "new", "before", "after"),
    [
        ("docs/x.md", "docs/start.md", "[a](setup.md) [[setup]]", "[a](start.md) [[setup]]"),
        ("README.md", "docs/start.md", "[a](docs/setup.md)", "[a](docs/start.md)"),
        ("x/y.md", "x/setup.md", "[a](../docs/setup)", "[a](setup)"),
    ],
)
def test_outside_vaults_a_markdown_link_means_the_file_beside_its_note(
    source: str, new: str, before: str, after: str
) -> None:
    files = ("setup.md", "docs/setup.md", "README.md", "docs/README.md")
    trees = [
        LinkTree(
            [new if new and path == "docs/setup.md" else path for path in files], is_vault=False
        )
        for new in ("", new)
    ]
    plan = Move(trees[0], trees[1], "docs/setup.md", new)
    assert rewrite_note(before, plan, source).text == after


def test_a_link_to_a_folder_follows_its_readme() -> None:
    files = ("docs/README.md", "docs/a.md", "x.md")
    before = LinkTree(files, is_vault=False)
    after = LinkTree(("docs/Overview.md", *files[1:]), is_vault=False)
    plan = Move(before, after, "docs/README.md", "docs/Overview.md")
    assert rewrite_note("[a](docs/)", plan, "x.md").text == "[a](docs/Overview.md)"
    assert rewrite_note("[a](.)", plan, "docs/a.md").text == "[a](Overview.md)"
    after = LinkTree(("docs/README.md", "docs/a.md", "y/x.md"), is_vault=False)
    plan = Move(before, after, "x.md", "y/x.md")
    assert rewrite_note("[a](docs/)", plan, "x.md", "y/x.md").text == "[a](../docs/README.md)"
