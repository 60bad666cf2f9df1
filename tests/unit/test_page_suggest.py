"""Suggestions for a query that is being typed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd import KnowledgeBase
from qmd.server.page.suggest import KEPT_S, MAX_TYPED, SuggestedNames, links, palette, suggestions

NOTES = {
    "Harbour.md": "---\ntags: [work/boat, home]\nstatus: in review\nrating: 4\n---\n# Harbour\n",
    "deep/harvest.md": "---\ntags: [work]\nstatus: draft\n---\n# Harvest\n",
    "数据库.md": "---\ntags: [数据]\n---\n# 数据库\n",
    "a b.md": "# A\n",
    "2025-03-ship.md": "---\naliases: [Fähre, 渡船]\n---\n# The boat | a [plan]\n",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("suggest")
    for name, text in NOTES.items():
        path: Path = root / "notes" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    with KnowledgeBase.open(root / "index.sqlite", create=True) as kb:
        kb.add_collection(root / "notes", name="notes")
        kb.index()
        yield kb


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("har", ["Harbour", "harvest"]),
        ("HARB", ["Harbour"]),
        ("数", ["数据库", "#数据"]),
        ("fäH", ["Fähre"]),
        ("渡", ["渡船"]),
        ("the b", ["The boat | a [plan]"]),
        ("h", []),
        ("ho", ["#home"]),
        ("bo", ["#work/boat"]),
        ("#wo", ["#work", "#work/boat"]),
        ("boat tag:", ["#work", "#home", "#work/boat", "#数据"]),
        ("sta", ["status:"]),
        ("status:", ["draft", "in review"]),
        ("status：in", ["in review"]),
        ("http:", []),
        ("", []),
        ("har " * MAX_TYPED, []),
    ],
)
def test_what_is_suggested(kb: KnowledgeBase, typed: str, expected: list[str]) -> None:
    texts = [each.text for each in suggestions(kb, SuggestedNames(kb), typed)]
    assert sorted(texts) == sorted(expected)


def test_a_suggestion_replaces_the_last_word_alone(kb: KnowledgeBase) -> None:
    vocabulary = SuggestedNames(kb)
    assert suggestions(kb, vocabulary, "boat -#wo")[0].query == "boat -tag:work "
    assert suggestions(kb, vocabulary, "boat status:in")[0].query == 'boat status:"in review" '
    assert suggestions(kb, vocabulary, "boat rat")[0].query == "boat rating:"
    assert suggestions(kb, vocabulary, "a b")[0].address == "/note/notes/a%20b.md"


def test_a_link_names_the_file_alone_unless_others_have_its_name(tmp_path: Path) -> None:
    for path in ("a/plan.md", "b/Plan.md", "b/planet.md", "plane.png", "c/harbour.md"):
        (tmp_path / "notes" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / path).write_text("# A note\n", encoding="utf-8")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plankton.md").write_text("# Elsewhere\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.add_collection(tmp_path / "other", name="other")
        kb.index()
        assert {each.target for each in links(kb, "notes", "pLan")} == {
            "a/plan",
            "b/Plan",
            "planet",
        }
        assert [each.detail for each in links(kb, "notes", "planet")] == ["b"]
        assert links(kb, "notes", "") == links(kb, "nowhere", "plan") == []
        assert links(kb, "notes", "plan " * MAX_TYPED) == []


def test_a_link_by_an_alias_shows_it(kb: KnowledgeBase) -> None:
    (link,) = links(kb, "notes", "渡")
    assert (link.target, link.text, link.detail) == ("2025-03-ship|渡船", "渡船", "2025-03-ship")
    assert links(kb, "notes", "The boat") == []  # a link cannot show these signs
    assert [each.target for each in links(kb, "notes", "har")] == ["Harbour", "harvest"]


def test_each_suggested_condition_finds_notes(kb: KnowledgeBase) -> None:
    vocabulary = SuggestedNames(kb)
    for typed in ("#", "status:", "rating:"):
        for each in suggestions(kb, vocabulary, typed):
            assert kb.search(each.query).hits, each


@given(typed=st.text(max_size=60))
@settings(deadline=None)
def test_any_text_may_be_typed(kb: KnowledgeBase, typed: str) -> None:
    assert len(suggestions(kb, SuggestedNames(kb), typed)) <= 10


def test_tags_are_read_again_after_a_while(kb: KnowledgeBase) -> None:
    now = 0.0
    vocabulary = SuggestedNames(kb, now=lambda: now)
    first = vocabulary.tags()
    now = KEPT_S - 1
    assert vocabulary.tags() is first
    now = KEPT_S
    assert vocabulary.tags() is not first


def test_the_palette_has_notes_by_name_then_by_words_then_the_search(kb: KnowledgeBase) -> None:
    found = [(each.kind, each.text, each.address) for each in palette(kb, " har ")]
    assert found[:2] == [
        ("note", "Harbour", "/note/notes/Harbour.md"),
        ("note", "harvest", "/note/notes/deep/harvest.md"),
    ]
    assert found[-1] == ("search", "har", "/?q=har")
    assert [each.text for each in palette(kb, "Fähre")] == ["Fähre", "Fähre"]
    assert palette(kb, "  ") == palette(kb, "x" * (MAX_TYPED + 1)) == []
