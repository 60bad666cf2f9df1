"""The tree of tags and its counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import CollectionNotFoundError, InputError
from qmd.values.graph import TagTree


def indexed(folder: Path, notes: dict[str, str]) -> KnowledgeBase:
    for name, text in notes.items():
        (folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / name).write_text(text, encoding="utf-8")
    kb = KnowledgeBase.open(folder / "index.sqlite", create=True)
    kb.add_collection(folder / "notes", name="notes")
    kb.index()
    return kb


def lines(tree: TagTree) -> list[str]:
    return [f"{'  ' * tag.depth}{tag.tag} {tag.documents}/{tag.total}" for tag in tree.tags]


NOTES = {
    "a.md": "#work/plans #work/notes #idea\n",
    "b.md": "#work/plans/2026\n",
    "c.md": "#Work #idea\n",
    "d.md": "---\ntags: [workshop]\n---\n#ideas\n",
}


def test_a_document_counts_once_however_many_tags_it_has_below_one(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES) as kb:
        tree = kb.tags()
    assert lines(tree) == [
        "Work 1/3",
        "  Work/plans 1/2",
        "    Work/plans/2026 1/1",
        "  Work/notes 1/1",
        "idea 2/2",
        "ideas 1/1",
        "workshop 1/1",
    ]
    assert tree.total == 7


@pytest.mark.parametrize("prefix", ["work/", "work", "#WORK/"])
def test_a_prefix_shows_one_tag_with_those_below_it(tmp_path: Path, prefix: str) -> None:
    with indexed(tmp_path, NOTES) as kb:
        assert [tag.casefold() for tag in lines(kb.tags(prefix))] == [
            "work 1/3",
            "  work/plans 1/2",
            "    work/plans/2026 1/1",
            "  work/notes 1/1",
        ]
        below = kb.tags("work/plans/")
    assert [(tag.tag.casefold(), tag.depth) for tag in below.tags] == [
        ("work/plans", 0),
        ("work/plans/2026", 1),
    ]


def test_the_limit_keeps_the_most_used_tags_and_the_total_counts_the_others(tmp_path: Path) -> None:
    with indexed(tmp_path, NOTES) as kb:
        tree = kb.tags(limit=3)
        with pytest.raises(InputError, match="between 1 and 1000"):
            kb.tags(limit=0)
        with pytest.raises(CollectionNotFoundError):
            kb.tags(collection="other")
    assert [tag.tag for tag in tree.tags] == ["Work", "Work/plans", "idea"]
    assert tree.total == 7


def test_only_the_documents_of_one_collection_count(tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "e.md").write_text("#idea #work/plans\n")
    with indexed(tmp_path, NOTES) as kb:
        kb.add_collection(tmp_path / "more", name="more")
        kb.index()
        assert lines(kb.tags(collection="more")) == [
            "idea 1/1",
            "work 0/1",
            "  work/plans 1/1",
        ]
        assert lines(kb.tags("idea")) == ["idea 3/3"]


def test_letters_of_any_script_count_whatever_their_case(tmp_path: Path) -> None:
    notes = {"a.md": "#Äpfel/rot #Äpfel/grün\n", "b.md": "#äpfel/rot\n", "c.md": "#水果/苹果\n"}
    with indexed(tmp_path, notes) as kb:
        tree = {tag.tag.casefold(): tag.total for tag in kb.tags().tags}
    assert tree == {"äpfel": 2, "äpfel/rot": 2, "äpfel/grün": 1, "水果": 1, "水果/苹果": 1}


def test_a_tree_of_a_thousand_levels(tmp_path: Path) -> None:
    deep = "/".join("a" * 400)
    notes = {
        "a.md": f"#{deep}\n",
        "b.md": f"#{deep}/b #{'/'.join('a' * 200)}\n",
        "long.md": "#" + "/".join("x" * 100_000) + "\n",
    }
    with indexed(tmp_path, notes) as kb:
        tree = kb.tags(limit=1000)
    assert [tag.total for tag in tree.tags] == [2] * 400 + [1]
    assert [tag.depth for tag in tree.tags] == list(range(401))
    assert tree.tags[-1].tag == f"{deep}/b"


@pytest.mark.parametrize(
    ("prefix", "nearest"),
    [
        ("wrok/", ("Work",)),
        ("PLAN", ("work/plans", "work/plans/2026")),
        ("works/", ("workshop", "Work", "work/plans")),
        ("plams", ("work/plans",)),
        ("musik/", ("music",)),
        ("zzz", ()),
        ("work", ()),
        ("", ()),
    ],
)
def test_a_tag_that_no_document_has_is_answered_with_the_nearest(
    tmp_path: Path, prefix: str, nearest: tuple[str, ...]
) -> None:
    with indexed(tmp_path, {**NOTES, "m.md": "#music/genres\n"}) as kb:
        assert kb.tags(prefix).nearest == nearest
