"""``qmd chat`` as people use it: at a terminal and in scripts."""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_cli_terminal import read_terminal
from tests.support.cli import TIMEOUT_S, Result, Scratch, filled
from tests.support.model_server import Call, ModelServer, fails, says

posix = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals of POSIX")


def block(tool: str, **params: Any) -> str:
    return f"```json:tool\n{json.dumps({'tool': tool, 'params': params})}\n```"


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path)


def chat(scratch: Scratch, server: ModelServer, *args: str) -> Result:
    return scratch.with_env(QMD_LLM_URL=server.url).call("chat", *args)


class TestScripts:
    def test_one_question_after_the_other(self, scratch: Scratch) -> None:
        steps = says(block("search", query="parser")), says("In March."), says("The parser.")
        with ModelServer(*steps) as server:
            first = chat(scratch, server, "when", "do", "we", "deploy?")
            assert (first.code, first.out) == (0, "In March.\n")
            second = chat(scratch, server, "--continue", "--json", "and why?")
            reply = json.loads(second.out)
            assert (reply["answer"], reply["number"], reply["status"]) == ("The parser.", 2, "done")
            assert [each["role"] for each in server.requests[-1].messages] == [
                "system", "user", "assistant", "user", "assistant", "user",
            ]  # fmt: skip
            third = chat(scratch, server, "--chat", reply["chat"][:6], "more?")
            assert third.code == 0

    def test_each_line_of_a_pipe_is_a_question_of_one_conversation(self, scratch: Scratch) -> None:
        with ModelServer(says("First."), says("Second.")) as server:
            piped = scratch.with_env(QMD_LLM_URL=server.url)
            done = piped.run_raw("chat", stdin=b"when do we deploy?\n\nand why?")
            assert (done.returncode, done.stdout) == (0, b"First.\n\nSecond.\n")
            assert b"> when do we deploy?\n> and why?\n" in done.stderr
            asked = [each["content"] for each in server.requests[-1].messages]
            assert "when do we deploy?" in asked[1]
            assert asked[-1] == "and why?"
            assert len(scratch.ok("chat", "list").out.splitlines()) == 1
            assert piped.run_raw("chat", stdin=b"\n").returncode == 2

    def test_sentences_without_support_are_marked_when_strict(self, scratch: Scratch) -> None:
        with ModelServer(says("The sea is full of whales.")) as server:
            assert chat(scratch, server, "whales?").out == "The sea is full of whales.\n"
            strict = chat(scratch, server, "--strict", "whales?")
        assert strict.out == "The sea is full of whales. (without support)\n"

    def test_kept_conversations(self, scratch: Scratch) -> None:
        with ModelServer(says("In **March**.")) as server:
            ident = json.loads(chat(scratch, server, "--json", "when do we deploy?").out)["chat"]
        assert scratch.ok("chat", "list").out.startswith(ident)
        assert "when do we deploy?" in scratch.ok("chat", "search", "march").out
        assert scratch.ok("chat", "search", "june").out == ""
        page = json.loads(scratch.ok("chat", "list", "--json").out)
        assert (page["total"], page["chats"][0]["turns"]) == (1, 1)
        assert "## when do we deploy?\n\nIn **March**." in scratch.ok("chat", "show", ident).out
        shown = json.loads(scratch.ok("chat", "show", ident[:5], "--json").out)
        assert shown["turns"][0]["answer"] == "In **March**."
        assert "Deployment" in scratch.ok("chat", "rename", ident, "Deployment").out
        scratch.ok("chat", "export", ident, "notes/deployment.md")
        text = (scratch.root / "notes/deployment.md").read_text("utf-8")
        assert "# Deployment" in text
        assert scratch.call("chat", "export", ident, "notes/deployment.md").code == 1
        scratch.ok("chat", "delete", ident)
        gone = scratch.call("chat", "show", ident)
        assert (gone.code, gone.out) == (1, "")

    def test_errors(self, scratch: Scratch) -> None:
        assert scratch.call("chat", " ").code == 2
        assert scratch.call("chat", "--continue", "x").code == 2
        assert scratch.call("chat", "--yes", "x").code == 2
        without = scratch.call("chat", "when?")
        assert without.code == 1
        assert "QMD_LLM_URL" in without.err
        with ModelServer(fails(400)) as server:
            failed = chat(scratch, server, "--json", "when?")
        assert failed.code == 1
        assert json.loads(failed.out)["status"] == "failed"

    def test_without_a_terminal_a_write_is_declined(self, scratch: Scratch) -> None:
        write = block("create_note", path="notes/new", content="x")
        with ModelServer(says(write), says("Not written."), says(write), says("Done.")) as server:
            assert chat(scratch, server, "--write", "write it").code == 0
            assert not (scratch.root / "notes/new.md").exists()
            assert chat(scratch, server, "--write", "--yes", "write it").code == 0
            assert (scratch.root / "notes/new.md").read_text() == "x"


