"""Texts in front of a prompt: named documents, and the best hits of a query."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from qmd import KnowledgeBase
from qmd.errors import AmbiguousNameError, DocumentNotFoundError, NoMatchError
from qmd.tools import fragments as module
from qmd.tools.fragments import Fragment, fragments
from qmd.values.text import estimate_tokens
from tests.support.corpus import Corpus

LONG = "".join(f"The harbour master counts boat {number}.\n" for number in range(1, 2001))
FILES = {
    "plan.md": "# Plan\n\nBuy a boat.\n",
    "log/2026-01.md": "# January\n\nRain.\n",
    "log/2026-02.md": "# February\n\nSnow.\n",
    "a/same.md": "# Same\n",
    "b/same.md": "# Same\n",
    "long.md": f"# Harbour\n\n{LONG}\nThe lighthouse is painted.\n",
    "huge.md": "word " * 30_000,
    **{f"other/{number}.md": f"# Note {number}\n\nNothing of interest.\n" for number in range(20)},
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    corpus = Corpus(tmp_path_factory.mktemp("fragments"))
    corpus.fill(FILES)
    yield corpus.kb
    corpus.kb.close()


@pytest.mark.parametrize("name", ["notes/plan.md", "plan.md", "[[plan]]", "Plan"])
def test_a_name_gives_the_document_below_a_line_that_names_it(kb: KnowledgeBase, name: str) -> None:
    assert fragments(kb, name) == [
        Fragment("notes/plan.md", "[notes/plan.md]\n# Plan\n\nBuy a boat.\n")
    ]


def test_a_docid_and_lines_are_names(kb: KnowledgeBase) -> None:
    docid = kb.get("plan.md").document.docid
    (whole,) = fragments(kb, docid)
    assert whole.file == "notes/plan.md"
    (part,) = fragments(kb, "plan.md:3")
    assert part.text == "[notes/plan.md:3]\nBuy a boat.\n"


def test_a_glob_gives_each_document_and_counts_what_is_left_out(kb: KnowledgeBase) -> None:
    assert [each.file for each in fragments(kb, "log/*.md")] == [
        "notes/log/2026-01.md",
        "notes/log/2026-02.md",
    ]
    read = fragments(kb, "*u*e.md")
    assert read[-1].text == "[1 more document left out: name fewer, or one by one]\n"


def test_words_give_the_hits_that_answer(kb: KnowledgeBase) -> None:
    assert [each.file for each in fragments(kb, "snow in february")][:1] == ["notes/log/2026-02.md"]


def test_of_a_long_document_the_lines_around_the_hit_are_given(kb: KnowledgeBase) -> None:
    (read,) = (each for each in fragments(kb, "lighthouse painted") if each.file == "notes/long.md")
    assert "The lighthouse is painted." in read.text
    assert read.text.startswith("[notes/long.md:")
    (start,) = (each for each in fragments(kb, '"counts boat 1"') if each.file == "notes/long.md")
    assert start.text.startswith("[notes/long.md]\n# Harbour")
    assert "left out: get notes/long.md:" in start.text
    for each in (read, start):
        assert estimate_tokens(each.text) <= module.HIT_TOKENS + 50


def test_hits_that_hardly_answer_are_announced(kb: KnowledgeBase) -> None:
    first, *rest = fragments(kb, "boat zebra quantum orchestra violin")
    assert first.file == ""
    assert "Nothing here seems to answer" in first.text
    assert rest


def test_what_can_only_be_a_name_is_no_query(kb: KnowledgeBase) -> None:
    for name in ("missing.md", "#ffffff", "notes/snow.md"):
        with pytest.raises(DocumentNotFoundError):
            fragments(kb, name)
    with pytest.raises(AmbiguousNameError):
        fragments(kb, "same.md")


def test_nothing_at_all_is_an_error(kb: KnowledgeBase) -> None:
    for argument in ("xyzzy", "nothing/*.here"):
        with pytest.raises(NoMatchError):
            fragments(kb, argument)
