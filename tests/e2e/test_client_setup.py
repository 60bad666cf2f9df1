"""``qmd setup`` and ``qmd mcp install`` with the configuration files of a home of its own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from support.cli import Scratch

from qmd.cli.clients import CLIENT_IDS
from qmd.clients.install import BY_HAND, CLIENTS

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="places of files in a POSIX home")

SETTINGS = '// mine\n{\n  "theme": "dark", // nice\n}\n'


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path, {"HOME": str(tmp_path / "home"), "XDG_CONFIG_HOME": ""})


def file_of(scratch: Scratch, client: str) -> Path:
    home = scratch.root / "home"
    return next(each for each in CLIENTS if each.id == client).file(home)


def test_the_command_line_knows_all_clients() -> None:
    assert tuple(client.id for client in (*CLIENTS, *BY_HAND)) == CLIENT_IDS


def test_an_entry_is_tried_added_found_by_doctor_and_taken_out(scratch: Scratch) -> None:
    file = file_of(scratch, "zed")
    scratch.write(str(file.relative_to(scratch.root)), SETTINGS)
    file.chmod(0o640)
    (scratch.root / "notes").mkdir()  # without a note, whose vector a server would make
    scratch.ok("collection", "add", "notes")
    shown = scratch.ok("mcp", "install", "zed", "--yes").out
    assert '+    "qmd": {' in shown
    assert "answers as qmd " in shown
    assert "// mine" in file.read_text()
    assert file.stat().st_mode & 0o777 == 0o640
    listed = {each["client"]: each for each in scratch.ok("setup", "--json").json()}
    assert (listed["zed"]["installed"], listed["zed"]["has_qmd"]) == (True, True)
    checks = scratch.call("doctor", "--json").json()
    (check,) = [each for each in checks if each["name"] == "client Zed"]
    assert check["status"] == "ok"
    assert "has this entry already" in scratch.ok("mcp", "install", "zed").out
    scratch.ok("mcp", "install", "zed", "--undo", "--yes")
    assert file.read_text() == SETTINGS
    assert list(file.parent.iterdir()) == [file]


def test_nothing_is_written_without_consent(scratch: Scratch) -> None:
    file = file_of(scratch, "cursor")
    refused = scratch.call("mcp", "install", "cursor")
    assert refused.code == 1
    assert "Add --yes" in refused.err
    assert '+    "qmd": {' in scratch.ok("mcp", "install", "cursor", "--dry-run").out
    printed = json.loads(scratch.ok("mcp", "install", "cherry-studio", "--print").out)
    assert printed["mcpServers"]["qmd"]["args"][-1] == "mcp"
    assert not file.exists()


@pytest.mark.parametrize("text", ["{", '{"mcpServers": []}', "{ // no comments here\n}"])
def test_a_file_that_cannot_be_changed_stays(scratch: Scratch, text: str) -> None:
    file = file_of(scratch, "cursor")
    scratch.write(str(file.relative_to(scratch.root)), text)
    result = scratch.call("mcp", "install", "cursor", "--yes")
    assert result.code == 1
    assert f"{file} cannot be changed" in result.err
    assert "--print" in result.err
    assert file.read_text() == text


def test_an_address_needs_a_server_that_runs(scratch: Scratch) -> None:
    result = scratch.call("mcp", "install", "cursor", "--http", "--yes")
    assert "No server of this database runs" in result.err
    assert "qmd up" in result.err


def test_an_entry_has_what_this_qmd_was_started_with(scratch: Scratch) -> None:
    scratch.extra.update(
        {"QMD_VAULT": str(scratch.root), "XDG_DATA_HOME": str(scratch.root / "data")}
    )
    options = ("--toolset", "notes", "--lang", "zh")
    printed = scratch.ok("mcp", "install", "cursor", *options, "--print").out
    entry = json.loads(printed)["mcpServers"]["qmd"]
    assert entry["args"][-5:] == ["mcp", *options]
    assert entry["env"]["QMD_VAULT"] == str(scratch.root)
    assert entry["env"]["XDG_DATA_HOME"] == str(scratch.root / "data")
    misplaced = scratch.call("mcp", "--toolset", "notes", "install", "cursor", "--print")
    assert "Write --toolset after 'install'" in misplaced.err
    not_its_own = scratch.call("mcp", "install", "cursor", "--lang", "zh", "--http")
    assert "--lang is for the server" in not_its_own.err


def test_a_name_is_one_that_all_clients_take(scratch: Scratch) -> None:
    for name in ("", "my notes", "a.b"):
        refused = scratch.call("mcp", "install", "codex", "--name", name, "--print")
        assert "take letters, digits, - and _" in refused.err
    assert "[mcp_servers.my-notes]" in (
        scratch.ok("mcp", "install", "codex", "--name", "my-notes", "--print").out
    )


def test_setup_tells_unreadable_files_and_no_clients(scratch: Scratch) -> None:
    scratch.extra["PATH"] = ""
    assert "No client is here." in scratch.ok("setup").out
    file = file_of(scratch, "cursor")
    scratch.write(str(file.relative_to(scratch.root)), "{")
    listed = scratch.ok("setup")
    assert "cannot be read: line 1: the text ends too early" in listed.err
    assert "cursor           unreadable" in listed.out


def test_a_file_that_cannot_be_changed_stops_no_other(scratch: Scratch) -> None:
    cursor, gemini = file_of(scratch, "cursor"), file_of(scratch, "gemini")
    for file in (cursor, gemini):
        scratch.write(str(file.relative_to(scratch.root)), '{\n  // mine\n  "a": 1\n}\n')
    gemini.write_text('{"a": 1}\n')
    zed = file_of(scratch, "zed")
    zed.parent.mkdir(parents=True)
    shown = scratch.ok("setup", "--print")
    assert shown.out.endswith("\nNot changed: Cursor\n")
    by_hand = shown.out.partition("to be added by hand:\n")[2]
    assert '"qmd": {' in by_hand.partition("\n}\n")[0]
    assert "plain JSON has no comments" in shown.err
    assert f"+++ {gemini}" in shown.out and f"+++ {zed}" in shown.out
    assert not zed.exists() and "qmd" not in cursor.read_text() + gemini.read_text()


def test_an_undo_takes_the_entry_out_whatever_the_earlier_file_is(scratch: Scratch) -> None:
    file = file_of(scratch, "gemini")
    file.parent.mkdir(parents=True)
    entry = json.loads(scratch.ok("mcp", "install", "gemini", "--print").out)
    file.write_text(json.dumps({"a": 1, **entry}))
    file.with_name(f"{file.name}.before-qmd").write_bytes(b"\xff no JSON")
    scratch.ok("mcp", "install", "gemini", "--undo", "--yes")
    assert json.loads(file.read_text()) == {"a": 1, "mcpServers": {}}
    assert list(file.parent.iterdir()) == [file]
