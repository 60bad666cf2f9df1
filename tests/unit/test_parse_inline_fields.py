"""Properties in the text count beside those of the frontmatter: Dataview's and Logseq's."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmd.parse.document import parse_document
from qmd.parse.frontmatter import MAX_FIELDS
from qmd.values import ParsedDocument


def parse(text: str, path: str = "note.md") -> ParsedDocument:
    return parse_document(path, text.encode())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rating:: 5", {"rating": 5}),
        ("x\n\nrating:: 4.5", {"rating": 4.5}),
        ("done:: true", {"done": True}),
        ("due:: 2025-03-01", {"due": "2025-03-01"}),
        ("number:: 007", {"number": "007"}),
        ('name:: "5"', {"name": "5"}),
        ('name:: ""x"', {"name": '""x"'}),
        ("作者:: 李雷", {"作者": "李雷"}),
        ("⏱ time:: 5m", {"⏱ time": "5m"}),
        ("**Rating**:: 5", {"Rating": 5}),
        ("- rating:: 5", {"rating": 5}),
        ("- [ ] rating:: 5", {"rating": 5}),
        ("> rating:: 5", {"rating": 5}),
        ("> [!info]+ Title\n> rating:: 5", {"rating": 5}),
        ("up:: [[A]]", {"up": "[[A]]"}),
        ("up:: [[A]], [[B|b]]", {"up": ["[[A]]", "[[B|b]]"]}),
        ("up:: [[A]] and [[B]]", {"up": "[[A]] and [[B]]"}),
        ("rating:: 5 ^id", {"rating": 5}),
        ("%%rating:: 5%%", {"rating": 5}),
        ("text %% [rating:: 5] %%", {"rating": 5}),
        ("rating:: 5\nrating:: 6", {"rating": [5, 6]}),
        ("Rating:: 5\nrating:: 6", {"Rating": [5, 6]}),
        ("I gave [rating:: 5] stars (to:: [[Li Lei]]).", {"rating": 5, "to": "[[Li Lei]]"}),
        ("[a:: b [c] (d)]", {"a": "b [c] (d)"}),
        ("[a:: [b:: c]]", {"a": "[b:: c]"}),
        ("(see [a:: 1]) and (b:: 2)", {"a": 1, "b": 2}),
        ("code:: `a:: b`", {"code": "`a:: b`"}),
        ("---\nrating: 4\n---\nrating:: 5", {"rating": [4, 5]}),
        ("---\nrating: [3, 4]\n---\nrating:: 5", {"rating": [3, 4, 5]}),
        ("---\nRating:\n---\nrating:: 5", {"Rating": 5}),
        ("---\na: b:: c\n---\n", {"a": "b:: c"}),
    ],
)
def test_a_field_becomes_a_property(text: str, expected: dict[str, Any]) -> None:
    assert parse(text).properties == expected


@pytest.mark.parametrize(
    "text",
    [
        "std::vector is a class",
        "`a:: b`",
        "```\na:: b\n```\n",
        "    a:: b\n",
        "%%\na:: b\n%%",
        "a::",
        "a:: ",
        ":: b",
        "[[Note:: part]]",
        "[a:: b](c.md)",
        "[a:: b",
        "Rust, C++: what is a::b?",
        "A sentence that goes on for much longer than any name of a property would:: yes",
        "- id:: 63f0\n- collapsed:: true\n- logseq.order-list-type:: number",
    ],
)
def test_what_is_no_field(text: str) -> None:
    assert parse(text).properties == {}


def test_a_page_of_logseq_has_the_names_of_its_first_lines() -> None:
    document = parse(
        "title:: 计划\nalias:: Plan, [[The plan]]\ntags:: [[project a]], work\n"
        "description:: What we do\ndate:: 2025-03-01\n\n- first #idea\n  id:: 63f0\n- title:: no\n",
        "pages/work___plan.md",
    )
    assert (document.title, document.title_source) == ("计划", "frontmatter")
    assert document.aliases == ("Plan", "The plan")
    assert document.tags == ("project a", "work", "idea")
    assert document.properties["alias"] == ["Plan", "The plan"]
    assert document.properties["tags"] == ["project a", "work"]
    assert document.description == "What we do"
    assert document.date == "2025-03-01"
    assert document.warnings == ()


def test_fields_behind_the_first_lines_are_no_names() -> None:
    document = parse("text\n\ntitle:: no\nalias:: no\ntags:: no\ncreated:: 2025-03-01\n")
    assert (document.title, document.aliases, document.tags) == ("note", (), ())
    assert document.date == "2025-03-01"


def test_the_frontmatter_comes_before_the_fields_of_the_page() -> None:
    document = parse(
        "---\ntitle: Given\ntags: [a]\naliases: x, y\ndate: 2024-01-01\n---\n"
        "title:: No\ntags:: b, A\naliases:: z\ndate:: 2025-03-01\n"
    )
    assert document.title == "Given"
    assert document.tags == ("a", "b")
    assert document.aliases == ("x", "y", "z")
    assert document.date == "2024-01-01"


@pytest.mark.parametrize(
    ("path", "title", "date"),
    [
        ("journals/2025_03_01.md", "Mar 1st, 2025", "2025-03-01"),
        ("graph/journals/2024_12_23.md", "Dec 23rd, 2024", "2024-12-23"),
        ("journals/2024_11_12.md", "Nov 12th, 2024", "2024-11-12"),
        ("journals/2024_13_12.md", "2024_13_12", None),
        ("notes/2025_03_01.md", "2025_03_01", None),
        ("pages/work___plan.md", "work/plan", None),
        ("pages/a___b___100%25.md", "a/b/100%", None),
        ("___.md", "___", None),
        ("100%25.md", "100%25", None),
    ],
)
def test_names_of_files_are_shown_as_in_logseq(path: str, title: str, date: str | None) -> None:
    document = parse("- text\n", path)
    assert (document.title, document.title_source, document.date) == (title, "filename", date)


@pytest.mark.parametrize(
    ("text", "tags", "links", "title"),
    [
        ("a %%#no [[no]]%% #yes [[yes]]", ["yes"], ["yes"], "note"),
        ("%%\n# No\n#no [[no]]\n\n## No\n%%\n# Yes\n", [], [], "Yes"),
        ("a %% b\n#no %% #yes", ["yes"], [], "note"),
        ("100%% of\n\n#yes 50%% [[yes]]", ["yes"], ["yes"], "note"),
        ("%%\n#yes never closed [[yes]]", ["yes"], ["yes"], "note"),
        ("`%%` #yes `%%`", ["yes"], [], "note"),
        ("# Plan %%draft%% B\n", [], [], "Plan B"),
        ("## Part %% fold %%\n# T %% x %%", [], [], "T"),
        ("%% one %%\n#yes\n%% two %%\n", ["yes"], [], "note"),
    ],
)
def test_comments_hold_no_tags_links_and_titles(
    text: str, tags: list[str], links: list[str], title: str
) -> None:
    document = parse(text)
    assert list(document.tags) == tags
    assert [link.target for link in document.links] == links
    assert document.title == title


def test_a_formula_holds_no_tags_links_tasks_and_properties() -> None:
    inside = "#no [[no]] [no](no.md)\n- [ ] no\nno:: 1\n- [fact] no\n^no\n"
    document = parse(
        f"$$\n{inside}$$\n#yes [[yes]]\n\n$$ \\#no [[no]] $$\n- [ ] yes\n$$ a $$ #too\n"
    )
    assert list(document.tags) == ["yes", "too"]
    assert [link.target for link in document.links] == ["yes"]
    assert [task.text for task in document.tasks] == ["yes"]
    assert (document.properties, document.observations, document.anchors) == ({}, (), ())


@pytest.mark.parametrize("lead", [("> ", "> "), ("- ", "  "), ("- a\n\n  ", "  "), ("1. ", "   ")])
def test_a_formula_in_a_quote_or_an_item_holds_none_either(lead: tuple[str, str]) -> None:
    inside = "$$\n#no [[no]]\n===\n- [ ] no\nno:: 1\n- [fact] no\n$$\n#yes"
    text = lead[0] + inside.replace("\n", f"\n{lead[1]}")
    document = parse(f"{text}\n\ntext $$x #no [[no]] (no:: 2)$$ (yes:: $$1$$)\n")
    assert (list(document.tags), document.properties) == (["yes"], {"yes": "$$1$$"})
    assert not (document.links or document.tasks or document.observations or document.headings)


def test_what_is_left_open_in_a_quote_or_an_item_is_no_formula() -> None:
    text = "- $$\n  #a\n\n# H\n\n> $$\n> #b\n\n#c\n\n\\$$ #d$$\n"
    document = parse(text)
    assert list(document.tags) == ["a", "b", "c", "d"]
    assert [each.text for each in document.headings] == ["H"]


def test_the_text_of_a_comment_can_be_found() -> None:
    document = parse("text\n\n%%\nhidden words\n%%\n")
    assert "hidden words" in "".join(
        document.text[chunk.start_char : chunk.end_char] for chunk in document.chunks
    )


def test_too_many_fields_are_left_out_and_told() -> None:
    document = parse("".join(f"key{number}:: {number}\n" for number in range(MAX_FIELDS + 5)))
    assert len(document.properties) == MAX_FIELDS
    assert document.warnings == (
        "The text has over 1,000 inline properties; the rest was left out.",
    )


@given(st.text(alphabet="ab:[]()`%#- \n'\"1.5,", max_size=120))
def test_the_properties_of_any_text_are_json(text: str) -> None:
    document = parse("---\nab: 1\n---\n" + text)
    json.dumps(document.properties, allow_nan=False)
    assert document.properties["ab"] is not None
