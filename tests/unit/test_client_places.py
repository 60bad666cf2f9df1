"""Where the clients of a user keep their files, and what an entry says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from qmd.clients import install
from qmd.clients.install import BY_HAND, CLIENTS, Client
from qmd.errors import InputError


def client(name: str) -> Client:
    return next(each for each in (*CLIENTS, *BY_HAND) if each.id == name)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in ("XDG_CONFIG_HOME", "APPDATA", *(each.variable for each in CLIENTS)):
        if variable:
            monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize(
    ("name", "variable", "place", "default"),
    [
        ("claude-code", "CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json"),
        ("codex", "CODEX_HOME", "config.toml", ".codex/config.toml"),
        ("gemini", "GEMINI_CLI_HOME", ".gemini/settings.json", ".gemini/settings.json"),
    ],
)
def test_a_variable_moves_the_files_of_a_client(
    home: Path, monkeypatch: pytest.MonkeyPatch, name: str, variable: str, place: str, default: str
) -> None:
    assert client(name).file(home) == home / default
    monkeypatch.setenv(variable, str(home / "elsewhere"))
    assert client(name).file(home) == home / "elsewhere" / place
    assert client(name).file(home / "other") == home / "other" / default


@pytest.mark.skipif(sys.platform != "linux", reason="the XDG directories of Linux")
def test_programs_with_a_window_follow_xdg(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / "settings"))
    assert client("zed").file(home) == home / "settings/zed/settings.json"
    assert client("vscode").file(home) == home / "settings/Code/User/mcp.json"
    assert client("cursor").file(home) == home / ".cursor/mcp.json"


def test_windows_keeps_programs_of_its_store_apart(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    assert client("claude-desktop").file(home).parent == home / "AppData/Roaming/Claude"
    package = home / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc"
    (package / "LocalCache/Roaming/Claude").mkdir(parents=True)
    assert client("claude-desktop").file(home).is_relative_to(package)
    monkeypatch.setenv("APPDATA", str(home / "roaming"))
    assert client("vscode").file(home) == home / "roaming/Code/User/mcp.json"


def test_an_address_is_written_in_the_words_of_the_client() -> None:
    header = {"Authorization": "Bearer t"}
    expected = {
        "claude-code": {"type": "http", "url": "u", "headers": header},
        "cursor": {"url": "u", "headers": header},
        "vscode": {"type": "http", "url": "u", "headers": header},
        "windsurf": {"serverUrl": "u", "headers": header},
        "zed": {"url": "u", "headers": header},
        "codex": {"url": "u", "http_headers": header},
        "gemini": {"httpUrl": "u", "headers": header},
        "cherry-studio": {"type": "streamableHttp", "url": "u", "headers": header},
    }
    assert {name: client(name).address_entry("u", "t") for name in expected} == expected


def test_the_shown_change_hides_the_token(home: Path) -> None:
    for name in ("cursor", "codex"):
        change = install.plan(client(name), home, "qmd", client(name).address_entry("u", "s3cret"))
        shown = "\n".join(change.diff())
        assert "Bearer ***" in shown
        assert "s3cret" not in shown
        assert b"Bearer s3cret" in (change.after or b"")


def test_a_read_only_file_stays(home: Path) -> None:
    file = client("cursor").file(home)
    file.parent.mkdir()
    file.write_text("{}")
    file.chmod(0o444)
    change = install.plan(client("cursor"), home, "qmd", {"command": "qmd"})
    with pytest.raises(InputError, match="is read-only"):
        install.make(change)
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text() == "{}"


def test_a_comment_that_plain_json_does_not_have_is_named(home: Path) -> None:
    file = client("cursor").file(home)
    file.parent.mkdir()
    file.write_text('{"a": 1,}')
    with pytest.raises(InputError, match="no comma after the last value"):
        install.plan(client("cursor"), home, "qmd", {})
    with pytest.raises(InputError, match="cannot be read"):
        install.settings(client("cursor"), home)
    file.write_bytes(b"\xef\xbb\xbf{}")
    assert install.settings(client("cursor"), home) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="the page has the places of Linux")
def test_the_page_lists_each_client_and_its_file(home: Path) -> None:
    text = (Path(__file__).parents[2] / "docs/mcp.md").read_text(encoding="utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| ")]
    for each in CLIENTS:
        place = f"~/{each.file(home).relative_to(home).as_posix()}"
        assert f"| {each.name} | `{each.id}` | `{place}` |" in rows
    for each in BY_HAND:
        assert any(row.startswith(f"| {each.name} | `{each.id}` | ") for row in rows)


@pytest.mark.parametrize(
    ("name", "before", "kept"),
    [
        (
            "claude-code",
            '{"mcpServers": {"qmd": {"command": "old", "args": [], "url": "http://x",'
            ' "timeout": 60, "env": {"QMD_DB": "old", "LANG": "de"}}}}',
            {"timeout": 60, "env": {"LANG": "de", "QMD_LLM_URL": "u"}},
        ),
        (
            "codex",
            '[mcp_servers.qmd]\ncommand = "old"\nstartup_timeout_sec = 20\n'
            '"own key" = true\n\n[mcp_servers.qmd.env]\nLANG = "de"\n',
            {
                "startup_timeout_sec": 20,
                "own key": True,
                "env": {"LANG": "de", "QMD_LLM_URL": "u"},
            },
        ),
    ],
)
def test_what_a_person_added_to_an_entry_stays(
    home: Path, name: str, before: str, kept: dict[str, object]
) -> None:
    where = client(name)
    file = where.file(home)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(before)
    entry = where.program_entry("/bin/qmd", ["mcp"], {"QMD_LLM_URL": "u"})
    change = install.plan(where, home, "qmd", entry)
    assert change.after is not None
    file.write_bytes(change.after)
    assert install.entry(where, home, "qmd") == {**entry, **kept}
    assert not install.plan(where, home, "qmd", entry).diff()
