"""`qmd doctor` on the configuration of AI clients, with real files in a home of the test's own."""

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from qmd import KnowledgeBase, __version__
from qmd.config import load_settings
from qmd.health import clients
from qmd.system import handshake
from qmd.system.handshake import HandshakeError
from qmd.values import Check
from tests.support.site import serve

DATABASE = Path("/data/notes.sqlite")


def findings(home: Path, file: str, content: object) -> list[Check]:
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(clients.examine(DATABASE, home, __version__))


QMD = str(Path(sys.executable).parent / "qmd")

#: An MCP server of this name and version.
SERVER = """
import json, sys
for line in sys.stdin:
    info = {"name": "qmd", "version": "%s"}
    print("starting", flush=True)
    print(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {"serverInfo": info}}), flush=True)
"""


def program(folder: Path, script: str) -> str:
    """A program of the name qmd that runs a Python script, by its full path."""
    file = folder / "programs/qmd"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"#!{sys.executable}\n{script}")
    file.chmod(0o755)
    return str(file)


def entry(folder: Path, **values: object) -> dict[str, object]:
    """An entry that starts a server of this version at once."""
    command = program(folder, SERVER % __version__)
    return {"mcpServers": {"qmd": {"command": command, "args": ["mcp"], **values}}}


def test_no_client_is_no_fault(tmp_path: Path) -> None:
    (found,) = clients.examine(DATABASE, tmp_path, __version__)
    assert found.status == "ok"


def test_a_client_that_starts_qmd_is_fine(tmp_path: Path) -> None:
    real = {"command": QMD, "args": ["--db", str(tmp_path / "kb.sqlite"), "mcp"]}
    content = {"mcpServers": {"qmd": real}}
    path = tmp_path / ".cursor" / "mcp.json"
    path.parent.mkdir()
    path.write_text(json.dumps(content))
    (found,) = clients.examine(tmp_path / "kb.sqlite", tmp_path, __version__)
    assert (found.name, found.status) == ("client Cursor", "ok")
    assert "which answers" in found.message


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"command": QMD, "args": ["collection", "remove", "notes"]}, "is no server"),
        ({"command": QMD, "args": ["mcp", "stop"]}, "without an answer: qmd: error: "),
        ({"command": QMD, "args": ["mcp", "--http", "--daemon"]}, "is no server"),
        ({"command": sys.executable, "args": ["-I", "-m", "qmd", "status"]}, "is no server"),
        ({"command": QMD, "args": ["--index", "a/b", "mcp"]}, "Not a name for an index"),
        ({"command": QMD, "args": ["serve"]}, "ends without an answer: "),
        ({"command": QMD, "args": []}, "ends without an answer"),
        ({"command": QMD, "args": "mcp"}, "is no list of texts"),
        ({"command": QMD, "args": ["mcp", 5]}, "is no list of texts"),
        ({"command": QMD, "args": {"a": 1}}, "is no list of texts"),
        ({"command": None}, "names no program"),
        ({"command": ["qmd"]}, "names no program"),
        ({"command": None, "url": "http://127.0.0.1:9/mcp"}, "does not answer"),
        ({"command": None, "url": "no address"}, "does not answer"),
    ],
)
def test_an_entry_that_reaches_no_qmd_is_an_error_that_says_so(
    tmp_path: Path, values: dict[str, object], message: str
) -> None:
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(tmp_path, **values))
    assert (found.status, message in found.message) == ("error", True), found
    assert found.remedy


def test_an_entry_without_arguments_is_started_as_it_is(tmp_path: Path) -> None:
    content = {"mcpServers": {"qmd": {"command": program(tmp_path, "")}}}
    (found,) = findings(tmp_path, ".cursor/mcp.json", content)
    assert "ends without an answer" in found.message


def test_a_qmd_of_another_version_is_told(tmp_path: Path) -> None:
    other = entry(tmp_path)
    program(tmp_path, SERVER % "2.8.3")
    (found,) = findings(tmp_path, ".cursor/mcp.json", other)
    assert found.status == "warning"
    assert "qmd 2.8.3, and this is qmd" in found.message
    assert "tobi/qmd has the same name" in found.message


