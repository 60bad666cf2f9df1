"""``qmd server logs``: what a real server has written, and nothing that is private."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli import TIMEOUT_S, Scratch, filled
from tests.support.http_server import qmd_server, raw, request
from tests.support.model_server import Call, ModelServer

SECRET = "Geheimwort"
TOKEN = "token-of-the-test"
NOTES = {"notes/plan.md": f"# Plan\n\nThe {SECRET} is in this note.\n"}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path, NOTES)


def serve_once(scratch: Scratch, *options: str) -> None:
    """Start a server, ask it, and stop it."""
    environment = scratch.environment | {"QMD_TOKEN": TOKEN}
    with qmd_server(scratch.database, "--no-watch", *options, environment=environment) as serving:
        headers = {"Authorization": f"Bearer {TOKEN}", "Mcp-Session-Id": SECRET}
        answer = request(serving.url, "POST", "/search", {"query": SECRET}, headers)
        assert len(answer.json()["results"]) == 1
        request(serving.url, "GET", f"/?q={SECRET}", None, headers)
        request(serving.url, "POST", "/search", {"query": SECRET, SECRET: 1}, headers)
        raw(serving.url, [f"GET /{SECRET} HTTP/9\r\n{SECRET}\r\n\r\n".encode()])
        assert serving.stop() == 0


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    """A home in which a server has run, and then one that could not start."""
    scratch = filled(tmp_path_factory.mktemp("served"), NOTES)
    serve_once(scratch, "--access-log")
    assert scratch.run("server", "--transport", "http", "--host", "0.0.0.0").code != 0
    return scratch


def test_the_log_tells_what_happened_and_nothing_private(served: Scratch) -> None:
    path = Path(served.ok("logs", "--path").out.strip())
    assert path == served.root / "home/.local/state/qmd/server.log"
    text = path.read_text(encoding="utf-8")
    assert SECRET not in text
    assert TOKEN not in text
    entries = [json.loads(line) for line in served.ok("logs", "--json").out.splitlines()]
    messages = [entry["message"] for entry in entries]
    assert messages[0] == "serving"
    assert messages[-2] == "stopped"
    assert entries[-2]["reason"] == "SIGTERM"
    assert {entry["database"] for entry in entries} == {str(served.database)}
    requests = [(each["path"], each["status"]) for each in entries if each["message"] == "request"]
    assert requests == [("/search", 200), ("/", 200), ("/search", 400)]


def test_words_of_a_model_server_are_left_out_because_they_may_repeat_a_note(
    scratch: Scratch,
) -> None:
    def embed(call: Call) -> None:
        texts = call.request.body["input"]
        if SECRET in str(texts):
            call.answer_json({"error": {"message": f"Cannot embed {texts[0]}"}}, 400)
        else:
            vectors = [{"index": n, "embedding": [1.0, 0.0]} for n in range(len(texts))]
            call.answer_json({"data": vectors})

    with ModelServer(embed) as models:
        settings = {"QMD_MODEL": "openai:m", "QMD_EMBED_URL": f"{models.url}/v1"}
        environment = scratch.environment | settings
        with qmd_server(scratch.database, environment=environment) as serving:
            line = serving.says(r".*embedding failed.*")[0]
            assert "answered 400: …" in line
            request(serving.url, "POST", "/query", {"query": SECRET})
            assert serving.stop() == 0
        assert SECRET not in serving.stderr
    text = Path(scratch.ok("logs", "--path").out.strip()).read_text(encoding="utf-8")
    assert "answered 400: \\u2026" in text
    assert SECRET not in text


def test_a_client_on_stdin_is_logged_from_its_beginning_to_its_end(scratch: Scratch) -> None:
    assert scratch.run_raw("mcp", "--no-watch").returncode == 0  # stdin ends at once
    lines = scratch.ok("logs").out.splitlines()
    assert [line.split(maxsplit=4)[4].split(" version=")[0] for line in lines] == [
        "serving a client on stdin",
        "stopped reason=the client has left",
    ]


def test_the_last_entries_of_a_level_as_text(served: Scratch) -> None:
    lines = served.ok("logs", "-n", "3").out.splitlines()
    assert [line.split()[4] for line in lines] == ["request", "stopped", "The"]
    (line,) = served.ok("logs", "--level", "warning").out.splitlines()
    assert " error The server cannot start. Listening on 0.0.0.0" in line


def test_entries_of_other_databases_are_left_out(served: Scratch) -> None:
    other = served.call("--db", "other.sqlite", "logs")
    assert (other.code, other.out) == (0, "")
    assert "--all" in other.err
    assert len(served.ok("--db", "other.sqlite", "logs", "--all").out.splitlines()) == 6


def test_without_a_log_a_line_on_stderr_says_so(scratch: Scratch) -> None:
    result = scratch.ok("logs")
    assert result.out == ""
    assert "No entry at" in result.err


def test_lines_that_are_no_entries_and_control_characters_do_no_harm(scratch: Scratch) -> None:
    entry = {"time": "soon", "level": "info", "message": "a\x1b[31m\nb", "database": "x"}
    lines = ["no json", "[1]", "{}", "[" * 10_000, json.dumps(entry)]
    scratch.write("home/.local/state/qmd/server.log", "\n".join(lines) + "\n")
    (line,) = scratch.ok("logs", "--all").out.splitlines()
    assert "\x1b" not in line
    assert line.startswith("soon ")
    assert len(scratch.ok("logs", "--all", "--json").out.splitlines()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
def test_follow_prints_new_entries_until_it_is_interrupted(scratch: Scratch) -> None:
    with scratch.start(
        "logs", "-f", "--json", stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as following:
        try:
            assert following.stdout is not None
            serve_once(scratch)
            assert json.loads(following.stdout.readline())["message"] == "serving"
            assert json.loads(following.stdout.readline())["message"] == "stopped"
            os.kill(following.pid, signal.SIGINT)
            assert following.wait(TIMEOUT_S) == 130
        finally:
            following.kill()
