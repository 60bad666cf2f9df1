"""``qmd note edit``, ``set`` and ``tick``: what the tool edit_note does, in the shell."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli import Scratch, filled

PLAN = "---\nstatus: draft\n---\n# Plan\n\n- [ ] Call the bank\n- [ ] Write\n\n## Log\n\nnothing\n"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path, {"notes/plan.md": PLAN})


def plan(scratch: Scratch) -> str:
    return (scratch.root / "notes/plan.md").read_text(encoding="utf-8")


def test_one_place_of_a_note_is_changed_and_undone(scratch: Scratch) -> None:
    done = scratch.ok("note", "edit", "plan", "append", "--heading", "Log", "--text", "- done")
    assert "+- done" in done.out
    assert plan(scratch).endswith("nothing\n\n- done\n")
    scratch.ok("undo")
    assert plan(scratch) == PLAN


def test_a_preview_writes_nothing(scratch: Scratch) -> None:
    arguments = ("replace", "--old", "draft", "--text", "final", "--preview", "--json")
    preview = scratch.ok("note", "edit", "plan", *arguments).json()
    assert "+status: final" in preview["diff"] and not preview["written"]
    assert plan(scratch) == PLAN


def test_the_text_comes_from_stdin(scratch: Scratch) -> None:
    command = ("note", "edit", "plan", "replace_section", "--heading", "Log", "--text", "-")
    assert scratch.run_raw(*command, stdin="船\n".encode()).returncode == 0
    assert plan(scratch).endswith("## Log\n\n船\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("done", "status: done"),
        ("3", "status: 3"),
        ("true", "status: true"),
        ('["a", "b"]', "status:\n  - a\n  - b"),
        ("NaN", "status: NaN"),
        ("9:30", 'status: "9:30"'),
        ("007", 'status: "007"'),
        ("1.5", "status: 1.5"),
        ("1e3", 'status: "1e3"'),
        ('["1.10", 1.10]', 'status:\n  - "1.10"\n  - "1.10"'),
        ("[1, [2]]", 'status: "[1, [2]]"'),
        ('{"a": 1}', 'status: "{\\"a\\": 1}"'),
    ],
)
def test_a_property_gets_a_value(scratch: Scratch, value: str, written: str) -> None:
    scratch.ok("note", "set", "plan", "status", value)
    assert plan(scratch).startswith(f"---\n{written}\n---\n")


def test_a_task_is_ticked_by_its_text_or_its_line(scratch: Scratch) -> None:
    scratch.ok("note", "tick", "plan", "Call the bank")
    scratch.ok("note", "tick", "plan", "7")
    assert plan(scratch).count("- [x]") == 2
    scratch.ok("note", "tick", "plan", "7", "--undo")
    scratch.ok("note", "tick", "plan.md:7")
    scratch.ok("note", "tick", "plan.md:7", "--undo")
    assert "plan.md:4" in scratch.call("note", "tick", "plan").err
    assert plan(scratch).count("- [x]") == 1


def test_what_cannot_be_done_is_said(scratch: Scratch) -> None:
    error = scratch.call("note", "edit", "plan", "replace", "--old", "x", "--text", "y", "--json")
    assert error.code == 1 and error.error()["code"]
    assert scratch.call("note", "edit", "plan", "paint").code == 2
    blank = ("note", "edit", "plan", "append", "--text", "y", "--if-docid", "")
    assert "'' is no docid" in scratch.call(*blank).err
    for name, value in (("status", "x\udcff"), ("x\udcff", "y")):
        half = scratch.call("note", "set", "plan", name, value, "--json")
        assert half.code == 1 and half.error()["code"]
    late = scratch.call("note", "edit", "plan", "append", "--text", "x", "--if-docid", "#abcdef")
    assert late.code == 1
    assert plan(scratch) == PLAN