def test_a_running_server_is_asked_over_http(tmp_path: Path) -> None:
    with serve(tmp_path, embed=False, token="secret-token") as served:
        url = served.url.rstrip("/") + "/mcp"
        for headers, status in (({"Authorization": "Bearer secret-token"}, "ok"), ({}, "error")):
            content = {"mcpServers": {"qmd": {"url": url, "headers": headers}}}
            (found,) = findings(tmp_path, ".cursor/mcp.json", content)
            assert found.status == status, found
        assert "token" in found.message
        (tmp_path / ".cursor" / "mcp.json").unlink()
        codex = (
            f'[mcp_servers.qmd]\nurl = "{url}"\n'
            'http_headers = { "Authorization" = "Bearer secret-token" }\n'
        )
        (found,) = findings(tmp_path, ".codex/config.toml", codex)
        assert (found.name, found.status) == ("client Codex", "ok")


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    silent = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(HandshakeError, match="does not answer within"):
        handshake.over_stdio(silent, timeout_s=0.2)


def test_a_program_that_is_not_there_is_an_error_with_the_full_path(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, ".claude.json", entry(tmp_path, command="/nowhere/qmd"))
    assert found.status == "error"
    assert found.remedy is not None
    assert "/qmd" in found.remedy


@pytest.mark.parametrize(
    "given", [{"args": ["--db", "/other.sqlite", "mcp"]}, {"env": {"QMD_DB": "/other.sqlite"}}]
)
def test_another_database_is_told(tmp_path: Path, given: dict[str, object]) -> None:
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(tmp_path, **given))
    assert found.status == "warning"
    assert "/other.sqlite" in found.message


def test_the_same_database_by_name_is_fine(tmp_path: Path) -> None:
    args = ["--db", str(DATABASE), "mcp"]
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(tmp_path, args=args))
    assert found.status == "ok"


def test_a_project_of_claude_code_counts(tmp_path: Path) -> None:
    content = {"projects": {"/p": entry(tmp_path, command="/nowhere/qmd")}}
    (found,) = findings(tmp_path, ".claude.json", content)
    assert found.status == "error"


def test_other_servers_are_none_of_our_business(tmp_path: Path) -> None:
    content = {"mcpServers": {"files": {"command": "/nowhere/files"}}}
    (found,) = findings(tmp_path, ".cursor/mcp.json", content)
    assert (found.name, found.status) == ("clients", "ok")


@pytest.mark.parametrize("text", ["{", "[" * 100_000, "\x00"])
def test_a_broken_file_is_a_warning_and_no_crash(tmp_path: Path, text: str) -> None:
    (found,) = findings(tmp_path, ".cursor/mcp.json", text)
    assert found.status == "warning"


@pytest.mark.parametrize("folder", ["qmd", "qmd.sqlite"])
def test_a_program_that_only_has_qmd_among_its_arguments_is_not_run(
    tmp_path: Path, folder: str
) -> None:
    (tmp_path / folder).mkdir()
    content = {"mcpServers": {"clean": {"command": "rmdir", "args": [str(tmp_path / folder)]}}}
    (check,) = findings(tmp_path, ".cursor/mcp.json", content)
    assert (check.name, (tmp_path / folder).is_dir()) == ("clients", True)


def test_a_program_of_another_name_is_named_and_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    other = entry(tmp_path, command=sys.executable, args=["-c", f"open({str(mark)!r}, 'w')"])
    (check,) = findings(tmp_path, ".cursor/mcp.json", other)
    assert (check.status, "not tried" in check.message) == ("warning", True)
    assert not mark.exists()


def test_a_program_of_the_folder_that_one_is_in_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    program(tmp_path, f"open({str(mark)!r}, 'w')")
    monkeypatch.chdir(tmp_path / "programs")
    (tmp_path / "programs/qmd").write_text(f"#!{sys.executable}\nopen({str(mark)!r}, 'w')")
    for command, path in (("./qmd", "/bin"), ("qmd", ".")):
        monkeypatch.setenv("PATH", path)
        content = {"mcpServers": {"qmd": {"command": command, "args": ["mcp"]}}}
        (check,) = findings(tmp_path, ".cursor/mcp.json", content)
        assert (check.status, "depends on the folder" in check.message) == ("error", True), check
    # ``python -m`` takes a module from where it starts.
    (tmp_path / "programs/qmd.py").write_text(f"open({str(mark)!r}, 'w')")
    with pytest.raises(HandshakeError):
        handshake.over_stdio([sys.executable, "-m", "qmd", "serve"])
    assert not mark.exists()


