"""The location of a database: a file, or a URL whose password no text shows."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmd.config import load_settings
from qmd.errors import ConfigError
from qmd.system.user_dirs import file_beside, is_missing
from qmd.values.location import ServerDatabase, as_location, database_location


@pytest.mark.parametrize("text", ["notes.sqlite", "/tmp/a:b", "postgresql:", "C:\\notes.sqlite"])
def test_a_path_is_a_file(text: str) -> None:
    assert database_location(text) == Path(text)


def test_the_name_of_a_database_lacks_the_password() -> None:
    url = "POSTGRES://ann:s3cret@db.example.org:5433/notes?sslmode=require&sslpassword=t0p"
    location = database_location(url)
    shown = "postgres://ann:***@db.example.org:5433/notes?sslmode=require&sslpassword=***"
    assert isinstance(location, ServerDatabase)
    assert str(location) == f"{location}" == shown
    assert repr(location) == f"ServerDatabase({shown!r})"
    assert location.url == url.replace("POSTGRES", "postgres")
    assert location.name == "notes"
    with pytest.raises(TypeError):  # no fields that a program would print
        json.dumps(location)


@pytest.mark.parametrize("option", ["oauth_client_secret", "scram_client_key"])
def test_the_name_of_a_database_lacks_other_secrets(option: str) -> None:
    location = ServerDatabase(f"postgresql://db.example.org/notes?{option}=t0p")
    assert str(location) == f"postgresql://db.example.org/notes?{option}=***"
    assert location.secrets == ["t0p"]


@given(st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S")), min_size=1))
@example("p%40ss")
@example("a/b")
@example("x@y")
@example("a?b")
@example("12#4")
@example("1:2")
@example("@?")
def test_no_part_of_a_password_shows(password: str) -> None:
    """A URL is refused where it is not certain which part of it is the password."""
    marked = f"Zq{password}Zq"
    try:
        location = database_location(f"postgresql://ann:{marked}@host:5432/db")
    except ConfigError as error:
        assert "Zq" not in error.with_hint
    else:
        assert "Zq" not in f"{location} {location!r}"
        assert isinstance(location, ServerDatabase)
        assert marked in location.secrets


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:a@b@host/db",
        "postgresql://ann:a/b@host/db",
        "postgresql://ann:a#b@host/db",
        "postgresql://host:port/db",
        "postgresql://[::1/db",
        "postgresql://host/d\nb",
    ],
)
def test_a_malformed_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="malformed"):
        database_location(url)


def test_another_kind_of_server_is_no_file() -> None:
    with pytest.raises(ConfigError, match="mysql://"):
        as_location("mysql://ann@host/db")


@pytest.mark.parametrize("hosts", ["h", "h:1", "a:1,b:2", "[::1]:5432", "", "/db?host=/run/x"])
def test_hosts_as_libpq_has_them_are_accepted(hosts: str) -> None:
    url = f"postgresql://{hosts}" + ("" if "?" in hosts else "/db")
    assert as_location(url) == ServerDatabase(url)


def test_settings_take_a_url(tmp_path: Path) -> None:
    url = "postgresql://ann@host/db"
    config = {"XDG_CONFIG_HOME": str(tmp_path)}
    (tmp_path / "qmd").mkdir()
    (tmp_path / "qmd" / "config.toml").write_text(f"db = '{url}'\n")
    for settings in (
        load_settings(db=url, environ={}),
        load_settings(environ={"QMD_DB": url}),
        load_settings(environ=config),
    ):
        assert settings.db == ServerDatabase(url)


def test_files_of_a_server_database_lie_in_the_directory_of_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = file_beside(ServerDatabase("postgresql://ann:old@host/db"), ".server.json")
    assert file == file_beside(ServerDatabase("postgresql://ann:new@host/db"), ".server.json")
    assert file.parent == tmp_path / "qmd" / "databases"
    assert file != file_beside(ServerDatabase("postgresql://ann:old@host/other"), ".server.json")
    assert file_beside(tmp_path / "a.sqlite", ".lock") == tmp_path / "a.sqlite.lock"
    assert not is_missing(ServerDatabase("postgresql://host/db"))
    assert is_missing(tmp_path / "none.sqlite")


def test_without_psycopg_the_error_names_the_command() -> None:
    code = (
        "import sys; sys.modules['psycopg'] = None; from qmd.cli.main import main;"
        " sys.exit(main(['--db', 'postgresql://host/db', 'ls']))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "PostgreSQL needs the package psycopg" in done.stderr
    assert "psycopg[binary]" in done.stderr.partition("hint:")[2]
