"""``qmd note``: the notes tools for people and scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from support.cli import NOTES, Scratch, filled


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path)


@pytest.fixture
def vault(tmp_path: Path) -> Scratch:
    """No database; a directory with one note."""
    scratch = Scratch(tmp_path)
    scratch.write("vault/sub/a.md", "text of a\n")
    return scratch


def test_stdin_becomes_the_note_byte_by_byte_and_comes_back_so(scratch: Scratch) -> None:
    data = b"\xef\xbb\xbfone\r\n\0 two \xf0\x9f\x99\x82\n\nno newline"
    done = scratch.run_raw("note", "create", "notes/raw", "-", stdin=data)
    assert (done.returncode, done.stdout) == (0, b"File created: notes/raw.md\n")
    assert (scratch.root / "notes/raw.md").read_bytes() == data
    assert scratch.run_raw("note", "read", "notes/raw").stdout == data
    done = scratch.run_raw("note", "create", "notes/raw", "--append", stdin=b"\xff\n")
    assert done.stdout == b"Content appended to: notes/raw.md\n"
    assert (scratch.root / "notes/raw.md").read_bytes() == data + b"\xff\n"


@pytest.mark.skipif(sys.platform == "win32", reason="arguments are no bytes there")
def test_a_text_argument_may_be_of_any_encoding(scratch: Scratch) -> None:
    scratch.ok("note", "create", "notes/a", "--content", "å🙂")
    assert (scratch.root / "notes/a.md").read_bytes() == "å🙂".encode()
    latin_1 = b"\xe5".decode("utf-8", "surrogateescape")
    scratch.ok("note", "create", "notes/a", "--overwrite", "--content", latin_1)
    assert (scratch.root / "notes/a.md").read_bytes() == b"\xe5"


def test_an_empty_stdin_that_nobody_asked_for_empties_no_note(scratch: Scratch) -> None:
    done = scratch.run_raw("note", "create", "notes/plan")
    assert done.returncode == 2
    assert b"no text on stdin" in done.stderr
    assert (scratch.root / "notes/plan.md").read_text() == NOTES["notes/plan.md"]
    assert scratch.run_raw("note", "create", "notes/plan", "--overwrite", "-").returncode == 0
    assert (scratch.root / "notes/plan.md").read_bytes() == b""


@pytest.mark.parametrize(
    "wrong", [["-", "--content", "x"], ["text"], ["text", "--content", "x"]], ids=str
)
def test_the_text_comes_from_one_place(scratch: Scratch, wrong: list[str]) -> None:
    assert scratch.call("note", "create", "notes/new", *wrong).code == 2
    assert not (scratch.root / "notes/new.md").exists()


def test_a_note_is_found_as_soon_as_it_is_written(scratch: Scratch) -> None:
    scratch.ok("note", "create", "notes/new/deep", "--content", "an aardvark")
    assert "notes/new/deep.md" in scratch.ok("search", "aardvark", "--files").out
    again = ("note", "create", "notes/new/deep", "--content", "a quagga")
    refused = scratch.call(*again)
    assert refused.code == 1
    assert refused.err == (
        "qmd: error: There is a note notes/new/deep.md already.\n"
        "hint: --overwrite replaces it, and --append adds the text to its end.\n"
    )
    assert "notes/new/deep.md" in scratch.ok("search", "aardvark", "--files").out
    assert scratch.ok(*again, "--overwrite").out == "File overwritten: notes/new/deep.md\n"
    assert scratch.ok("search", "aardvark", "--files").out == ""
    assert scratch.ok(*again, "--append").out == "Content appended to: notes/new/deep.md\n"
    assert scratch.call(*again, "--append", "--overwrite").code == 2


def test_lines_that_are_appended_stay_lines(scratch: Scratch) -> None:
    path = scratch.root / "notes/log.md"
    path.write_bytes(b"- first\r\n")
    scratch.ok("note", "create", "notes/log", "--append", "--content", "- second")
    scratch.ok("note", "create", "notes/log", "--append", "--content", "- third")
    assert path.read_bytes() == b"- first\r\n- second\r\n- third\r\n"
    scratch.run_raw("note", "create", "notes/log", "--append", "-", stdin=b"- fourth")
    assert path.read_bytes().endswith(b"- third\r\n- fourth")


def test_json_has_the_tools_result_and_more(scratch: Scratch) -> None:
    assert scratch.ok("note", "read", "备份", "--json").json() == {
        "success": True,
        "data": NOTES["notes/zh/备份.md"],
        "path": "notes/zh/备份.md",
    }
    assert scratch.ok("note", "list", "notes", "--json").json() == {
        "success": True,
        "data": "📁 2025\n📁 zh\n📄 plan.md",
        "path": "notes",
        "entries": [
            {"name": "2025", "type": "folder"},
            {"name": "zh", "type": "folder"},
            {"name": "plan.md", "type": "file"},
        ],
    }
    made = scratch.ok("note", "create", "notes/x", "--content", "x", "--json").json()
    assert made == {"success": True, "data": "File created: notes/x.md", "path": "notes/x.md"}


def test_another_note_than_the_one_named_is_told_beside_its_text(scratch: Scratch) -> None:
    read = scratch.ok("note", "read", "RETRO")
    assert read.out == NOTES["notes/2025/retro.md"]
    assert read.err == "RETRO.md: notes/2025/retro.md is the one note that is meant.\n"
    assert scratch.ok("note", "read", "notes/2025/retro").err == ""


def test_errors_name_what_was_meant_and_exit_with_1(scratch: Scratch) -> None:
    missing = scratch.call("note", "read", "notes/plans")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err == (
        "qmd: error: File not found: notes/plans.md\nhint: Did you mean: notes/plan.md\n"
    )
    unknown = scratch.call("note", "create", "nowhere/x", "--content", "x", "--json")
    assert unknown.error() == {
        "code": "invalid_path",
        "message": "Invalid path: no collection named 'nowhere' (collections: docs, notes)",
        "hint": "Run 'qmd note create --help'.",
    }


def test_the_vault_is_named_before_or_behind_the_command(vault: Scratch) -> None:
    for args in (["--vault", "vault", "list"], ["list", "--vault", "vault"]):
        assert vault.ok("note", *args).out == "📁 sub\n"
    assert vault.with_env(QMD_VAULT="vault").ok("note", "list", "sub").out == "📄 a.md\n"
    assert vault.ok("note", "read", "a", "--vault", "vault").out == "text of a\n"
    assert not vault.database.exists()


def test_only_what_writes_makes_a_database(vault: Scratch) -> None:
    assert vault.call("note", "list").code == 1
    assert vault.call("note", "create", "x/y", "--content", "x").code == 1
    assert not vault.database.exists()
    vault.ok("note", "create", "b", "--content", "b", "--vault", "vault")
    assert vault.database.exists()
    assert (vault.root / "vault/b.md").read_text() == "b"
    assert "📄 b.md" in vault.ok("note", "list", "--vault", "vault").out


def test_names_and_texts_reach_a_terminal_without_control_characters(scratch: Scratch) -> None:
    if sys.platform == "win32":
        pytest.skip("no such names")
    scratch.write("notes/esc/\x1b[2Jname.md", "x")
    assert scratch.ok("note", "list", "notes/esc").out == "📄 \\x1b[2Jname.md\n"
