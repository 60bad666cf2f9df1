"""Claude Code and Codex give each session that ends to qmd, which makes a note of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from qmd.clients import install
from qmd.clients.install import HOOKS
from qmd.errors import InputError
from tests.support.cli import Scratch

CLAUDE_CODE, CODEX = HOOKS
BELL = '{"hooks": [{"type": "command", "command": "bell"}]}'


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / ".claude/settings.json"
    file.parent.mkdir()
    return file


def test_a_hook_comes_beside_others_and_goes_again(tmp_path: Path, settings: Path) -> None:
    before = f'{{\n  "model": "x",\n  "hooks": {{"SessionEnd": [{BELL}], "Stop": []}}\n}}\n'
    settings.write_text(before)
    install.make(install.plan_hook(CLAUDE_CODE, tmp_path, "/bin/qmd import claude-code -"))
    install.make(install.plan_hook(CLAUDE_CODE, tmp_path, "/bin/qmd --db a import claude-code -"))
    hooks = json.loads(settings.read_text())["hooks"]
    assert hooks["SessionEnd"][0] == json.loads(BELL)
    [ours] = hooks["SessionEnd"][1]["hooks"]
    assert ours["command"] == "/bin/qmd --db a import claude-code -"
    install.make(install.plan_hook(CLAUDE_CODE, tmp_path, None))
    assert settings.read_text() == before


def test_what_changed_since_stays_when_the_hook_goes(tmp_path: Path, settings: Path) -> None:
    install.make(install.plan_hook(CLAUDE_CODE, tmp_path, "qmd import claude-code -"))
    changed = settings.read_text().replace("{", '{\n  "model": "y",', 1)
    settings.write_text(changed)
    install.make(install.plan_hook(CLAUDE_CODE, tmp_path, None))
    rest = json.loads(settings.read_text())
    assert rest["model"] == "y"
    assert "SessionEnd" not in rest.get("hooks", {})
    with pytest.raises(InputError, match="no hook of qmd"):
        install.plan_hook(CLAUDE_CODE, tmp_path, None)
    settings.write_text('{"hooks": {"SessionEnd": 3}}')
    with pytest.raises(InputError, match="no list"):
        install.plan_hook(CLAUDE_CODE, tmp_path, "qmd import claude-code -")


def test_the_command_of_the_hook_makes_the_note(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (tmp_path / "notes").mkdir()
    scratch.ok("collection", "add", "notes", "--name", "notes")
    scratch.ok("mcp", "install", "claude-code", "--hooks", "--yes")
    file = Path(scratch.environment["HOME"]) / ".claude/settings.json"
    [group] = json.loads(file.read_text())["hooks"]["SessionEnd"]
    words = shlex.split(group["hooks"][0]["command"])
    transcript = tmp_path / "s.jsonl"
    said = {"type": "user", "message": {"content": "Why?"}, "timestamp": "2026-11-20T10:00:00Z"}
    transcript.write_text(json.dumps(said))
    sent = json.dumps({"session_id": "s", "transcript_path": str(transcript)}).encode()
    planned = scratch.ok("import", "claude-code", str(transcript), "--dry-run")
    assert planned.out.startswith("Would write 1 new note to notes/conversations")
    done = scratch.run_raw(*words[words.index("import") :], stdin=sent)
    assert done.returncode == 0, done.stderr
    assert [each.name for each in tmp_path.rglob("2026*.md")] == ["2026-11-20 Why s.md"]
    refused = scratch.run_raw("import", "claude-code", "-", stdin=b"{}")
    assert b"names no transcript" in refused.stderr


def test_codex_has_the_same_hook(tmp_path: Path) -> None:
    scratch = Scratch(tmp_path)
    (tmp_path / "notes").mkdir()
    scratch.ok("collection", "add", "notes", "--name", "notes")
    assert "/hooks in Codex" in scratch.ok("mcp", "install", "codex", "--hooks", "--yes").out
    file = Path(scratch.environment["HOME"]) / ".codex/hooks.json"
    [group] = json.loads(file.read_text())["hooks"]["SessionEnd"]
    assert group["hooks"][0]["command"].endswith("import codex -")
    assert group["hooks"][0]["timeout"] == 3
    rollout = tmp_path / "rollout-1.jsonl"
    content = [{"type": "input_text", "text": "Why?"}]
    rollout.write_text(json.dumps({"type": "message", "role": "user", "content": content}))
    sent = json.dumps({"transcript_path": str(rollout)}).encode()
    done = scratch.run_raw("import", "codex", "-", stdin=sent)
    assert done.returncode == 0, done.stderr
    assert [each.name for each in tmp_path.rglob("Why*.md")] == ["Why rollout-.md"]
    scratch.ok("mcp", "install", "codex", "--hooks", "--undo", "--yes")
    assert not file.exists()
    refused = scratch.call("mcp", "install", "zed", "--hooks", "--yes")
    assert "claude-code, codex" in refused.err