def test_only_a_server_is_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "notes").mkdir()
    database = load_settings(index="mcp").db
    assert isinstance(database, Path)
    assert database.is_relative_to(tmp_path)
    with KnowledgeBase.open(database, create=True) as kb:
        kb.add_collection(tmp_path / "notes", name="x")
    removing = ["--index", "mcp", "collection", "remove", "x"]
    others = (["--index=mcp", *removing[2:]], ["server", *removing], ["mcp", *removing])
    for words in (removing, *others):
        content = {"mcpServers": {"qmd": {"command": QMD, "args": words}}}
        path = tmp_path / ".cursor" / "mcp.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content))
        (check,) = clients.examine(database, tmp_path, __version__)
        assert check.status == "error", (words, check)
    with KnowledgeBase.open(database) as kb:
        assert [each.name for each in kb.collections()] == ["x"]


@pytest.mark.parametrize("name", ["PATH", "PYTHONPATH", "HOME", "LD_PRELOAD", "PYTHONSTARTUP"])
@pytest.mark.unmeasured
def test_an_entry_replaces_no_part_of_the_program(tmp_path: Path, name: str) -> None:
    program(tmp_path, "raise SystemExit('replaced')")
    (tmp_path / "programs" / "qmd.py").write_text("raise SystemExit('replaced')")
    words = ["-m", "qmd", "--db", str(DATABASE), "mcp", "--read-only"]
    values = {"command": sys.executable, "args": words, "env": {name: str(tmp_path / "programs")}}
    (check,) = findings(tmp_path, ".cursor/mcp.json", {"mcpServers": {"qmd": values}})
    assert "replaced" not in check.message, check
    assert name in check.message or check.status == "error"


def test_another_program_is_started_as_a_plain_server_alone(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    command = program(tmp_path, f"open({str(mark)!r}, 'w')")
    script = Path(command).with_name("qmd.sh")
    script.write_bytes(Path(command).read_bytes())
    script.chmod(0o755)
    for values in (
        {"command": str(script), "args": ["mcp"]},
        {"command": command, "args": ["mcp", "--toolset", "qmd"]},
        {"command": command, "args": ["cleanup"]},
    ):
        (check,) = findings(tmp_path, ".cursor/mcp.json", {"mcpServers": {"qmd": values}})
        assert (check.status, "not tried" in check.message) == ("warning", True), check
    assert not mark.exists()


def test_equal_entries_are_tried_once_and_not_without_end(tmp_path: Path) -> None:
    def projects(commands: Iterable[str]) -> dict[str, object]:
        entries = ({"mcpServers": {"qmd": {"command": command}}} for command in commands)
        return {"projects": dict(zip(map(str, range(1000)), entries, strict=True))}

    assert len(findings(tmp_path, ".claude.json", projects(["/nowhere/qmd"] * 1000))) == 1
    different = projects(f"/nowhere/{n}/qmd" for n in range(1000))
    checks = findings(tmp_path, ".claude.json", different)
    assert len(checks) == clients.MAX_TRIED + 1
    assert "990 more" in checks[-1].message


@pytest.mark.parametrize("file", [".cursor/mcp.json", ".gemini/settings.json"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path, file: str) -> None:
    (tmp_path / file).parent.mkdir()
    os.mkfifo(tmp_path / file)
    assert [check.name for check in clients.examine(DATABASE, tmp_path, __version__)]


def test_a_program_that_talks_without_end_is_left(tmp_path: Path) -> None:
    endless = "import os\nwhile True: os.write(1, b'[1,' * 20_000)"
    with pytest.raises(HandshakeError, match="ends without an answer"):
        handshake.over_stdio([sys.executable, "-c", endless])


def test_a_child_that_keeps_the_streams_open_is_not_waited_for() -> None:
    script = (
        "import subprocess, sys\n"
        "child = [sys.executable, '-c', 'import time; time.sleep(20)']\n"
        "subprocess.Popen(child, start_new_session=True)\n"
        "input()\n"
        'print(\'{"result": {"serverInfo": {"name": "a", "version": "1"}}}\', flush=True)'
    )
    assert handshake.over_stdio([sys.executable, "-c", script]).name == "a"
