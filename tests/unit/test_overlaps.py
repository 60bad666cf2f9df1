"""A file in several collections is one hit: that of the collection whose folder lies deepest."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.embedder import HashEmbedder

from qmd import Filters, KnowledgeBase, Settings
from qmd.errors import AmbiguousNameError
from qmd.kb.scoped import ScopedKnowledgeBase
from qmd.store.sql.filters import Overlap, overlaps


@pytest.fixture(params=["sqlite", "postgres"])
def kb(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[KnowledgeBase]:
    """The collections ``all`` (a folder), ``again`` (the same), ``job`` (its ``work``)."""
    for name in ("plan.md", "work/plan.md", "work/deep/ship.md", "work/draft.txt"):
        file = tmp_path / "all" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# {file.stem.title()} {len(name)}\n\nA boat sails.\n", "utf-8")
    location = tmp_path / "kb.sqlite"
    if request.param == "postgres":
        location = request.getfixturevalue("postgres_database")
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(location, settings, create=True) as opened:
        opened.add_collection(tmp_path / "all", mask="**/*.{md,txt}")
        opened.add_collection(tmp_path / "all", name="again")
        opened.add_collection(tmp_path / "all" / "work", name="job")
        opened.index()
        opened.embed()
        yield opened


EVERYWHERE = Filters()
INNERMOST = {"all/plan.md", "job/plan.md", "job/deep/ship.md", "all/work/draft.txt"}


@pytest.mark.parametrize("search", ["search", "vsearch", "query"])
def test_a_search_has_one_hit_of_each_file(kb: KnowledgeBase, search: str) -> None:
    def files(filters: Filters = EVERYWHERE) -> set[str]:
        reply = getattr(kb, search)("boat sails", limit=20, min_score=0, filters=filters)
        assert len({hit.file for hit in reply.hits}) == len(reply.hits)
        return {hit.file for hit in reply.hits}

    assert files() == INNERMOST
    in_work = {"all/work/plan.md", "all/work/deep/ship.md", "all/work/draft.txt"}
    assert files(Filters(path="work")) == in_work  # the collection "job" has no such folder
    assert files(Filters(path="job")) == {"job/plan.md", "job/deep/ship.md"}
    assert files(Filters(path="deep")) == {"job/deep/ship.md"}
    for asked, prefix in (("again", "again/work"), ("all", "all/work")):
        expected = {f"{prefix}/plan.md", f"{prefix}/deep/ship.md"}
        assert {f for f in files(Filters(path=prefix)) if f.endswith(".md")} == expected
        assert expected <= files(Filters(collections=(asked,)))
    assert files(Filters(collections=("again", "job"))) == {
        "again/plan.md",
        "job/plan.md",
        "job/deep/ship.md",
    }


def test_a_list_has_each_file_once_and_that_of_a_collection_all_its_documents(
    kb: KnowledgeBase,
) -> None:
    assert {each.file for each in kb.documents()} == INNERMOST
    assert kb.count_documents() == len(INNERMOST)
    in_all = {"all/plan.md", "all/work/plan.md", "all/work/deep/ship.md", "all/work/draft.txt"}
    assert {each.file for each in kb.documents("all")} == in_all
    assert kb.count_documents("all") == len(in_all)
    assert kb.count_documents("all/work") == len(kb.documents("all/work")) == 3


def test_a_glob_reads_each_file_once(kb: KnowledgeBase) -> None:
    def read(pattern: str) -> list[str]:
        return [each.document.file for each in kb.multi_get(pattern).documents]

    assert read("**/plan.md") == ["all/plan.md", "job/plan.md"]
    assert read("again/**/plan.md") == ["again/plan.md", "again/work/plan.md"]


def test_names_mean_the_innermost_document(kb: KnowledgeBase, tmp_path: Path) -> None:
    assert kb.get("ship").document.file == "job/deep/ship.md"
    assert kb.get("Ship 17").document.file == "job/deep/ship.md"
    assert kb.get("again/work/deep/ship.md").document.file == "again/work/deep/ship.md"
    assert kb.get(str(tmp_path / "all/work/plan.md")).document.file == "job/plan.md"
    with pytest.raises(AmbiguousNameError) as caught:  # two files have this name
        kb.get("plan")
    assert len(caught.value.candidates) == 2


def test_lists_of_tags_properties_and_links_count_each_file_once(
    kb: KnowledgeBase, tmp_path: Path
) -> None:
    note = "---\nstatus: open\n---\n# Ship\n\n#boat leads to [[nowhere]]\n"
    (tmp_path / "all/work/deep/ship.md").write_text(note, "utf-8")
    kb.index()
    (tag,) = kb.tags().tags
    assert (tag.tag, tag.documents) == ("boat", 1)
    (status,) = kb.properties()
    assert (status.key, status.documents) == ("status", 1)
    assert [(each.value, each.documents) for each in kb.property_values("status")] == [("open", 1)]
    assert [each.file for each in kb.broken_links().links] == ["job/deep/ship.md"]
    assert [each.file for each in kb.broken_links(collection="again").links] == [
        "again/work/deep/ship.md"
    ]
    assert {each.file for each in kb.orphans().documents} == INNERMOST
    assert kb.tags(collection="again").tags[0].documents == 1


def test_who_adds_such_a_folder_is_told(kb: KnowledgeBase, tmp_path: Path) -> None:
    assert "'again', 'all'." in (kb.overlap_notice(tmp_path / "all" / "new") or "")
    assert "'again', 'all', 'job'." in (kb.overlap_notice(tmp_path) or "")
    assert kb.overlap_notice(tmp_path / "other") is None


@given(st.lists(st.sampled_from(["/", "/a", "/a/b", "/a/b/c", "/ab", "/b"]), max_size=8))
def test_overlaps_are_the_pairs_of_folders_that_hold_each_other(paths: list[str]) -> None:
    folders = list(enumerate(paths))
    expected = set()
    for outer, one in folders:
        for inner, other in folders:
            if one == other and inner < outer:
                expected.add(Overlap(outer, inner, ""))
            elif one != other and Path(one) in Path(other).parents:
                expected.add(Overlap(outer, inner, f"{Path(other).relative_to(one)}/"))
    assert len(overlaps(folders)) == len(expected)
    assert set(overlaps(folders)) == expected


def test_a_client_who_may_not_read_the_inner_collection_has_the_outer_document(
    kb: KnowledgeBase,
) -> None:
    scope = kb.scope_of_token(kb.create_token("part", read=["all"]).token)
    assert scope is not None
    hits = ScopedKnowledgeBase(kb, scope).search("boat sails", limit=20).hits
    assert len(hits) == len(INNERMOST) and {hit.collection for hit in hits} == {"all"}


def test_what_changed_last_lists_each_file_once(kb: KnowledgeBase) -> None:
    changes = kb.recent()
    assert {each.document.file for each in changes.changes} == INNERMOST
    assert changes.total == len(INNERMOST)
    assert kb.recent(limit=2).total == len(INNERMOST)
    assert len(kb.recent(collection="again").changes) == 3
