"""Sorting and grouping by properties, and listing the properties."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import InputError, NotFoundError

NOTES = {
    "a.md": "---\nstatus: draft\nrating: 4\ndate: 2025-03-01\n---\n# Beta\n\nriver boat boat boat",
    "b.md": "---\nstatus: Done\nrating: 10\ndate: 2025-01-01\n---\n# alpha\n\nriver and boat",
    "c.md": "---\nstatus: [draft, idea]\nrating: [1, 7]\ndate: 2025-02-01\n---\n# Delta\n\nriver boat",  # noqa: E501
    "d.md": "---\nstatus:\nrating: none\ndate: 2024-01-01\n---\n# Charlie\n\nriver boat",
    "e.md": "---\ndate: 2023-01-01\n---\n# Echo\n\nonly a river",
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("sorted")
    notes = folder / "notes"
    notes.mkdir()
    for name, text in NOTES.items():
        Path(notes / name).write_text(text, encoding="utf-8")
    with KnowledgeBase.open(folder / "index.sqlite", create=True) as opened:
        opened.add_collection(notes, name="n")
        opened.index()
        yield opened


def names(kb: KnowledgeBase, query: str, **options: object) -> str:
    return "".join(hit.path[0] for hit in kb.search(query, **options).hits)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("sort", "order"),
    [
        ("date", "dbca"),
        ("-date", "acbd"),
        ("title", "badc"),
        ("rating", "cabd"),
        ("-rating", "dbca"),
        ("-RATING", "dbca"),
        ("status", "bacd"),
    ],
)
def test_all_exact_hits_are_sorted(kb: KnowledgeBase, sort: str, order: str) -> None:
    assert names(kb, "river boat", sort=sort) == order


def test_the_limit_cuts_what_is_sorted(kb: KnowledgeBase) -> None:
    assert names(kb, "river boat", sort="-date", limit=2) == "ac"
    assert names(kb, "rating:*", sort="date", limit=1) == "d"


def test_scores_still_say_which_hit_is_the_best(kb: KnowledgeBase) -> None:
    hits = kb.search("boat river", sort="-title", limit=2).hits
    assert [hit.path for hit in hits] == ["c.md", "d.md"]
    assert all(0 < hit.score <= 1 for hit in hits)
    best = max(kb.search("boat river", sort="title").hits, key=lambda hit: hit.score)
    assert best.score == best.relevance
    assert best.path == kb.search("boat river").hits[0].path


def test_hits_of_a_group_stand_together(kb: KnowledgeBase) -> None:
    hits = kb.search("river", sort="date", group_by="status", limit=None).hits
    assert [(hit.path, hit.group) for hit in hits] == [
        ("b.md", "Done"),
        ("c.md", "draft, idea"),
        ("a.md", "draft"),
        ("e.md", None),
        ("d.md", None),
    ]


def test_listings_are_filtered_sorted_and_grouped(kb: KnowledgeBase) -> None:
    def listed(**options: object) -> str:
        return "".join(each.path[0] for each in kb.documents("n", **options))  # type: ignore[arg-type]

    assert listed(properties=["rating:>3"]) == "abc"
    assert listed(properties=["rating:>3", "-status:draft"]) == "b"
    assert listed(sort="-date", limit=2, offset=1) == "cb"
    assert [each.group for each in kb.documents(group_by="rating")] == [
        *("1, 7", "4", "10", "none", None),
    ]
    assert kb.count_documents("n", properties=["rating:>3"]) == 3


def test_properties_are_listed_with_their_kinds(kb: KnowledgeBase) -> None:
    summaries = {each.key: (each.documents, dict(each.kinds)) for each in kb.properties()}
    assert summaries["rating"] == (4, {"number": 4, "text": 1})
    assert summaries["status"] == (4, {"text": 4, "empty": 1})
    values = [(each.value, each.documents) for each in kb.property_values("Status")]
    assert values == [("draft", 2), ("", 1), ("Done", 1), ("idea", 1)]


def test_an_unknown_property_is_an_error_with_a_hint(kb: KnowledgeBase) -> None:
    with pytest.raises(NotFoundError) as unknown:
        kb.search("river", sort="ratng")
    assert unknown.value.hint == "Did you mean: rating"
    with pytest.raises(NotFoundError):
        kb.documents(group_by="nothing")
    with pytest.raises(InputError):
        kb.documents(properties=["rating"])


def test_equal_numbers_are_one_group_and_one_value_as_it_is_written(tmp_path: Path) -> None:
    for name, written in {"a": "1.10", "b": "1.1", "c": "4.0", "d": "4"}.items():
        (tmp_path / f"{name}.md").write_text(f"---\nver: {written}\n---\n")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="n")
        kb.index()
        groups = [each.group for each in kb.documents(group_by="ver", sort="ver")]
        assert groups == ["1.1", "1.1", "4", "4"]
        (tmp_path / "b.md").unlink()
        kb.index()
        assert [each.value for each in kb.property_values("ver")] == ["4", "1.10"]
