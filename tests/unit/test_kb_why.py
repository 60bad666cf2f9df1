"""`why` on what is no file."""

from pathlib import Path

from qmd import KnowledgeBase


def test_why_of_a_folder_counts_its_documents(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a.md").write_text("# A\n")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        said = kb.why(root / "sub")
    assert said.indexed
    assert "with 1 document below it" in said.reason


def test_why_of_a_file_that_was_skipped_says_it_in_a_sentence(tmp_path: Path) -> None:
    root = tmp_path / "notes"
    root.mkdir()
    (root / "picture.md").write_bytes(b"\xff\xd8\xff\xe0" + bytes(100))
    (root / "away.md").symlink_to("/nowhere/x.md")
    with KnowledgeBase.open(tmp_path / "q.sqlite", create=True) as kb:
        kb.add_collection(root)
        kb.index()
        picture, link = kb.why(root / "picture.md"), kb.why(root / "away.md")
    assert picture.reason.endswith("no document: binary. The file is a JPEG image, not text.")
    assert link.reason == "Symlink out of the collection: leads to /nowhere/x.md."
