"""The command line and a server with a database in PostgreSQL, as real processes."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd.system import running
from qmd.values.location import ServerDatabase
from tests.support.cli import NOTES, Scratch
from tests.support.http_server import WITHOUT_MODEL
from tests.support.postgres import PASSWORD, PostgresServer


@pytest.fixture
def scratch(
    tmp_path: Path,
    postgres_database: ServerDatabase,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Scratch]:
    state = tmp_path / "state"
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    scratch = Scratch(tmp_path).with_env(
        QMD_DB=postgres_database.url, XDG_STATE_HOME=str(state), **WITHOUT_MODEL
    )
    for name, text in NOTES.items():
        scratch.write(name, text)
    yield scratch
    if running.find(postgres_database) is not None:
        scratch.run("mcp", "stop")


def test_commands_work_as_with_a_file(
    scratch: Scratch, postgres_database: ServerDatabase, postgres_server: PostgresServer
) -> None:
    assert "Indexed 1 collection: 3 documents" in scratch.ok("collection", "add", "notes").out
    assert "0 added" in scratch.ok("index").out
    hits = scratch.ok("search", "数据库", "--json").json()
    assert [hit["file"] for hit in hits] == ["notes/zh/备份.md"]
    assert "We deploy the parser" in scratch.ok("get", "notes/plan.md").out
    assert "notes/2025/retro.md" in scratch.ok("ls").out
    assert "#team" in scratch.ok("tags").out
    assert str(postgres_database) in scratch.ok("status").out
    scratch.ok("collection", "rename", "notes", "pages")
    scratch.ok("context", "add", "notes", "All notes")
    assert scratch.ok("cleanup").out.startswith("Nothing to remove")
    assert "qmd_" in scratch.ok("token", "create", "ann", "--read", "pages").out
    for command in (["backup", "copy"], ["restore-db", "copy"], ["rescue"]):
        refused = scratch.call(*command)
        assert (refused.code, "hint:" in refused.err) == (1, True)
    scratch.ok("collection", "remove", "pages")
    left = postgres_server.execute(
        "SELECT (SELECT count(*) FROM documents), (SELECT count(*) FROM chunks),"
        " (SELECT count(*) FROM links)",
        postgres_database.name,
    )
    assert left == [(0, 0, 0)]


def test_a_server_keeps_the_index_and_nothing_shows_the_password(
    scratch: Scratch, postgres_database: ServerDatabase
) -> None:
    assert not any(Path.cwd().glob("postgresql:*"))
    scratch.ok("collection", "add", "notes")
    started = scratch.run("mcp", "--http", "--daemon", "--port", "0")
    assert started.code == 0, started.err
    server = running.find(postgres_database)
    assert server is not None
    with urllib.request.urlopen(f"{server.url}/status") as reply:
        status = reply.read().decode()
    assert json.loads(status)["total_documents"] == 3
    texts = [status, started.out]
    for command in ("status", "config", "doctor", "logs"):
        result = scratch.call(command)
        texts += [result.out, result.err]
    again = scratch.call("server", "--daemon")
    assert "runs already" in again.err
    for options in (["service", "install", "--dry-run"], ["mcp", "install", "cursor"]):
        refused = scratch.call(*options)
        assert (refused.code, ".pgpass" in refused.err) == (1, True)
        texts += [refused.out, refused.err]
    with_replica = scratch.with_env(QMD_DB="", QMD_DB_READ=postgres_database.url)
    refused = with_replica.call("mcp", "install", "cursor", "--print")
    assert (refused.code, ".pgpass" in refused.err) == (1, True), refused
    refused = with_replica.run("server", "--no-watch", "--port", "0")
    assert (refused.code, "is a file: only databases on a server" in refused.err) == (1, True)
    arguments = Path(f"/proc/{server.pid}/cmdline")
    if arguments.exists():
        texts.append(arguments.read_text())
    for file in (scratch.root / "state").rglob("*"):
        if file.is_file():
            texts.append(file.read_text())
    assert scratch.run("mcp", "stop").code == 0
    assert not any(PASSWORD in text for text in texts)
    assert running.find(postgres_database) is None
