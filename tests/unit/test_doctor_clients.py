"""`qmd doctor` on the configuration of AI clients, with real files in a home of the test's own."""

import json
import sys
from pathlib import Path

import pytest

from qmd import __version__
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


def entry(**values: object) -> dict[str, object]:
    """An entry that starts a server of this version at once."""
    script = SERVER % __version__
    started = {"command": sys.executable, "args": ["-c", script], **values}
    return {"mcpServers": {"qmd": started}}


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
        ({"command": "/usr/bin/true", "args": []}, "ends without an answer"),
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
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(**values))
    assert (found.status, message in found.message) == ("error", True), found
    assert found.remedy


def test_an_entry_without_arguments_is_started_as_it_is(tmp_path: Path) -> None:
    content = {"mcpServers": {"qmd": {"command": "/usr/bin/true"}}}
    (found,) = findings(tmp_path, ".cursor/mcp.json", content)
    assert "ends without an answer" in found.message


def test_a_qmd_of_another_version_is_told(tmp_path: Path) -> None:
    args = ["-c", SERVER % "2.8.3"]
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(args=args))
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


def test_a_server_that_says_nothing_is_not_waited_for(tmp_path: Path) -> None:
    silent = [sys.executable, "-c", "import time; time.sleep(600)"]
    with pytest.raises(HandshakeError, match="does not answer within"):
        handshake.over_stdio(silent, timeout_s=0.2)


def test_a_program_that_is_not_there_is_an_error_with_the_full_path(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, ".claude.json", entry(command="/nowhere/qmd"))
    assert found.status == "error"
    assert found.remedy is not None
    assert "/qmd" in found.remedy


@pytest.mark.parametrize(
    "given", [{"args": ["--db", "/other.sqlite", "mcp"]}, {"env": {"QMD_DB": "/other.sqlite"}}]
)
def test_another_database_is_told(tmp_path: Path, given: dict[str, object]) -> None:
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(**given))
    assert found.status == "warning"
    assert "/other.sqlite" in found.message


def test_the_same_database_by_name_is_fine(tmp_path: Path) -> None:
    args = ["-c", SERVER % __version__, "--db", str(DATABASE)]
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(args=args))
    assert found.status == "ok"


def test_a_project_of_claude_code_counts(tmp_path: Path) -> None:
    content = {"projects": {"/p": entry(command="/nowhere/qmd")}}
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
