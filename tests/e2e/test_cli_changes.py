"""The commands that change notes and undo that, that make tokens, and that copy."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.cli import Scratch, filled


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path)


def test_a_note_is_deleted_moved_and_restored(scratch: Scratch) -> None:
    plan = scratch.root / "notes/plan.md"
    assert scratch.ok("undo", "--list").err == "No changes are kept.\n"
    assert "plan.md" in scratch.ok("rm", "notes/plan.md", "--preview").out
    assert plan.exists()
    assert "notes/plan.md" in scratch.ok("rm", "notes/plan.md").out
    assert not plan.exists()
    scratch.ok("undo")
    assert plan.exists()
    assert scratch.ok("mv", "notes/plan.md", "later", "--json").json()["file"] == "notes/later.md"
    assert "later.md" in scratch.ok("mv", "notes/later.md", "soon").out
    changes = scratch.ok("undo", "--list", "--json").json()
    assert [change["tool"] for change in changes] == [
        *("move_note", "move_note", "undo", "delete_note"),
    ]
    soon, later, undo, _ = [change["change"] for change in changes]
    listed = scratch.ok("history").out
    assert listed == scratch.ok("undo", "--list").out
    assert re.search(rf"{later}  20\d\d-\d\d-\d\d \d\d:\d\d  move_note  \w+-\w+\n", listed)
    assert "        moved    notes/later.md\n              to  notes/soon.md\n" in listed
    assert f"undone by {undo}" in listed
    assert len(scratch.ok("history", "-n", "1", "--json").json()) == 1
    assert "Undid: moved notes/later.md to notes/soon.md, " in scratch.ok("undo", f"{soon}").out
    assert "Redid: moved notes/later.md to notes/soon.md, " in scratch.ok("undo", "--redo").out
    assert "notes/later.md" in scratch.ok("undo").out
    (scratch.root / "notes/later.md").write_text("# Changed by hand\n")
    refused = scratch.call("undo", f"{later}", "--json")
    assert refused.code == 1
    assert refused.json()["refused"]
    for arguments in (["3", "--session", "cli"], ["3", "--redo"], ["--redo", "--session", "cli"]):
        assert scratch.call("undo", *arguments).code == 2
    assert scratch.call("undo", "--session", "nobody").code == 1


def test_tokens_are_made_listed_and_revoked(scratch: Scratch) -> None:
    assert scratch.ok("token", "list").out.startswith("No tokens.")
    assert scratch.ok("audit", "--token", "anna").out == "Nothing was written.\n"
    made = scratch.ok("token", "create", "anna", "--read", "notes", "--expires", "90d")
    assert made.out.startswith("qmd_")
    assert re.search(r"reads notes, expires 20\d\d-\d\d-\d\d \d\d:\d\d", made.err)
    scratch.ok("token", "create", "bob", "--write", "notes", "--json")
    listed = scratch.ok("token", "list").out
    assert "bob: writes notes, never used" in listed
    assert [each["name"] for each in scratch.ok("token", "list", "--json").json()] == [
        "anna",
        "bob",
    ]
    scratch.ok("collection", "remove", "notes")
    assert "anna: opens nothing" in scratch.ok("token", "list").out
    assert scratch.ok("token", "revoke", "anna").out == "Revoked token anna\n"
    assert scratch.ok("token", "revoke", "bob", "--json").json()["name"] == "bob"
    assert scratch.call("token", "revoke", "bob").code == 1
    shown = scratch.ok("audit").out
    assert "(administrator)  cli  " in shown
    assert len(scratch.ok("audit", "-n", "1", "--json").json()) == 1


def test_a_knowledge_base_is_copied_into_another_file(scratch: Scratch) -> None:
    copied = scratch.ok("migrate-to", "copy.sqlite").out
    assert "2 collections · 5 documents new, 0 unchanged" in copied
    again = scratch.ok("migrate-to", "copy.sqlite", "--json").json()
    assert (again["documents"], again["unchanged"]) == (0, 5)
    assert "notes/plan.md" in scratch.ok("--db", "copy.sqlite", "ls").out
    exported = scratch.ok("export", "out").out
    assert "2 collections · 0 contexts" in exported
    assert scratch.ok("export", "out", "--force", "--json").json()["collections"] == 2


def test_what_cannot_be_pushed_is_said_before_anything_is_sent(scratch: Scratch) -> None:
    nowhere = "http://127.0.0.1:1"
    for arguments, message in (
        (["notes", "notes", "--name", "x"], "--name is for one folder."),
        (["--name", "x"], "--name needs a folder."),
        (["nothing-here"], "nothing-here"),
        (["notes", "--token", "x"], "QMD_PUSH_TOKEN"),
        (["notes"], "127.0.0.1:1"),
    ):
        refused = scratch.call("push", nowhere, *arguments)
        assert refused.code != 0
        assert message in refused.err
    for name in ("notes", "docs"):
        scratch.ok("collection", "remove", name)
    assert "There is no collection here." in scratch.call("push", nowhere).err
