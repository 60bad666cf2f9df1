"""A query that is the exact name of a note has this note first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from qmd.search.judge import NAMED
from qmd.search.question import MOST_LEADING, written_name
from qmd.values import Filters
from tests.support.corpus import Corpus

LOUD = "MOC MOC MOC plan plan 数据库备份 数据库备份 café café\n" * 9
FILES = {
    **{f"loud{number}.md": f"# MOC of plans, 数据库备份, café\n\n{LOUD}" for number in range(30)},
    "maps/MOC.md": "# Maps of content\n\nOne link.\n",
    "aliased.md": "---\naliases: [moc, Cafe\u0301]\ntags: [old]\n---\n\n# Other\n\nText.\n",
    "titled.md": "---\ntitle: Moc\n---\n\nText.\n",
    "数据库备份.md": "# 手册\n\n文字\n",
    "C++.md": "# Languages\n",
    "->.md": "# Arrow\n",
}


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("exact-names"))
    made.fill(FILES)
    made.kb.embed()
    yield made
    made.kb.close()


def first(corpus: Corpus, query: str, count: int, **options: Any) -> list[list[str]]:
    """The paths of the first hits of `search`, and of `query` by evidence and by ranks."""
    kb = corpus.kb
    replies = (
        kb.search(query, limit=count, **options),
        kb.query(query, limit=count, **options),
        kb.query(query, limit=count, rerank=False, **options),
    )
    return [[hit.path for hit in reply.hits] for reply in replies]


@pytest.mark.parametrize(
    "query",
    [
        *("MOC", "moc", "  MOC ", '"MOC"', "title:moc", "MOC.md", "[[MOC]]", "![[moc]]"),
        *("[[MOC|shown]]", "[[MOC#Part]]", "[[MOC.md#^block]]"),
    ],
)
def test_file_name_then_alias_then_title_lead(corpus: Corpus, query: str) -> None:
    for count in (1, 3, 10):
        expected = ["maps/MOC.md", "aliased.md", "titled.md"][:count]
        assert [paths[:3] for paths in first(corpus, query, count)] == [expected] * 3


@pytest.mark.parametrize(
    ("query", "path"),
    [
        ("数据库备份", "数据库备份.md"),
        ("[[数据库备份]]", "数据库备份.md"),
        ("数据库备份.md", "数据库备份.md"),
        ("café", "aliased.md"),
        ("CAFE\u0301", "aliased.md"),
        ("C++", "C++.md"),
        ("->", "->.md"),
    ],
)
def test_names_of_any_script_case_and_form_lead(corpus: Corpus, query: str, path: str) -> None:
    assert [paths[0] for paths in first(corpus, query, 5)] == [path] * 3


@pytest.mark.parametrize(
    "query", ["MOC plan", "loud* OR MOC", "path:loud1", "plan OR moc", "maps/MOC", "MOC*"]
)
def test_what_is_no_name_has_no_leader(corpus: Corpus, query: str) -> None:
    hits = corpus.kb.search(query, explain=True).hits
    assert hits
    assert not any("name" in (hit.explain or {}) for hit in hits)


def test_filters_exclusions_and_minimums_hold_for_a_name(corpus: Corpus) -> None:
    tagged = first(corpus, "MOC", 5, filters=Filters(tags=("old",)))
    assert tagged == [["aliased.md"]] * 3
    assert first(corpus, "MOC tag:old", 5) == [["aliased.md"]] * 3
    for paths in first(corpus, "MOC -content", 40):
        assert paths[:2] == ["aliased.md", "titled.md"]
        assert "maps/MOC.md" not in paths
    (best, *_) = corpus.kb.search("MOC").hits
    assert corpus.kb.search("MOC", min_score=best.score + 0.0002).hits == ()


@pytest.mark.parametrize("query", ["MOC", "数据库备份", "café", "[[moc]]", "C++"])
def test_a_name_is_an_answer_in_every_search(corpus: Corpus, query: str) -> None:
    replies = corpus.kb.search(query), corpus.kb.query(query), corpus.kb.query(query, rerank=False)
    for reply in replies:
        assert reply.notice is None
        assert reply.hits[0].relevance >= NAMED
        assert reply.hits[0].score == reply.hits[0].relevance
    by_meaning = corpus.kb.vsearch(query, limit=100, min_score=0)
    assert by_meaning.notice is None
    assert max(hit.relevance for hit in by_meaning.hits) >= NAMED


def test_an_explanation_tells_the_name_and_the_blend_without_it(corpus: Corpus) -> None:
    for reply in (
        corpus.kb.search("MOC", explain=True),
        corpus.kb.query("MOC", explain=True),
    ):
        explained = [hit.explain or {} for hit in reply.hits]
        kinds = [explain["name"]["is"] for explain in explained[:3]]
        assert kinds == ["file name", "alias", "title"]
        assert explained[0]["name"]["blend"] <= explained[0]["blend"]
        assert "name" not in explained[3]
        scores = [hit.score for hit in reply.hits]
        assert scores == sorted(scores, reverse=True)
        assert scores[0] == reply.hits[0].relevance


def titled(number: int) -> Mapping[str, str]:
    return {f"{each}.md": f"# Notes\n\nentry {each}\n" for each in range(number)}


def test_a_title_that_many_notes_share_does_not_swamp_the_reply(tmp_path: Path) -> None:
    corpus = Corpus(tmp_path)
    loud = {f"loud{each}.md": "# My notes\n\n" + "notes " * 90 for each in range(5)}
    corpus.fill({**loud, **titled(150)})
    hits = corpus.kb.search("notes", limit=40, explain=True).hits
    named = ["name" in (hit.explain or {}) for hit in hits]
    assert named == [True] * MOST_LEADING + [False] * (40 - MOST_LEADING)
    assert [hit.path for hit in hits[MOST_LEADING:][:5]] == list(loud)
    corpus.kb.close()


@pytest.mark.parametrize("collections", [(), ("notes",)])
def test_names_are_looked_up_by_indexes(corpus: Corpus, collections: tuple[str, ...]) -> None:
    def plans(reader: Any) -> list[str]:
        statements: list[str] = []
        selection = reader.select(Filters(collections=collections))
        connection = reader.connection
        connection.set_trace_callback(statements.append)
        for kind in ("file name", "alias", "title"):
            reader.documents.named(kind, "MOC", selection, 10)
        connection.set_trace_callback(None)
        return [
            str(row[3])
            for statement in statements
            for row in connection.execute(f"EXPLAIN QUERY PLAN {statement}")
        ]

    with corpus.store.reading() as reader:
        steps = plans(reader)
    # The few that have the name are read, not all tables or a whole collection.
    assert not [step for step in steps if step.startswith("SCAN") and step != "SCAN n"]
    assert not [step for step in steps if "collection_id=?" in step]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("[[A b|shown]]", "A b"),
        ("[[A#B|c]]", "A"),
        ("![[pic.png]]", "pic.png"),
        (" A.MD ", "A"),
        ("a.markdown", "a"),
        ("[[A]] b", None),
        ("[[]]", None),
        (".md", None),
        ("A", None),
        ("x" * 400 + ".md", None),
    ],
)
def test_the_name_in_a_link_or_file_name(text: str, name: str | None) -> None:
    assert written_name(text) == name
