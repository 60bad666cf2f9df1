"""Errors: one message, one hint, the right exit code, and nothing made or lost."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.support.cli import Scratch, filled

READING = [
    ["search", "x"],
    ["vsearch", "x"],
    ["query", "x"],
    ["get", "a.md"],
    ["multi-get", "*.md"],
    ["multi_get", "*.md"],
    ["ls"],
    ["status"],
    ["why", "a.md"],
    ["cleanup", "--dry-run"],
    ["doctor"],
    ["collection", "list"],
    ["collection", "show", "notes"],
    ["context", "list"],
]
WRITING = [
    ["index"],
    ["update"],
    ["embed"],
    ["up"],
    ["cleanup"],
    ["collection", "remove", "notes"],
    ["collection", "rename", "notes", "work"],
    ["context", "add", "/", "text"],
    ["context", "rm", "/"],
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("cli"))


class TestWithoutDatabase:
    @pytest.mark.parametrize("args", [*READING, *WRITING], ids=" ".join)
    def test_a_command_that_needs_one_says_what_makes_one(
        self, tmp_path: Path, args: list[str]
    ) -> None:
        scratch = Scratch(tmp_path)
        result = scratch.call(*args)
        assert result.code == 1
        assert result.out == ""
        assert result.err == (
            f"qmd: error: No database at {scratch.database}\n"
            "hint: Run 'qmd up FOLDER' or 'qmd collection add FOLDER' first.\n"
        )
        assert not scratch.database.exists()

    @pytest.mark.parametrize("command", [["up"], ["collection", "add"]], ids=" ".join)
    @pytest.mark.parametrize("path", ["nowhere", "a-file"])
    def test_a_folder_that_is_none_makes_no_database(
        self, tmp_path: Path, command: list[str], path: str
    ) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("a-file", "text")
        result = scratch.call(*command, path)
        assert result.code == 1
        assert path in result.err
        assert not scratch.database.exists()

    def test_the_process_leaves_with_the_code_and_the_message(self, tmp_path: Path) -> None:
        result = Scratch(tmp_path).run("search", "x")
        assert (result.code, result.out) == (1, "")
        assert result.err.startswith("qmd: error: No database at ")


class TestUsage:
    @pytest.mark.parametrize(
        ("args", "message"),
        [
            (["search"], "Missing argument"),
            (["outline", "a.md", "--max-tokens", "9" * 4_000], "is the largest number"),
            (["chat", "list", "--offset", "9" * 20], "is the largest number"),
            (["search", "x", "--nonsense"], "No such option"),
            (["note", "set", "a", "temp", "-5"], "qmd note set … -- -5"),
            (["search", "x", "-n", "0"], "0 is not in the range 1 to 1,000"),
            (["search", "x", "-n", "1001"], "1001 is not in the range 1 to 1,000"),
            (["search", "x", "-n", "many"], "not a valid whole number"),
            (["search", "x", "-p", "status"], "'status' is no condition on a property. Write KEY"),
            (["ls", "-p", "status"], "'status' is no condition on a property. Write KEY"),
            (["search", "x", "--min-score", "1.5"], "1.5 is not in the range 0 to 1"),
            (["search", "x", "--min-score", "nan"], "nan is not in the range 0 to 1"),
            (["search", "x", "--after", "soon"], "is not a date"),
            (["search", "x", "--before", "2025-02-30"], "is not a day of the calendar"),
            (["search", "x", "--before", "2025-13"], "is not a day of the calendar"),
            (["search", "x", "--xml", "--csv"], "One format only"),
            (["search", "x", "--format", "yaml"], "'yaml'"),
            (["query", "x", "--candidates", "0"], "0 is not in the range"),
            (["get"], "Missing argument"),
            (["get", "a.md", "-l", "0"], "0 is not in the range"),
            (["context", "add", "a", "b", "c"], "put quotes around the text"),
            (["--db", "a", "--index", "b", "status"], "exclude each other"),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, list) else "",
    )
    def test_wrong_usage_is_exit_code_2(
        self, scratch: Scratch, args: list[str], message: str
    ) -> None:
        result = scratch.call(*args)
        assert result.code == 2
        assert result.err.startswith("qmd: error: ")
        assert message in result.err
        assert "\nhint: " in result.err

    @pytest.mark.parametrize(
        ("args", "hint"),
        [
            (["serch", "x"], "Did you mean: search"),
            (["setings"], "'qmd config' lists the settings, and names the file for them."),
            (["colection", "list"], "Did you mean: collection"),
            (["collection", "lst"], "Did you mean: list"),
            (["zzzz"], "Run 'qmd --help'."),
            (["search", "x", "--jsn"], "--json"),
            (["search", "--zzzz"], "qmd search -- "),
        ],
    )
    def test_a_misspelt_name_gets_a_suggestion(
        self, scratch: Scratch, args: list[str], hint: str
    ) -> None:
        result = scratch.call(*args)
        assert result.code == 2
        assert hint in result.err.split("hint: ")[1]

    def test_no_command_at_all_shows_the_help(self, scratch: Scratch) -> None:
        result = scratch.call()
        assert result.code == 2
        assert "qmd up ~/notes" in result.err


class TestJson:
    def test_an_error_is_an_object_on_stderr(self, scratch: Scratch) -> None:
        result = scratch.call("get", "notes/plam.md", "--json")
        assert (result.code, result.out) == (1, "")
        error = result.error()
        assert list(error) == ["code", "message", "hint"]
        assert error["code"] == "document_not_found"
        assert error["message"] == "Document not found: notes/plam.md"
        assert "notes/plan.md" in error["hint"]

    @pytest.mark.parametrize("flag", [["--json"], ["--format", "json"], ["--format=json"]])
    def test_so_is_wrong_usage(self, scratch: Scratch, flag: list[str]) -> None:
        result = scratch.call("search", "x", *flag, "-n", "0")
        assert result.code == 2
        assert result.error()["code"] == "usage"

    def test_behind_a_double_dash_it_is_text(self, scratch: Scratch) -> None:
        result = scratch.call("search", "-c", "nope", "--", "--json")
        assert "\nqmd: error: Collection not found: nope\n" in result.err


class TestNames:
    def test_an_unknown_collection_gets_a_suggestion(self, scratch: Scratch) -> None:
        result = scratch.call("search", "x", "-c", "note")
        assert result.code == 1
        assert result.err == ("qmd: error: Collection not found: note\nhint: Did you mean: notes\n")

    @pytest.mark.parametrize(
        "args",
        [
            ["collection", "show", "nope"],
            ["collection", "remove", "nope"],
            ["collection", "rename", "nope", "other"],
            ["index", "-c", "nope"],
            ["embed", "-c", "nope"],
            ["ls", "nope"],
        ],
        ids=" ".join,
    )
    def test_every_command_refuses_one(self, scratch: Scratch, args: list[str]) -> None:
        result = scratch.call(*args)
        assert result.code == 1
        assert "Collection not found: nope" in result.err
        assert "hint: " in result.err

    def test_an_empty_path_is_not_this_directory(self, scratch: Scratch) -> None:
        refused = scratch.run("collection", "add", "")
        assert (refused.code, refused.out) == (1, "")
        assert "The path is empty." in refused.err

    @pytest.mark.skipif(sys.platform == "win32", reason="arguments are no bytes there")
    def test_a_context_of_bytes_that_are_no_text_is_an_error(self, scratch: Scratch) -> None:
        refused = scratch.run("context", "add", "/", "\udcff")
        assert refused.code == 1
        assert "no valid UTF-8" in refused.err

    def test_more_lines_of_the_log_than_memory_holds_are_all(self, scratch: Scratch) -> None:
        assert scratch.run("logs", "-n", "9" * 15).code == 0

    def test_a_second_collection_of_the_same_name_is_an_error(self, scratch: Scratch) -> None:
        scratch.write("elsewhere/notes/a.md", "# A\n")
        result = scratch.call("collection", "add", "elsewhere/notes")
        assert result.code == 1
        assert "notes" in result.err
        assert len(scratch.ok("collection", "list", "--json").json()) == 2

    def test_a_name_that_is_taken_cannot_be_given(self, scratch: Scratch) -> None:
        assert scratch.call("collection", "rename", "notes", "docs").code == 1

    def test_a_server_that_does_not_run_is_not_waited_for(self, scratch: Scratch) -> None:
        result = scratch.call("search", "x", "--mode", "server")
        assert result.code == 1
        assert "No qmd server is running" in result.err
        assert "--mode local" in result.err


class TestDatabase:
    def test_a_file_that_is_no_database_is_said_to_be_none(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        file = scratch.write("text.sqlite", "this is text, and long enough to be looked at\n" * 40)
        result = scratch.call("--db", str(file), "status", "--json")
        assert result.code == 1
        assert result.error()["code"] == "not_a_database"
        assert file.read_bytes().startswith(b"this is text")

    def test_it_can_be_named_behind_the_command(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/a.md", "# Apple\n")
        scratch.ok("collection", "add", "notes", "--db", "here.sqlite")
        assert (tmp_path / "here.sqlite").exists()
        assert len(scratch.ok("search", "apple", "--db", "here.sqlite", "--json").json()) == 1

    @pytest.mark.parametrize("command", [["search", "x"], ["open"]], ids=" ".join)
    def test_the_hint_names_the_one_that_was_meant(
        self, tmp_path: Path, command: list[str]
    ) -> None:
        result = Scratch(tmp_path).call(*command, "--db", "my notes.sqlite")
        assert result.code == 1
        assert f" --db '{tmp_path / 'my notes.sqlite'}'" in result.err

    @pytest.mark.parametrize("name", ["nowhere", "a-file"])
    def test_what_is_no_backup_is_left_alone(self, tmp_path: Path, name: str) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("a-file", "no database, though long enough to be one")
        result = scratch.call("restore-db", name)
        assert result.code == 1
        assert result.err.endswith("hint: Give a file that 'qmd db backup' made.\n")

    def test_a_backup_needs_its_directory(self, scratch: Scratch) -> None:
        result = scratch.call("backup", "nowhere/x.sqlite")
        assert result.code == 1
        assert "There is no directory" in result.err
        assert ".tmp" not in result.err

    def test_an_index_lies_beside_the_default_one(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/a.md", "# Apple\n")
        scratch.ok("--index", "work", "collection", "add", "notes")
        assert scratch.database.with_name("work.sqlite").exists()
        assert not scratch.database.exists()

    def test_a_directory_that_cannot_be_made_is_an_error(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("file", "")
        scratch.write("notes/a.md", "# A\n")
        result = scratch.call("--db", "file/below/x.sqlite", "collection", "add", "notes")
        assert result.code == 1
        assert result.err.startswith("qmd: error: ")


class TestSettings:
    def test_a_wrong_config_file_stops_every_command(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path, {"XDG_CONFIG_HOME": str(tmp_path / "config")})
        scratch.write("config/qmd/config.toml", 'databse = "x"\n')
        result = scratch.call("search", "x", "--json")
        assert result.code == 1
        assert result.error()["code"] == "invalid_config"
        assert "databse" in result.error()["message"]

    def test_config_prints_each_value_and_its_source(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path, {"QMD_DB": "env.sqlite"})
        found = scratch.ok("config", "--json").json()
        assert found["settings"]["db"] == {
            "value": str(tmp_path / "env.sqlite"),
            "source": "QMD_DB",
            "env": "QMD_DB",
            "description": "the database: a file, or postgresql://…",
        }
        assert found["settings"]["model"]["source"] == "default"
        printed = scratch.ok("--db", "flag.sqlite", "config").out
        assert f'db = "{tmp_path / "flag.sqlite"}"\n' in printed
        assert "(from --db)" in printed


def test_the_version_is_that_of_the_package(tmp_path: Path) -> None:
    from qmd import __version__

    assert Scratch(tmp_path).run("--version").out == f"qmd, version {__version__}\n"


def test_python_m_qmd_is_the_same_program(tmp_path: Path) -> None:
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "qmd", "status", "--json"],
        env=Scratch(tmp_path).environment,
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 1
    assert json.loads(done.stderr)["error"]["code"] == "database_missing"
