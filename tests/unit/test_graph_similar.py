"""Similar documents, by vectors that count words (`HashEmbedder`)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.embedder import HashEmbedder

from qmd import KnowledgeBase, Settings
from qmd.errors import DocumentNotEmbeddedError, VectorIndexMissingError

WORDS = ["harbour", "boat", "sail", "anchor", "rope", "wind", "tide", "mast"]
NOTES = {
    "sailing.md": "# Sailing\n\nThe boat has a sail and an anchor in the harbour.\n\n[[harbour]]\n",
    "harbour.md": "# Harbour\n\nThe harbour has a boat with a sail and an anchor.\n",
    "boats.md": "# Boats\n\nA boat with an anchor and a sail, in the harbour.\n",
    "bread.md": "# Bread\n\nFlour, water, salt and yeast rise overnight in a bowl.\n",
    "empty.md": "",
    "long.md": "\n\n".join(f"# Part {n}\n\n{WORDS[n % 8]} {n} " + "word " * 80 for n in range(300)),
}


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    (tmp_path / "notes").mkdir()
    for name, text in NOTES.items():
        (tmp_path / "notes" / name).write_text(text)
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="notes")
        kb.index()
        yield kb


def test_similar_documents_come_first_and_say_whether_they_are_linked(kb: KnowledgeBase) -> None:
    kb.embed()
    similar = kb.similar("sailing.md", limit=3).documents
    assert {each.file for each in similar[:2]} == {"notes/harbour.md", "notes/boats.md"}
    linked = {each.file: each.linked for each in similar}
    assert (linked["notes/harbour.md"], linked["notes/boats.md"]) == (True, False)
    back = {each.file: each.linked for each in kb.similar("harbour.md").documents}
    assert back["notes/sailing.md"] and not back["notes/boats.md"]
    assert all(0 <= each.similarity <= 1 and each.line >= 1 for each in similar)
    assert "notes/sailing.md" not in linked


def test_the_same_text_has_similarity_one(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "notes" / "copy.md").write_text(NOTES["sailing.md"])
    kb.index()
    kb.embed()
    best = kb.similar("sailing.md", limit=1).documents[0]
    assert (best.file, best.similarity) == ("notes/copy.md", 1.0)


def test_a_long_document_is_compared_in_part(kb: KnowledgeBase) -> None:
    kb.embed()
    assert len(kb.similar("long.md").documents) == 4


def test_without_vectors_the_error_says_what_to_do(kb: KnowledgeBase, tmp_path: Path) -> None:
    with pytest.raises(VectorIndexMissingError, match="qmd embed"):
        kb.similar("sailing.md")
    kb.embed()
    (tmp_path / "notes" / "new.md").write_text("# New\n\nNot embedded yet.\n")
    kb.index()
    for file in ("new.md", "empty.md"):
        with pytest.raises(DocumentNotEmbeddedError) as caught:
            kb.similar(file)
        assert f"notes/{file} has no vectors" in str(caught.value)


def test_only_documents_of_one_collection_are_compared(kb: KnowledgeBase, tmp_path: Path) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "boat.md").write_text(NOTES["boats.md"])
    kb.add_collection(tmp_path / "more", name="more")
    kb.index()
    kb.embed()
    assert [each.file for each in kb.similar("sailing.md", collection="more").documents] == [
        "more/boat.md"
    ]
