"""Links in a note, links to it, links that lead nowhere, and documents without links to them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import CollectionNotFoundError, DocumentNotFoundError, InputError
from qmd.values import Link

NOTES = {
    "MOC.md": (
        "# Map\n\nSee [[plan]], [[Plan#Goals|goals]] and [[plan#Costs]].\n"
        "![[photo.png]] ![[gone.png]]\n"
        "[web](https://example.org) [md](2025/plan.md) [gone](2025/none.md)\n"
        "[[#Map]] [[plan#^b1]] [[plan#^b2]]\n"
    ),
    "2025/plan.md": "# Plan\n\n## Goals\n\nWin. ^b1\n\n![[MOC]]\n",
    "2024/plan.md": "---\naliases: [Old roadmap]\n---\n# Last year\n\n[[2025/plan]] [[plan]]\n",
    "alone.md": "# Alone\n\n[[alone]] [[Old roadmaps]] [[Lonely title]]\n",
    "titled.md": "---\ntitle: Lonely titles\n---\n",
    "photo.png.md": "# About a photo\n",
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "notes" / name).write_text(text, encoding="utf-8")
    (tmp_path / "notes" / "photo.png").write_bytes(b"")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.index()
        yield kb


def test_the_links_of_a_note_in_order_with_what_they_lead_to(kb: KnowledgeBase) -> None:
    links = kb.links("MOC.md")
    assert links.file == "notes/MOC.md"
    assert [(link.line, link.target, link.state, link.file) for link in links.links] == [
        (3, "plan", "document", "notes/2024/plan.md"),
        (3, "Plan#Goals", "section missing", "notes/2024/plan.md"),
        (3, "plan#Costs", "section missing", "notes/2024/plan.md"),
        (4, "photo.png", "attachment", "notes/photo.png"),
        (4, "gone.png", "nothing", None),
        (5, "https://example.org", "web", None),
        (5, "2025/plan.md", "document", "notes/2025/plan.md"),
        (5, "2025/none.md", "nothing", None),
        (6, "#Map", "document", "notes/MOC.md"),
        (6, "plan#^b1", "section missing", "notes/2024/plan.md"),
        (6, "plan#^b2", "section missing", "notes/2024/plan.md"),
    ]
    assert links.total == 11
    assert len(kb.links("MOC.md", limit=2).links) == 2


def test_links_of_a_text_that_is_not_stored_are_resolved(kb: KnowledgeBase) -> None:
    links = [
        Link("wikilink", "plan", None, None, None, 1),
        Link("link", "plan.md", None, "Goals", None, 2),
        Link("image", "../photo.png", None, None, None, 3),
        Link("wikilink", "gone", None, None, None, 4),
        Link("wikilink", "", None, "Here", None, 5),
    ]
    targets = kb.link_targets("notes/2025/new.md", links)
    assert [(each.line, each.state, each.file) for each in targets] == [
        (1, "document", "notes/2025/plan.md"),
        (2, "document", "notes/2025/plan.md"),
        (3, "attachment", "notes/photo.png"),
        (4, "nothing", None),
        (5, "document", "notes/2025/new.md"),
    ]
    with pytest.raises(CollectionNotFoundError):
        kb.link_targets("none/new.md", links)


def test_backlinks_have_the_line_that_links(kb: KnowledgeBase) -> None:
    backlinks = kb.backlinks("2025/plan.md")
    assert [(link.file, link.line, link.text, link.kind) for link in backlinks.links] == [
        ("notes/2024/plan.md", 6, "[[2025/plan]] [[plan]]", "wikilink"),
        (
            "notes/MOC.md",
            5,
            "[web](https://example.org) [md](2025/plan.md) [gone](2025/none.md)",
            "link",
        ),
    ]
    (embed,) = kb.backlinks("MOC.md").links
    assert (embed.kind, embed.text) == ("embed", "![[MOC]]")


def test_links_of_a_note_to_itself_are_no_backlinks(kb: KnowledgeBase) -> None:
    assert kb.backlinks("alone.md").total == 0
    with pytest.raises(DocumentNotFoundError):
        kb.backlinks("none.md")
    with pytest.raises(InputError):
        kb.links("MOC.md", limit=1001)


def test_broken_links_say_what_is_missing_and_what_is_nearest(kb: KnowledgeBase) -> None:
    broken = kb.broken_links()
    assert [(link.line, link.target, link.missing, link.nearest) for link in broken.links] == [
        (3, "Plan#Goals", "section", "notes/2024/plan.md"),
        (3, "plan#Costs", "section", "notes/2024/plan.md"),
        (4, "gone.png", "attachment", None),
        (5, "2025/none.md", "note", None),
        (6, "plan#^b1", "section", "notes/2024/plan.md"),
        (6, "plan#^b2", "section", "notes/2024/plan.md"),
        (3, "Old roadmaps", "note", "notes/2024/plan.md"),
        (3, "Lonely title", "note", "notes/titled.md"),
    ]
    assert broken.total == 8
    assert kb.broken_links(limit=1).total == 8


def test_broken_and_get_suggest_the_same_name(tmp_path: Path) -> None:
    typed = ["Old", "Old pln", "Road", "xy"]
    notes = {
        "Old plan of the harbour.md": "",
        "Old plan.md": "---\naliases: [Road map]\n---\n",
        "x.md": " ".join(f"[[{name}]]" for name in typed),
    }
    with indexed(tmp_path, notes) as kb:
        nearest = {link.target: link.nearest for link in kb.broken_links().links}
        for name in typed:
            with pytest.raises(DocumentNotFoundError) as caught:
                kb.get(name)
            assert nearest[name] == next(iter(caught.value.suggestions), None)
        assert nearest["Old"] == "notes/Old plan.md"


def test_orphans_are_the_documents_that_no_other_links_to(kb: KnowledgeBase) -> None:
    orphans = kb.orphans()
    assert [orphan.document.file for orphan in orphans.documents] == [
        "notes/alone.md",
        "notes/photo.png.md",
        "notes/titled.md",
    ]
    assert orphans.total == 3
    assert len(kb.orphans(limit=1).documents) == 1


def indexed(folder: Path, notes: dict[str, str]) -> KnowledgeBase:
    for name, text in notes.items():
        (folder / "notes" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "notes" / name).write_text(text, encoding="utf-8")
    kb = KnowledgeBase.open(folder / "index.sqlite", create=True)
    kb.add_collection(folder / "notes", name="notes")
    kb.index()
    return kb


def test_links_stay_in_their_collection(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "other.md").write_text("[[MOC]] [[alone]]\n")
    kb.add_collection(tmp_path / "more", name="more")
    kb.index()
    assert kb.backlinks("alone.md").total == 0
    assert [link.target for link in kb.broken_links(collection="more").links] == ["MOC", "alone"]
    assert [each.document.path for each in kb.orphans(collection="more").documents] == ["other.md"]


def test_notes_that_embed_each_other_in_a_circle(tmp_path: Path) -> None:
    notes = {"a.md": "![[b]]\n", "b.md": "![[c]]\n", "c.md": "![[a]]\n![[c]]\n"}
    with indexed(tmp_path, notes) as kb:
        assert kb.orphans().total == kb.broken_links().total == 0
        assert [link.file for link in kb.backlinks("notes/a.md").links] == ["notes/c.md"]


def test_ten_thousand_links_in_one_long_line(tmp_path: Path) -> None:
    notes = {
        "many.md": "words " + " ".join(f"[[n{n}]] [[hub]]" for n in range(10_000)),
        "hub.md": "",
    }
    with indexed(tmp_path, notes) as kb:
        assert kb.links("many.md").total == 20_000
        backlinks = kb.backlinks("hub.md", limit=3)
        assert backlinks.total == 10_000
        assert all(len(link.text) < 300 and "[[hub]]" in link.text for link in backlinks.links)
        broken = kb.broken_links(limit=5)
        assert (broken.total, len(broken.links)) == (10_000, 5)


def test_a_name_that_several_notes_have(tmp_path: Path) -> None:
    notes = {f"f{n}/index.md": "[[index]]\n" for n in range(30)}
    notes |= {"a.md": "[[f7/index]]\n", "f9/b.md": "[up](index.md)\n"}
    with indexed(tmp_path, notes) as kb:
        orphans = {orphan.document.path for orphan in kb.orphans().documents}
        assert orphans == {*notes} - {"f7/index.md", "f9/index.md"}
        assert [link.file for link in kb.backlinks("f9/index.md").links] == ["notes/f9/b.md"]


DOCUMENTATION = {
    "README.md": "[docs](docs/) [setup](docs/setup.md) [pictures](docs/img)\n",
    "setup.md": "# Setup of the root\n",
    "docs/README.md": "[setup](setup.md) [up](..) [none](none/) [[setup]]\n",
    "docs/setup.md": "[overview](.)\n",
    "docs/alone.md": "",
    "docs/img/a.png": "",
}


@pytest.mark.parametrize("is_vault", [False, True])
def test_a_folder_of_documentation_with_a_readme_in_every_folder(
    tmp_path: Path, is_vault: bool
) -> None:
    root = tmp_path / "notes"
    for name, text in DOCUMENTATION.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    if is_vault:
        (root / ".obsidian").mkdir()
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        states = [
            (link.target, link.state, link.file)
            for name in ("README.md", "docs/README.md")
            for link in kb.links(f"notes/{name}").links
        ]
        backlinks = [
            (link.file, link.target) for link in kb.backlinks("notes/docs/README.md").links
        ]
        orphans = [orphan.document.path for orphan in kb.orphans().documents]
        broken = [link.target for link in kb.broken_links().links]
    if is_vault:
        setup = "notes/setup.md"
        folders = [
            ("docs/", "nothing", None),
            ("docs/img", "nothing", None),
            ("..", "nothing", None),
        ]
        assert orphans == ["README.md", "docs/README.md", "docs/alone.md"]
        assert backlinks == []
        assert broken == ["docs/", "docs/img", "..", "none/", "."]
    else:
        setup = "notes/docs/setup.md"
        folders = [
            ("docs/", "document", "notes/docs/README.md"),
            ("docs/img", "folder", "notes/docs/img"),
            ("..", "document", "notes/README.md"),
        ]
        assert orphans == ["docs/alone.md"]
        assert backlinks == [("notes/README.md", "docs/"), ("notes/docs/setup.md", ".")]
        assert broken == ["none/"]
    assert states == [
        folders[0], ("docs/setup.md", "document", "notes/docs/setup.md"), folders[1],
        ("setup.md", "document", setup), folders[2], ("none/", "nothing", None),
        ("setup", "document", "notes/setup.md"),
    ]  # fmt: skip


def test_links_to_pages_of_logseq(tmp_path: Path) -> None:
    root = tmp_path / "graph"
    files = {
        "pages/x.md": "- [[a/b]] [[A/B c?]] [[Mar 1st, 2025]] [[mar 2nd, 2025]] [[a/none]]\n",
        "pages/a___b.md": "",
        "pages/a___b c%3F.md": "",
        "journals/2025_03_01.md": "",
    }
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(root, name="graph")
        kb.index()
        assert [link.file for link in kb.links("x").links] == [
            "graph/pages/a___b.md", "graph/pages/a___b c%3F.md", "graph/journals/2025_03_01.md",
            None, None,
        ]  # fmt: skip
        assert [kb.backlinks(name).total for name in list(files)[1:]] == [1, 1, 1]
        assert [each.document.path for each in kb.orphans().documents] == ["pages/x.md"]
        kb.move_note("graph/pages/a___b.md", "graph/pages/c.md")
    assert (root / "pages/x.md").read_text("utf-8").startswith("- [[c]] [[A/B c?]]")


def test_the_neighbourhood_is_two_links_wide_in_both_directions(kb: KnowledgeBase) -> None:
    near = kb.neighbourhood("2024/plan.md")
    files = [each.file for each in near.notes]
    assert [(each.file, each.steps) for each in near.notes] == [
        ("notes/2024/plan.md", 0),
        ("notes/MOC.md", 1),
        ("notes/2025/plan.md", 1),
    ]
    assert near.left_out == 0
    assert {(files[one], files[other]) for one, other in near.links} == {
        ("notes/MOC.md", "notes/2024/plan.md"),
        ("notes/MOC.md", "notes/2025/plan.md"),
        ("notes/2025/plan.md", "notes/MOC.md"),
        ("notes/2024/plan.md", "notes/2025/plan.md"),
    }
    nearest = kb.neighbourhood("2024/plan.md", most=2)
    assert [each.file for each in nearest.notes][1:] == ["notes/MOC.md"]
    assert nearest.left_out == 1
    assert len(kb.neighbourhood("alone.md").notes) == 1
