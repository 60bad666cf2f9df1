"""A document is named by path, file name, alias, title, link, heading or block, in any spelling."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import AmbiguousNameError, DocumentNotFoundError, SectionNotFoundError
from qmd.operations import texts
from qmd.operations.replies import TextBlock
from qmd.search.lookup.resolve import resolve
from qmd.tools.toolsets import select
from qmd.values import DocumentSlice
from tests.support.corpus import Corpus

MOC = """---
aliases: [Map of Content, Übersicht]
---
# Maps

intro

## Places

here

### Parks

trees ^trees

## People

- Ann
- Bob ^bob
"""
FILES = {
    "MOC.md": MOC,
    "2025/plan.md": "# Goals of the year\n\n## Time: 10:30\n\nnoon\n",
    "2024/Plan.md": "# Old goals\n",
    "deep/only-here.md": "# Plan\n",
    "a#b.md": "# Hash\n\n## c\n\nin c\n",
    "C#.md": "# See sharp\n\n## Types\n\nint\n",
    "Cafe\u0301.md": "# Coffee\n",
    "v1.2.md": "# Release\n",
    "v1.md": "# First release\n",
    "dup/a.md": "---\ntitle: Twice\n---\n",
    "dup/b.md": "---\ntitle: twice\n---\n",
    "alias.md": "---\naliases: [moc, Twice]\n---\n",
    "x.md:7": "# A file of that name\n",
    "x.md": "# X\n",
    "LICENSE": "# Plain\n",
    "LICENSE.md": "# Markdown\n",
    "日记.md": "# 今天\n\n## 早上\n\n咖啡\n",
    "facade.md": "---\naliases: [decade]\n---\n",
    "old.markdown": "# Older\n",
    "a^b.md": "# Caret\n",
    "Sq]uare, round.md": "# Shape\n",
    "two\nlines.md": "# Of two lines\n",
    "back\\new.md": "# Backslash\n",
    "back\new.md": "# Line end\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    corpus = Corpus(tmp_path_factory.mktemp("names"))
    corpus.add_collection("other")
    corpus.fill({**FILES, "other::2025/plan.md": "# Other\n", "other::sub/MOC.md": "# Other map\n"})
    yield corpus
    corpus.kb.close()


@pytest.fixture
def kb(corpus: Corpus) -> KnowledgeBase:
    return corpus.kb


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("[[Sq]uare, round]]", "notes/Sq]uare, round.md"),
        ("[[sq]uare, round|shown]]", "notes/Sq]uare, round.md"),
        ("MOC", "notes/MOC.md"),
        ("[[MOC]]", "notes/MOC.md"),
        ("![[MOC]]", "notes/MOC.md"),
        ("[[MOC|the maps]]", "notes/MOC.md"),
        ("[[MOC\\|in a table]]", "notes/MOC.md"),
        ("[[ MOC.md ]]", "notes/MOC.md"),
        ("Map of Content", "notes/MOC.md"),
        ("map  OF content", "notes/MOC.md"),
        ("übersicht", "notes/MOC.md"),
        (unicodedata.normalize("NFD", "Übersicht"), "notes/MOC.md"),
        ("[[Map of Content#Places|x]]", "notes/MOC.md"),
        ("Maps", "notes/MOC.md"),
        ("notes/moc", "notes/MOC.md"),
        ("NOTES/MOC.MD", "notes/MOC.md"),
        ("qmd://notes/moc", "notes/MOC.md"),
        ("qmd://notes/MOC.md#Places", "notes/MOC.md"),
        ("sub/moc", "other/sub/MOC.md"),
        ("2025/plan.md:1", None),
        ("notes/2025/plan", "notes/2025/plan.md"),
        ("other/2025/PLAN", "other/2025/plan.md"),
        ("2024/plan", "notes/2024/Plan.md"),
        # The exact spelling of a file name comes before others, a file name before a title.
        ("Plan", "notes/2024/Plan.md"),
        ("Old Goals", "notes/2024/Plan.md"),
        ("caf\u00e9", "notes/Cafe\u0301.md"),
        ("CAFE\u0301.md", "notes/Cafe\u0301.md"),
        ("v1.2", "notes/v1.2.md"),
        ("v1", "notes/v1.md"),
        ("LICENSE", "notes/LICENSE"),
        ("license.md", "notes/LICENSE.md"),
        ("日记", "notes/日记.md"),
        ("今天", "notes/日记.md"),
        ("old", "notes/old.markdown"),
        ("old.md", None),
        # What looks like an anchor or lines may be the name.
        ("a#b.md", "notes/a#b.md"),
        ("a#b", "notes/a#b.md"),
        ("a#b#c", "notes/a#b.md"),
        ("a#b.md#c", "notes/a#b.md"),
        ("C#", "notes/C#.md"),
        ("C##Types", "notes/C#.md"),
        ("a^b", "notes/a^b.md"),
        ("x.md:7", "notes/x.md:7"),
        ("x:1", "notes/x.md"),
        # An alias comes before a title, even if the title is spelled so.
        ("Twice", "notes/alias.md"),
        ("decade", "notes/facade.md"),
        ("MOC#", "notes/MOC.md"),
        # Lists show a line end in a name as an escape.
        ("notes/two\\nlines.md", "notes/two\nlines.md"),
        ("two\\nlines#Of two lines", "notes/two\nlines.md"),
        ("back\\new", "notes/back\\new.md"),
        ("\\x4d\\x5c\\x00", None),
    ],
)
def test_every_spelling_names_its_document(kb: KnowledgeBase, name: str, file: str | None) -> None:
    if file is None:
        with pytest.raises((DocumentNotFoundError, AmbiguousNameError)):
            kb.get(name)
    else:
        assert kb.get(name).document.file == file


@pytest.mark.parametrize(
    ("name", "first", "text"),
    [
        ("MOC#Places", 8, "## Places\n\nhere\n\n### Parks\n\ntrees ^trees\n"),
        ("[[moc#places#parks]]", 12, "### Parks\n\ntrees ^trees\n"),
        ("MOC#Maps#Parks", 12, "### Parks\n\ntrees ^trees\n"),
        ("MOC^trees", 14, "trees ^trees"),
        ("MOC#^trees", 14, "trees ^trees"),
        ("MOC#Parks#^trees", 14, "trees ^trees"),
        ("![[MOC#^bob]]", 19, "- Bob ^bob"),
        ("MOC#People", 16, "## People\n\n- Ann\n- Bob ^bob"),
        ("qmd://notes/MOC.md#Places%23Parks", 12, "### Parks\n\ntrees ^trees\n"),
        ("2025/plan#Time: 10:30", 3, "## Time: 10:30\n\nnoon"),
        ("日记#早上", 3, "## 早上\n\n咖啡"),
        ("a#b#c", 3, "## c\n\nin c"),
    ],
)
def test_a_heading_or_block_gives_its_lines(
    kb: KnowledgeBase, name: str, first: int, text: str
) -> None:
    if name.startswith("2025/"):
        name = f"notes/{name}"
    excerpt = kb.get(name)
    assert (excerpt.from_line, excerpt.text, excerpt.more_lines) == (first, text, 0)


def test_other_bounds_stay_inside_the_section(kb: KnowledgeBase) -> None:
    excerpt = kb.get("MOC#Places", max_lines=3)
    assert (excerpt.from_line, excerpt.text, excerpt.more_lines) == (8, "## Places\n\nhere", 5)
    excerpt = kb.get("MOC#Places", from_line=12, max_lines=100)
    assert (excerpt.from_line, excerpt.text, excerpt.more_lines) == (
        12, "### Parks\n\ntrees ^trees\n", 0
    )  # fmt: skip
    assert kb.get("MOC#Places", from_line=1).from_line == 8
    assert kb.get("MOC#Places", from_line=17).text == ""


def test_a_list_takes_every_kind_of_name(kb: KnowledgeBase) -> None:
    reply = kb.multi_get("[[MOC#Parks]], MOC#Nowhere, Twice, notes/2025/plan, x:1")
    assert [(item.document.path, getattr(item, "from_line", 0)) for item in reply.items] == [
        ("MOC.md", 12), ("alias.md", 1), ("2025/plan.md", 1), ("x.md", 1)
    ]  # fmt: skip
    [error] = reply.errors
    assert "MOC.md" in error and "Nowhere" in error


@pytest.mark.parametrize(
    ("name", "suggestions"),
    [
        ("MOC#Place", ["#Places", "#People", "#Maps"]),
        ("MOC#Places#Park", ["#Parks", "#Places", "#Maps"]),
        ("MOC^tree", ["^trees", "^bob"]),
        ("LICENSE.md#^x", []),
    ],
)
def test_a_missing_section_lists_the_nearest(
    kb: KnowledgeBase, name: str, suggestions: list[str]
) -> None:
    with pytest.raises(SectionNotFoundError) as caught:
        kb.get(name)
    assert list(caught.value.suggestions) == suggestions
    for suggestion in suggestions:
        assert kb.get(f"{caught.value.file}{suggestion}").document.file == caught.value.file
    assert caught.value.hint


def test_an_ambiguous_name_tells_the_candidates(kb: KnowledgeBase) -> None:
    with pytest.raises(AmbiguousNameError) as caught:
        kb.get("2025/plan")
    assert caught.value.candidates == ("notes/2025/plan.md", "other/2025/plan.md")


def test_an_ambiguous_message_has_a_bound(tmp_path: object, corpus: Corpus) -> None:
    error = AmbiguousNameError("x", [f"notes/{number}/x.md" for number in range(10_000)])
    assert len(str(error)) < 1000 and "9,980 more" in str(error)
    assert len(error.candidates) == 10_000


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("plam", "notes/2024/Plan.md"),
        ("goals of the yaer", "notes/2025/plan.md"),
        ("Map of Contents", "notes/MOC.md"),
        ("only", "notes/deep/only-here.md"),
        ("[[MOCC]]", "notes/MOC.md"),
        ("MOCC#Places", "notes/MOC.md"),
        ("cofee", "notes/Cafe\u0301.md"),
    ],
)
def test_a_miss_suggests_by_file_name_alias_and_title(
    kb: KnowledgeBase, name: str, first: str
) -> None:
    with pytest.raises(DocumentNotFoundError) as caught:
        kb.get(name)
    assert caught.value.suggestions[0] == first


@pytest.mark.parametrize(
    "name",
    ["#" * 50_000, "zz#" * 3_000, "[[" * 100, "[[\0]]", "MOC\0", "\ud800", "^" * 9_000, "[[]]"],
)
def test_a_hostile_name_is_an_answer_within_few_lookups(corpus: Corpus, name: str) -> None:
    with corpus.store.reading() as reader:
        statements: list[str] = []
        reader.connection.set_trace_callback(statements.append)
        try:
            with pytest.raises(DocumentNotFoundError):
                resolve(reader, name)
        finally:
            reader.connection.set_trace_callback(None)
        assert len(statements) < 50


@pytest.mark.parametrize("name", ["MOC", "Goals of the year", "übersicht", "notes/2024/plan"])
def test_resolving_a_name_reads_no_whole_table(corpus: Corpus, name: str) -> None:
    with corpus.store.reading() as reader:
        statements: list[str] = []
        reader.connection.set_trace_callback(statements.append)
        resolve(reader, name)
        reader.connection.set_trace_callback(None)
        plans = [
            row[3]
            for statement in statements
            if statement.startswith("SELECT")
            for row in reader.connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]
    assert any("documents_name" in plan for plan in plans)
    scanned = [plan for plan in plans if plan.startswith("SCAN")]
    assert all("json_each" in plan for plan in scanned), scanned


def test_a_heading_that_occurs_twice_is_the_first_and_says_where_the_other_is(
    tmp_path: Path,
) -> None:
    (tmp_path / "twice.md").write_text(
        "# A\n\n## Log\n\none ^x\n\n# B\n\n## Log\n\ntwo ^x\n", encoding="utf-8"
    )
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="notes")
        kb.index()
        assert kb.get("twice#Log").same_name == (9,)
        assert kb.get("twice^x").same_name == (11,)
        assert kb.get("twice#B#Log").same_name == ()
        (get,) = [tool for tool in select(["qmd"]).tools if tool.name == "get"]
        reply = get.run(kb, get.arguments(file="twice#log"), texts.MCP)
        assert [block.text for block in reply.blocks[1:] if isinstance(block, TextBlock)] == [
            "[the same name stands also at line 9: get notes/twice.md:9]"
        ]
        (item,) = kb.multi_get("twice#Log,twice#Nothing").items
        assert isinstance(item, DocumentSlice)
        assert item.same_name == (9,)
