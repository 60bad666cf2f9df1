"""The other files of a collection are known by name, so that links to them are not broken."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.ingest import scan as scanning
from qmd.ingest.collection_indexer import CollectionIndexer
from qmd.ingest.keep.watch import PollingWatch
from qmd.ingest.rules import Rules
from tests.support.embedder import HashEmbedder

FILES = {
    "note.md": "![[pic.png]]",
    "img/pic.png": "",
    "Albums.base": "",
    "drafts.md": "ignored",
    ".qmdignore": "drafts.md\nprivate/\n",
    ".hidden.png": "",
    "private/secret.png": "",
    "node_modules/x.png": "",
    "binary.md": "\0\1",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name, text in FILES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> Iterator[KnowledgeBase]:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        yield kb


def attachments(kb: KnowledgeBase) -> list[str]:
    with kb._store.reading() as reader:
        return reader.links.attachments("notes")


def indexer(kb: KnowledgeBase) -> CollectionIndexer:
    [collection] = kb.collections()
    return CollectionIndexer(kb._store, collection)


SEEN = ["Albums.base", "binary.md", "drafts.md", "img/pic.png"]


def test_files_in_sight_are_attachments(root: Path, kb: KnowledgeBase) -> None:
    assert attachments(kb) == SEEN


def test_changed_paths_bring_and_take_attachments(root: Path, kb: KnowledgeBase) -> None:
    (root / "img/pic.png").rename(root / "img/new.png")
    (root / "more").mkdir()
    (root / "more/a.pdf").touch()
    assert not indexer(kb).run_paths(["img/pic.png", "img/new.png", "more"]).changed
    assert attachments(kb) == ["Albums.base", "binary.md", "drafts.md", "img/new.png",
                                      "more/a.pdf"]  # fmt: skip
    assert not indexer(kb).run_paths([]).changed
    assert len(attachments(kb)) == 5
    (root / "binary.md").write_text("text", encoding="utf-8")
    assert indexer(kb).run_paths(["binary.md"]).added == 1
    assert "binary.md" not in attachments(kb)


def test_what_obsidian_leaves_out_of_its_search_can_be_linked_to(
    root: Path, kb: KnowledgeBase
) -> None:
    for name in ("Templates/deep/daily.md", "Templates/.git/x", "Templates/node_modules/y.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    (root / ".obsidian").mkdir()
    (root / ".obsidian/app.json").write_text('{"userIgnoreFilters": ["Templates/"]}')
    kb.index()
    assert attachments(kb) == sorted([*SEEN, "Templates/deep/daily.md"])
    (root / "Templates/new.md").touch()
    assert not indexer(kb).run_paths(["Templates/new.md"]).changed
    assert attachments(kb) == sorted([*SEEN, "Templates/deep/daily.md", "Templates/new.md"])


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root reads every folder")
def test_attachments_in_an_unreadable_folder_stay(root: Path, kb: KnowledgeBase) -> None:
    folder = root / "img"
    folder.chmod(0)
    try:
        kb.index()
    finally:
        folder.chmod(0o755)
    assert attachments(kb) == SEEN


def test_a_polling_watch_reports_new_and_removed_attachments(root: Path, kb: KnowledgeBase) -> None:
    reported: list[str] = []
    watch = PollingWatch(root, Rules(root, "**/*.md", []), reported.extend, 1)
    (root / "new.png").touch()
    (root / "Albums.base").unlink()
    watch.look()
    # A note that was written just before the first look is reported, too: it may change unseen.
    assert sorted(each for each in reported if not each.endswith(".md")) == [
        "Albums.base",
        "new.png",
    ]


def test_a_tree_of_other_files_is_named_up_to_a_bound(
    root: Path, kb: KnowledgeBase, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scanning, "MAX_OTHERS", 2)
    (root / "b.png").touch()
    kb.index()
    assert attachments(kb) == ["Albums.base", "b.png", "binary.md"]
