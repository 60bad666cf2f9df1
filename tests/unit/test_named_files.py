"""`why`, `history` and `restore` take every name of a document, and paths come first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import AmbiguousNameError, NotFoundError
from tests.support import writes
from tests.support.embedder import HashEmbedder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    for name, text in {
        "maps/MOC.md": "---\naliases: [Index of all]\n---\n# Maps\n",
        "a/plan.md": "# A\n",
        "b/plan.md": "# B\n",
        "skipped.txt": "x",
    }.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def kb(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        yield kb


@pytest.mark.parametrize("name", ["moc", "[[MOC|x]]", "Index of all", "Maps", "notes/maps/moc"])
def test_why_explains_a_document_by_any_name(kb: KnowledgeBase, name: str) -> None:
    explanation = kb.why(name)
    assert explanation.indexed
    assert explanation.path == "notes/maps/MOC.md"


def test_why_explains_the_file_that_is_there(kb: KnowledgeBase, root: Path) -> None:
    Path("MOC").write_text("x")
    assert not kb.why("MOC").indexed
    assert not kb.why(root / "skipped.txt").indexed
    assert not kb.why("notes/nothing.md").indexed
    assert not kb.why("qmd://nowhere/x.md").indexed
    with pytest.raises(AmbiguousNameError):
        kb.why("plan")


def test_history_and_restore_take_any_name(kb: KnowledgeBase, root: Path) -> None:
    file = root / "maps/MOC.md"
    writes.write(kb.files, file, b"# New\n", tool="test")
    kb.index()
    for name in ("moc", "[[MOC]]", "New", "notes/maps/MOC.md", str(file)):
        [revision] = kb.revisions.history(name)
        assert revision.path == str(file)
    assert kb.revisions.restore("moc").path == file
    assert file.read_text(encoding="utf-8").endswith("# Maps\n")


def test_the_history_of_a_removed_file_is_not_that_of_another(
    kb: KnowledgeBase, root: Path
) -> None:
    gone = root / "moc.md"
    gone.write_bytes(b"old")
    writes.write(kb.files, gone, b"new", tool="test")
    gone.unlink()
    kb.index()
    [revision] = kb.revisions.history("notes/moc.md")
    assert revision.path == str(gone)
    with pytest.raises(AmbiguousNameError):
        kb.revisions.history("plan")
    assert kb.revisions.history("notes/a/plan.md") == []
    with pytest.raises(NotFoundError):
        kb.revisions.restore("nothing-of-that-name")
