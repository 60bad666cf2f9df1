"""Opening: full paths, links in terminals, and ``qmd edit`` with a real program."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest

from tests.e2e.test_cli_terminal import on_terminal
from tests.support.cli import Scratch, filled

posix = pytest.mark.skipif(sys.platform == "win32", reason="scripts and terminals of POSIX")
NOTES = {
    "notes/plan.md": "# Road map\n\nWe sail.\n\n## Next steps\n\nBuy a boat.\n",
    "notes/计划 $(touch owned) 'x'.md": "# 计划\n\n买一条船。\n",
}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path, NOTES).with_env(TERM="xterm")


def editor(scratch: Scratch, name: str = "vim", *, exit_code: int = 0) -> str:
    """A program of this name that writes down its arguments; returns its path."""
    program = scratch.write(
        name,
        f"#!{sys.executable}\nimport json, sys\n"
        f"open({str(scratch.root / 'argv.json')!r}, 'w').write(json.dumps(sys.argv[1:]))\n"
        f"sys.exit({exit_code})\n",
    )
    program.chmod(0o755)
    return str(program)


def started_with(scratch: Scratch) -> list[str]:
    arguments: list[str] = json.loads((scratch.root / "argv.json").read_text())
    return arguments


@posix
class TestEdit:
    @pytest.mark.parametrize(
        ("name", "line"),
        [("plan.md", 1), ("notes/plan.md:7", 7), ("plan#Next steps", 5), ("[[plan]]", 1)],
    )
    def test_the_document_opens_at_the_line_or_heading(
        self, scratch: Scratch, name: str, line: int
    ) -> None:
        scratch.with_env(QMD_EDITOR=editor(scratch)).ok("edit", name)
        assert started_with(scratch) == [f"+{line}", str(scratch.root / "notes/plan.md")]

    def test_no_shell_reads_the_name_of_a_file(self, scratch: Scratch) -> None:
        scratch.with_env(QMD_EDITOR=f"{editor(scratch)} -R").ok("edit", "计划")
        path = scratch.root / "notes/计划 $(touch owned) 'x'.md"
        assert started_with(scratch) == ["-R", "+1", str(path)]
        assert not list(scratch.root.rglob("owned"))

    def test_the_setting_beats_visual_and_visual_beats_editor(self, scratch: Scratch) -> None:
        used = editor(scratch)
        missing = str(scratch.root / "missing")
        scratch.with_env(EDITOR=used).ok("edit", "plan")
        scratch.with_env(VISUAL=used, EDITOR=missing).ok("edit", "plan")
        scratch.with_env(QMD_EDITOR=used, VISUAL=missing).ok("edit", "plan")
        scratch.with_env(QMD_EDITOR=missing).ok("edit", "plan", "--editor", used)

    def test_without_an_editor_it_says_what_to_set(self, scratch: Scratch) -> None:
        result = scratch.run("edit", "plan")
        assert result.code == 1
        assert "No editor is set." in result.err
        assert "QMD_EDITOR" in result.err
        assert "EDITOR" in result.err

    def test_an_editor_that_is_missing_or_fails_is_an_error(self, scratch: Scratch) -> None:
        result = scratch.with_env(EDITOR="/nowhere/vim").run("edit", "plan")
        assert result.code == 1
        assert "'/nowhere/vim' cannot be started" in result.err
        result = scratch.with_env(EDITOR=editor(scratch, exit_code=3)).run("edit", "plan")
        assert result.code == 1
        assert "exit code 3" in result.err

    def test_a_file_that_is_gone_is_not_created_anew(self, scratch: Scratch) -> None:
        used = editor(scratch)
        (scratch.root / "notes/plan.md").unlink()
        result = scratch.with_env(EDITOR=used).run("edit", "plan")
        assert result.code == 1
        assert "qmd index" in result.err
        assert not (scratch.root / "argv.json").exists()

    def test_the_setting_is_listed(self, scratch: Scratch) -> None:
        listed = scratch.with_env(QMD_EDITOR="obsidian").ok("config", "--json").json()
        assert "obsidian" in json.dumps(listed)


class TestFullPath:
    def test_every_format_names_the_file_on_the_disk(self, scratch: Scratch) -> None:
        path = str(scratch.root / "notes/plan.md")
        args = ["search", "sail", "--full-path"]
        [hit] = scratch.ok(*args, "--json").json()
        assert hit["file"] == path
        assert (hit["collection"], hit["path"]) == ("notes", "plan.md")
        assert hit["uri"] == "qmd://notes/plan.md"
        [row] = csv.DictReader(scratch.ok(*args, "--csv").out.splitlines())
        assert row["file"] == path
        for output in ("cli", "md", "xml", "files"):
            assert path in scratch.ok(*args, "--format", output).out

    def test_it_reads_and_lists_too(self, scratch: Scratch) -> None:
        path = str(scratch.root / "notes/plan.md")
        assert path in scratch.ok("ls", "--full-path").out
        assert path in [each["file"] for each in scratch.ok("ls", "--full-path", "--json").json()]
        assert scratch.ok("get", "plan", "--full-path", "--json").json()["file"] == path
        assert f"==> {path} <==" in scratch.ok("multi-get", "plan.md", "--full-path").out
        assert "We sail." in scratch.ok("get", path).out


@posix
class TestLinks:
    def test_a_hit_is_a_link_that_opens_it_at_its_line(self, scratch: Scratch) -> None:
        path = scratch.root / "notes/plan.md"
        chosen = scratch.with_env(QMD_EDITOR="vscode")
        code, shown = on_terminal(chosen, "search", "sail")
        assert code == 0
        start = f"\x1b]8;;vscode://file{path}:3:1\x1b\\"
        assert f"{start}\x1b[35mnotes/plan.md\x1b[0m\x1b[32m:3\x1b[0m\x1b]8;;\x1b\\" in shown
        _, shown = on_terminal(scratch, "ls")
        assert f"\x1b]8;;{path.as_uri()}\x1b\\" in shown
        _, shown = on_terminal(scratch.with_env(QMD_EDITOR="obsidian"), "multi-get", "plan.md")
        assert "\x1b]8;;obsidian://open?path=" in shown

    @pytest.mark.parametrize(
        "env", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"TERM": "linux"}, {"FORCE_HYPERLINK": "0"}]
    )
    def test_links_can_be_declined(self, scratch: Scratch, env: dict[str, str]) -> None:
        _, shown = on_terminal(scratch.with_env(**env), "search", "sail")
        assert "plan.md" in shown
        assert "\x1b]8" not in shown

    def test_a_pipe_has_no_links_unless_they_are_forced(self, scratch: Scratch) -> None:
        assert "\x1b]8" not in scratch.ok("search", "sail").out
        forced = scratch.with_env(FORCE_HYPERLINK="1")
        assert "\x1b]8;;file://" in forced.ok("search", "sail").out
        assert "\x1b" not in forced.ok("search", "sail", "--json").out
        assert "\x1b" not in forced.ok("search", "sail", "--format", "md").out


class TestDoctor:
    @pytest.mark.parametrize(
        ("name", "status", "message"),
        [
            ("no-such-editor --wait", "warning", "there is no program 'no-such-editor'"),
            ("'unbalanced", "warning", "is no command"),
            (f"'{Path(sys.executable).as_posix()}' -c 0", "ok", "'qmd edit' starts "),
        ],
    )
    def test_doctor_checks_the_program_of_the_editor(
        self, scratch: Scratch, name: str, status: str, message: str
    ) -> None:
        checks = scratch.with_env(QMD_EDITOR=name).call("doctor", "--json").json()
        (check,) = (check for check in checks if check["name"] == "editor")
        assert check["status"] == status
        assert message in check["message"]
