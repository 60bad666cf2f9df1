"""Every action of ``edit_note`` is described where models and people read of it."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from qmd.files.edits.note_editor import ACTIONS
from qmd.operations.editing import edit_note
from qmd.values.writing import EditAction, NoteEdit

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("action", get_args(EditAction))
def test_an_action_is_described(action: str) -> None:
    assert action in ACTIONS
    # So that a model need not guess what an action takes.
    assert action in str({each.name: each for each in edit_note.arguments}["action"].description)
    assert action in str(NoteEdit.__doc__)
    page = (ROOT / "docs/writing.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| `")]
    assert any(f"`{action}`" in row for row in rows)
