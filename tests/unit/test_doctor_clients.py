"""`qmd doctor` on the configuration of AI clients, with real files in a home of the test's own."""

import json
import sys
from pathlib import Path

import pytest

from qmd.health import clients
from qmd.values import Check

DATABASE = Path("/data/notes.sqlite")


def findings(home: Path, file: str, content: object) -> list[Check]:
    path = home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(clients.examine(DATABASE, home))


def entry(**values: object) -> dict[str, object]:
    return {"mcpServers": {"qmd": {"command": sys.executable, "args": ["mcp"], **values}}}


def test_no_client_is_no_fault(tmp_path: Path) -> None:
    (found,) = clients.examine(DATABASE, tmp_path)
    assert found.status == "ok"


def test_a_client_that_would_start_qmd_is_fine(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry())
    assert (found.name, found.status) == ("client Cursor", "ok")


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
    (found,) = findings(tmp_path, ".cursor/mcp.json", entry(args=["--db", str(DATABASE), "mcp"]))
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
