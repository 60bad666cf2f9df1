"""``qmd import`` at the command line, for a person who comes from another program."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from tests.support.cli import Scratch


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path)
    scratch.write("notes/a.md", "# Sourdough\n")
    scratch.write("work/b.md", "# Rye\n")
    config = f"collections: {{notes: {{path: {tmp_path}/notes, update: make}}}}\n"
    scratch.write("home/.config/qmd/index.yml", config)
    config = f"collections: {{work: {{path: {tmp_path}/work, includeByDefault: false}}}}\n"
    scratch.write("home/.config/qmd/work.yml", config)
    return scratch


def test_a_dry_run_says_what_would_be_taken_and_makes_no_database(scratch: Scratch) -> None:
    out = scratch.ok("import", "tobi", "--dry-run").out
    assert out == (
        f"Would take 1 collection and 0 contexts from {scratch.root}/home/.config/qmd/index.yml\n"
        f"  notes  {scratch.root}/notes\n"
        "    **/*.md · without build/, dist/, vendor/\n"
        "Not taken:\n"
        "  notes: update command 'make'\n"
        "    qmd runs no commands before it indexes. 'qmd update --pull' pulls git repositories.\n"
        "  work\n"
        "    Another index: 'qmd --index work import tobi' reads it.\n"
    )
    assert not scratch.database.exists()


def test_the_collections_are_indexed(scratch: Scratch) -> None:
    assert "Indexed 1 collection: 1 document\n" in scratch.ok("import", "tobi").out
    assert "notes/a.md" in scratch.ok("search", "sourdough").out
    again = scratch.ok("import", "tobi")
    assert "Took 0 collections" in again.out and "a collection before" in again.out


def test_an_index_of_a_name_comes_into_that_index(scratch: Scratch) -> None:
    report = scratch.ok("--index", "work", "import", "tobi", "--json").json()
    assert list(report) == ["source", "dry_run", "collections", "contexts", "not_taken"]
    assert report["collections"] == [
        {
            "name": "work",
            "path": f"{scratch.root}/work",
            "pattern": "**/*.md",
            "ignore": ["build/", "dist/", "vendor/"],
            "included": False,
            "contexts": 0,
            "state": "new",
        }
    ]
    assert "work/b.md" in scratch.ok("--index", "work", "search", "rye", "-c", "work").out
    assert not scratch.database.exists()


def test_they_may_be_filled_later(scratch: Scratch) -> None:
    vaults = {"vaults": {"1": {"path": f"{scratch.root}/notes", "ts": 1}}}
    scratch.write("home/.config/obsidian/obsidian.json", json.dumps(vaults))
    assert "qmd index\n" in scratch.ok("import", "obsidian", "--no-index").out
    assert scratch.ok("ls", "--json").json() == []


def test_a_missing_file_is_an_error_with_a_way_out(scratch: Scratch) -> None:
    result = scratch.call("import", "basic-memory", "--json")
    assert result.code == 1
    assert result.error()["hint"] == "Give the file's path."
    assert "'qmd import tobi NAME'" in scratch.call("import", "tobi", "nope").err


def test_an_archive_becomes_a_collection(scratch: Scratch) -> None:
    with zipfile.ZipFile(scratch.root / "n.zip", "w") as archive:
        archive.writestr("pages/a.md", "# Rhubarb\n")
        archive.writestr("../evil.md", "x")
    planned = scratch.ok("import", "markdown-zip", "n.zip", "new", "--dry-run")
    assert "Would write 1 file (10 bytes)" in planned.out
    done = scratch.ok("import", "markdown-zip", "n.zip", "new")
    assert "  ../evil.md\n    Its path leads out of the folder.\n" in done.out
    assert "Collection: new\nIndexed 1 collection: 1 document\n" in done.out
    assert "new/pages/a.md" in scratch.ok("search", "rhubarb").out
    again = scratch.ok("import", "markdown-zip", "n.zip", "new", "--json").json()
    assert (again["files"], again["present"]) == (0, 1)


class TestExports:
    @pytest.fixture
    def filled(self, scratch: Scratch) -> Scratch:
        scratch.ok("import", "tobi")
        scratch.ok("note", "create", "notes/new.md", "--content", "text")
        scratch.write("home/.config/qmd/config.toml", 'editor = "vim"\n')
        return scratch

    def test_a_knowledge_base_moves_to_another_machine(
        self, filled: Scratch, tmp_path: Path
    ) -> None:
        out = filled.ok("export", "all.zip").out
        assert out.startswith(f"Wrote {filled.root}/all.zip (")
        assert out.endswith(
            "  1 collection · 0 contexts · 1 revision · 0 conversations · config.toml\n"
        )
        other = Scratch(tmp_path / "other")
        other.write("mine/a.md", "# Sourdough\n")
        move = f"{filled.root}/notes={other.root}/mine"
        planned = other.ok("import", "qmd", f"{filled.root}/all.zip", "--move", move, "--dry-run")
        assert "Would take 1 collection and 0 contexts" in planned.out
        done = other.ok("import", "qmd", f"{filled.root}/all.zip", "--move", move)
        assert "History: 1 change, 1 revision; 0 conversations\n" in done.out
        assert "Settings: not taken." in done.out
        assert "notes/a.md" in other.ok("search", "sourdough").out
        config = other.root / "home/.config/qmd/config.toml"
        assert not config.exists()
        other.ok("import", "qmd", f"{filled.root}/all.zip", "--settings", "--json")
        assert config.read_text() == 'editor = "vim"\n'

    def test_wrong_words_are_refused(self, filled: Scratch) -> None:
        assert filled.call("import", "qmd", "x", "--move", "only").code == 2
        assert filled.call("import", "qmd", "x").code == 1
