"""``qmd summary``, ``qmd history`` and ``qmd restore``."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from support.cli import Scratch, filled


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path).with_env(LC_ALL="C.UTF-8")


def test_a_summary_is_written_appended_and_found(scratch: Scratch) -> None:
    path = scratch.root / "notes/week.md"
    done = scratch.ok("summary", "notes/week.md", "--content", "sourdough 🙂")
    assert done.out == f"Appended to {path}\n"
    assert path.read_bytes() == "sourdough 🙂".encode()
    assert scratch.ok("search", "sourdough", "--json").json()[0]["file"] == "notes/week.md"
    done = scratch.ok("summary", "notes/week.md", "--content", "second", "--json")
    assert done.json() == {
        "status": "success",
        "message": f"Appended to {path}",
        "file_path": str(path),
    }
    assert path.read_text().endswith("]\n\nsecond")
    done = scratch.ok("summary", "notes/week.md", "--content", "third", "--overwrite")
    assert done.out == f"Wrote {path}\n"
    assert path.read_text() == "third"


def test_a_summary_speaks_the_language_of_the_shell_and_the_note(scratch: Scratch) -> None:
    path = scratch.root / "notes/week.md"
    chinese = scratch.with_env(LC_ALL="zh_CN.UTF-8")
    for shell, before, heading in (
        (scratch, "# Week\n\nOne 备份.\n", "## Summary update"),
        (scratch, "# 一周\n\n备份完成。\n", "## 总结更新"),
        (chinese, "# Week\n", "## 总结更新"),
    ):
        path.write_text(before, "utf-8")
        said = shell.ok("summary", str(path), "--content", "x").out
        assert said.startswith("总结" if shell is chinese else "Appended to ")
        added = path.read_text("utf-8").removeprefix(before)
        assert re.fullmatch(rf"\n---\n\n{heading} \[[\d :-]+\]\n\nx\n", added)
    path.write_bytes(b"# Week\r\n")
    scratch.ok("summary", str(path), "--content", "x")
    assert path.read_bytes().endswith(b"\r\nx\r\n")
    assert not re.search(rb"[^\r]\n", path.read_bytes())
    refused = chinese.call("summary", "/etc/x.md", "--content", "x").err
    assert "写入文件失败" in refused
    assert "写入" not in scratch.call("summary", "/etc/x.md", "--content", "x").err


def test_a_first_summary_needs_no_database(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    assert scratch.call("summary", "week.txt", "--content", "x").code == 1
    assert not scratch.database.exists()
    done = scratch.run_raw("summary", "new/week.md", "-", stdin=b"\xef\xbb\xbfone\r\ntwo")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "new/week.md").read_bytes() == b"\xef\xbb\xbfone\r\ntwo"


def test_a_summary_takes_the_name_that_lists_show(tmp_path: Path) -> None:
    scratch = filled(tmp_path, {"vault/plan.md": "# Plan\n"})
    scratch.ok("collection", "rename", "vault", "work")  # no folder here has this name
    scratch.ok("summary", "work/plan.md", "--content", "first")
    assert "first" in (tmp_path / "vault/plan.md").read_text("utf-8")
    scratch.ok("summary", "qmd://work/new.md", "--content", "second")
    assert "second" in (tmp_path / "vault/new.md").read_text("utf-8")
    assert not (tmp_path / "work").exists()
    assert scratch.call("summary", "work/../../out.md", "--content", "x").code == 1
    (tmp_path / "work").mkdir()
    scratch.ok("summary", "work/here.md", "--content", "third")
    assert (tmp_path / "work/here.md").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("x.txt", "--content", "text"), "must end with .md or .markdown"),
        (("x.md", "--content", " \n"), "must not be empty"),
        (("../x.md", "--content", "text"), "must not contain '..'"),
        (("/etc/x.md", "--content", "text"), "--write-root /etc"),
    ],
)
def test_an_error_has_exit_code_one(
    scratch: Scratch, arguments: tuple[str, ...], message: str
) -> None:
    done = scratch.call("summary", *arguments)
    assert done.code == 1
    assert done.err.startswith("qmd: error: ")
    assert message in done.err
    done = scratch.call("summary", *arguments, "--json")
    assert done.code == 1
    assert done.json()["status"] == "error"
    assert message in done.json()["message"]
    assert done.error()["code"] == "summary_failed"


def test_the_content_comes_from_one_place_and_is_utf8(scratch: Scratch) -> None:
    assert scratch.call("summary", "x.md", "-", "--content", "x").code == 2
    assert scratch.call("summary", "x.md", "text").code == 2
    done = scratch.run_raw("summary", "x.md", "-", stdin=b"ab\xff")
    assert done.returncode == 1
    assert b"not UTF-8 at byte 3" in done.stderr
    assert not (scratch.root / "x.md").exists()


def test_write_roots_of_the_command_line_and_the_environment(scratch: Scratch) -> None:
    elsewhere = str(scratch.root / "docs")
    done = scratch.call("summary", "notes/x.md", "--content", "x", "--write-root", elsewhere)
    assert done.code == 1
    done = scratch.with_env(QMD_WRITE_ROOTS=elsewhere).call("summary", "x.md", "--content", "x")
    assert done.code == 1
    scratch.ok("summary", "docs/x.md", "--content", "x", "--write-root", elsewhere)


def test_history_lists_and_restore_brings_back(scratch: Scratch) -> None:
    path = scratch.root / "notes/week.md"
    for text in ("one", "two", "three"):
        scratch.ok("summary", "notes/week.md", "--content", text, "--overwrite")
    listed = scratch.ok("history", "notes/week.md", "--json").json()
    assert [(each["bytes"], each["tool"]) for each in listed] == [
        (3, "update_summary"),
        (3, "update_summary"),
    ]
    assert {each["path"] for each in listed} == {str(path)}
    newest, oldest = (each["revision"] for each in listed)
    lines = scratch.ok("history", str(path)).out.splitlines()
    assert [int(line.split()[0]) for line in lines] == [newest, oldest]
    assert scratch.run_raw("history", "notes/week.md", "--show", str(oldest)).stdout == b"one"
    for option in ("--change", "--revision"):  # the latter is its name before 1.8
        done = scratch.ok("restore", "notes/week.md", option, str(oldest))
        assert done.out == f"Restored {path} as it was before change {oldest}\n"
        assert path.read_text() == "one"
    assert "Undid: changed notes/week.md, " in scratch.ok("undo").out
    assert "Redid: changed notes/week.md, " in scratch.ok("undo", "--redo").out
    assert scratch.ok("restore", "qmd://notes/week.md", "--json").json()["path"] == str(path)
    assert path.read_text() == "three"
    assert scratch.ok("search", "three", "--json").json()[0]["file"] == "notes/week.md"
    path.unlink()
    scratch.ok("restore", "notes/week.md")
    assert path.read_text() == "three"  # as it was last, and not what the restore replaced


def test_no_history_is_no_error_and_nothing_to_restore_is_one(scratch: Scratch) -> None:
    done = scratch.ok("history", "notes/plan.md")
    assert (done.out, "No earlier content" in done.err) == ("", True)
    assert scratch.ok("history", "notes/plan.md", "--json").json() == []
    for arguments in (
        ("restore", "notes/plan.md"),
        ("restore", "notes/plan.md", "--revision", "1"),
        ("history", "notes/plan.md", "--show", "1"),
        ("restore", "qmd://nowhere/x.md"),
    ):
        done = scratch.call(*arguments, "--json")
        assert done.code == 1
        error = json.loads(done.err)["error"]
        assert error["hint"]
