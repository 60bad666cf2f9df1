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
    assert "1 documents below it" in said.reason