class Terminal:
    """The installed command on a pseudo-terminal."""

    def __init__(self, scratch: Scratch, *args: str) -> None:
        import pty

        self._ours, theirs = pty.openpty()
        self._process = scratch.start(
            *args, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""
        self._place = 0

    def until(self, text: str) -> None:
        """Read until a text is shown, behind the one that was waited for last."""
        while (place := self.shown.find(text, self._place)) < 0:
            data = read_terminal(self._ours)
            assert data, self.shown
            self.shown += data.decode(errors="replace")
        self._place = place + len(text)

    def type(self, text: str) -> None:
        os.write(self._ours, text.encode())

    def interrupt(self) -> None:
        import signal

        os.kill(self._process.pid, signal.SIGINT)

    def end(self) -> int:
        try:
            while data := read_terminal(self._ours):
                self.shown += data.decode(errors="replace")
            return int(self._process.wait(TIMEOUT_S))
        finally:
            self._process.kill()
            self._process.wait()
            os.close(self._ours)


@posix
class TestTerminal:
    def hold(self, scratch: Scratch, server: ModelServer, *args: str) -> Terminal:
        plain = {"NO_COLOR": "1", "TERM": "dumb", "QMD_LLM_URL": server.url}
        return Terminal(scratch.with_env(**plain), "chat", *args)

    def test_a_conversation_with_a_write(self, scratch: Scratch) -> None:
        write = block("create_note", path="notes/new", content="# New")
        with ModelServer(says("In March."), says(write), says("Written.")) as server:
            terminal = self.hold(scratch, server)
            terminal.until("> ")
            terminal.type("when?\n")
            terminal.until("In March.")
            terminal.until("> ")
            terminal.type("/mode write\n")
            terminal.until("Mode write")
            terminal.type("write it\n")
            terminal.until("Write this? [y/N]")
            terminal.type("y\n")
            terminal.until("Written.")
            terminal.until("> ")
            terminal.type("/nonsense\n/quit\n")
            assert terminal.end() == 0
        assert "No such command" in terminal.shown
        assert (scratch.root / "notes/new.md").read_text() == "# New"
        assert json.loads(scratch.ok("chat", "list", "--json").out)["chats"][0]["turns"] == 2

    def test_ctrl_c_stops_the_turn_and_not_the_program(self, scratch: Scratch) -> None:
        leave = threading.Event()

        def slow(call: Call) -> None:
            call.begin_stream()
            call.delta(content="In ")
            leave.wait(60)

        with ModelServer(slow, says("In March.")) as server:
            terminal = self.hold(scratch, server, "when?")
            terminal.until("In ")
            terminal.interrupt()
            terminal.until("Stopped.")
            leave.set()
            terminal.type("/retry\n")
            terminal.until("In March.")
            terminal.until("> ")  # before the prompt, the terminal would swallow Ctrl-D
            terminal.type("\x04")
            assert terminal.end() == 0
