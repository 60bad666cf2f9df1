"""A conversation at a terminal, line by line, with what each command of it shows."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from qmd import KnowledgeBase, Settings
from qmd.agent.chat import Chats
from qmd.cli.ask_view import consent
from qmd.cli.chat_talk import Talk
from qmd.settings import BackendSettings
from tests.support.live import put
from tests.support.model_server import Call, ModelServer, fails, says

Hold = Callable[..., str]


@pytest.fixture
def hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Hold:
    """Types lines, and returns what is shown."""
    put(tmp_path / "notes" / "plan.md", "# Plan\n\nWe deploy in March.\n")

    def talk(steps: list[Callable[[Call], None]], *lines: str, **options: Any) -> str:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        with ModelServer(*steps) as server:
            settings = Settings(backends=BackendSettings(llm_url=server.url))
            with KnowledgeBase.open(tmp_path / "q.sqlite", settings, create=True) as kb:
                if not kb.collections():
                    kb.add_collection(tmp_path / "notes")
                    kb.index()
                chats = Chats(
                    kb,
                    may_write=options.pop("may_write", True),
                    confirm=consent(yes=options.get("yes", False)),
                )
                try:
                    chosen = {"mode": "read", "yes": False} | options
                    Talk(kb, chats, "the model", **chosen).hold("")
                finally:
                    chats.close()
        shown = capsys.readouterr()
        return shown.out + shown.err

    return talk


def block(tool: str, **params: Any) -> str:
    return f"```json:tool\n{json.dumps({'tool': tool, 'params': params})}\n```"


def test_questions_follow_each_other_until_the_input_ends(hold: Hold) -> None:
    shown = hold([says("In March."), says("Both lines.")], "when?", '"""one', 'two"""')
    assert "In March." in shown
    assert "Both lines." in shown
    assert "as agent · mode read: it only reads · /help" in shown


def test_commands(hold: Hold, tmp_path: Path) -> None:
    shown = hold(
        [says("In March.")],
        *("/help", "/nothing", "/retry", "/name x", "/export x.md", "/mode", "/mode other"),
        *("/mode write", "/mode read", "when?", "/name Dates", "/export notes/dates.md", "/list"),
        *("/open zzz", "/new", "/exit", "never read"),
    )
    for text in (
        "/export NOTE",
        "No such command: /nothing",
        "There is nothing to resume",
        "/mode read or /mode write",
        "Mode write: it may write what you agree to.",
        "Renamed to Dates",
        "Wrote notes/dates.md",
        "  Dates",
        "qmd: error: ",
        "A new conversation.",
    ):
        assert text in shown
    assert "In March." in (tmp_path / "notes/dates.md").read_text()


def test_a_conversation_is_opened_again(hold: Hold) -> None:
    ident = hold([says("In March.")], "when?", "/list").split("  when?")[0].split()[-1]
    shown = hold([says("The rest.")], f"/open {ident}", "/retry", "and then?", "/quit")
    assert "> when?\n" in shown
    assert "The rest." in shown


def test_an_error_of_the_model_ends_the_turn_and_not_the_conversation(hold: Hold) -> None:
    shown = hold([fails(400), says("Again.")], "when?", "and now?")
    assert "qmd: error: " in shown
    assert "Again." in shown


def test_nothing_is_written_without_consent(hold: Hold, tmp_path: Path) -> None:
    write = says(block("create_note", path="notes/new", content="x"))
    refused = hold([write, says("Not written.")], "/mode write", "write it", may_write=False)
    assert "Nothing may be written here." in refused
    assert not (tmp_path / "notes/new.md").exists()
    hold([write, says("Done.")], "write it", mode="write", yes=True)
    assert (tmp_path / "notes/new.md").read_text() == "x"
