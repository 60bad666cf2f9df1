"""What `kb.details` tells of a document besides its text."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.errors import DocumentNotFoundError

NOTE = """---
rating: 4.5
people: [Ann, 李雷]
tags: [work, work/boat]
aliases: [The plan]
date: 2025-03-01
nested: {a: {b: true}}
---
# Plan

Some #text too.
"""


def test_details_of_a_document(tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / ".obsidian").mkdir(parents=True)
    (vault / "plan.md").write_text(NOTE)
    (vault / "bare.md").write_text("Nothing besides.\n")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(vault, name="vault")
        kb.index()
        details = kb.details("The plan")
        assert details.document.file == "vault/plan.md"
        assert list(details.properties) == ["rating", "people", "tags", "aliases", "date", "nested"]
        assert details.properties["people"] == ["Ann", "李雷"]
        assert details.properties["nested"] == {"a": {"b": True}}
        assert details.tags == ("text", "work", "work/boat")
        assert details.aliases == ("The plan",)
        assert details.date == "2025-03-01"
        assert details.warnings == ()
        assert (details.root, details.is_vault) == (str(vault), True)
        bare = kb.details("vault/bare.md")
        assert (bare.date, bare.properties, bare.tags, bare.aliases) == (None, {}, (), ())
        with pytest.raises(DocumentNotFoundError):
            kb.details("none")
