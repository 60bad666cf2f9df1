"""Collections, contexts, indexing and upkeep through the command line."""

from __future__ import annotations

import shlex
import shutil
import sqlite3
import subprocess
from contextlib import closing
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from qmd.cli.terminal import columns
from tests.support.cli import NOTES, Scratch, filled
from tests.support.http_server import WITHOUT_MODEL, qmd_server


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return filled(tmp_path)


class TestCollections:
    def test_adding_one_indexes_it(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/a.md", "# Apple\n")
        result = scratch.ok("collection", "add", "notes")
        assert result.out == (
            f"Added collection 'notes': {tmp_path / 'notes'}\n"
            "Indexed 1 collection: 1 document\n"
            "  1 added · 0 updated · 0 moved · 0 removed · 0 unchanged\n"
        )
        assert result.err == ""

    def test_it_may_be_indexed_later(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/a.md", "# Apple\n")
        assert "qmd index -c notes" in scratch.ok("collection", "add", "notes", "--no-index").out
        assert scratch.ok("ls", "--json").json() == []
        scratch.ok("index", "--no-embed")
        assert len(scratch.ok("ls", "--json").json()) == 1

    def test_the_default_is_this_directory_and_its_name(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path / "vault")
        scratch.write("a.md", "# Apple\n")
        scratch.ok("collection", "add")
        assert scratch.ok("collection", "list", "--json").json()[0]["name"] == "vault"

    def test_mask_and_ignore_choose_the_files(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        for name in ("a.md", "b.txt", "c.rst", "drafts/d.md"):
            scratch.write(f"notes/{name}", "text\n")
        rules = ["--mask", "**/*.{md,txt}", "--ignore", "drafts/**"]
        scratch.ok("collection", "add", "notes", "--name", "n", *rules)
        assert [item["file"] for item in scratch.ok("ls", "--json").json()] == ["n/a.md", "n/b.txt"]

    def test_the_documents_of_others_are_not_counted(self, scratch: Scratch) -> None:
        scratch.write("more/a.md", "# Apple\n")
        out = scratch.ok("collection", "add", "more").out
        assert "Indexed 1 collection: 1 document\n" in out

    def test_adding_it_again_says_how_to_bring_it_up_to_date(self, scratch: Scratch) -> None:
        again = scratch.call("collection", "add", "notes")
        assert again.code == 1
        assert "hint: POST /index brings it up to date; in the shell 'qmd index' does." in again.err
        wider = scratch.call("collection", "add", "notes", "--mask", "**/*.{md,txt}")
        assert "hint: Change it: qmd collection set notes --mask '**/*.{md,txt}'" in wider.err
        other = scratch.call("collection", "add", "docs", "--name", "notes")
        assert "hint: Choose another name" in other.err

    def test_names_of_wide_characters_are_aligned(self, scratch: Scratch) -> None:
        scratch.ok("collection", "add", "notes", "--name", "我的笔记", "--no-index")
        lines = scratch.ok("collection", "list").out.splitlines()
        ends = {columns(line[: line.index(" document")]) for line in lines}
        assert len(ends) == 1

    def test_list_and_show_tell_the_same(self, scratch: Scratch) -> None:
        found = {item["name"]: item for item in scratch.ok("collection", "list", "--json").json()}
        assert set(found) == {"notes", "docs"}
        assert list(found["notes"]) == [
            "name",
            "path",
            "pattern",
            "ignore",
            "documents",
            "last_updated",
            "last_indexed",
            "included",
        ]
        assert found["notes"]["documents"] == 3
        shown = scratch.ok("collection", "show", "notes", "--json").json()
        assert shown == found["notes"] | {"contexts": []}
        assert "Documents  3\n" in scratch.ok("collection", "show", "notes").out
        assert "3 documents" in scratch.ok("collection", "list").out

    def test_a_renamed_collection_has_a_new_address(self, scratch: Scratch) -> None:
        assert scratch.ok("collection", "rename", "notes", "work").out == (
            "Renamed 'notes' to 'work'\n"
        )
        [hit] = scratch.ok("search", "SQLite", "--json").json()
        assert hit["uri"] == "qmd://work/plan.md"
        assert scratch.call("get", "qmd://notes/plan.md").code == 1

    def test_a_removed_collection_leaves_its_files(self, scratch: Scratch) -> None:
        scratch.ok("context", "add", "notes", "what I wrote")
        out = scratch.ok("collection", "remove", "notes").out
        assert "Removed collection 'notes' with 3 documents and 1 context;" in out
        assert out.splitlines()[-2] == "Undo: qmd undo"
        assert out.splitlines()[-1].startswith("Later: qmd collection add ")
        assert scratch.ok("search", "SQLite", "--json").json() == []
        assert (scratch.root / "notes/plan.md").exists()

    def test_what_is_added_again_has_its_contexts(self, scratch: Scratch) -> None:
        scratch.ok("context", "add", "notes", "what I wrote")
        undo = scratch.ok("collection", "remove", "notes").out.splitlines()[-1]
        assert scratch.ok("context", "list", "--json").json() == []
        scratch.ok(*shlex.split(undo.removeprefix("Later: qmd ")))
        [context] = scratch.ok("context", "list", "--json").json()
        assert (context["collection"], context["text"]) == ("notes", "what I wrote")
        scratch.ok("context", "rm", "notes")
        scratch.ok("collection", "remove", "notes")
        scratch.ok(*shlex.split(undo.removeprefix("Later: qmd ")))
        assert scratch.ok("context", "list", "--json").json() == []

    def test_undo_brings_a_removed_collection_back(self, scratch: Scratch) -> None:
        scratch.ok("note", "create", "notes/early", "--content", "first")
        scratch.ok("collection", "set", "notes", "--ignore", "2025/")
        scratch.ok("context", "add", "notes", "what I wrote")
        scratch.ok("collection", "exclude", "notes")

        def shown() -> list[str]:
            lines = scratch.ok("collection", "show", "notes").out.splitlines()
            return [line for line in lines if not line.startswith("Indexed")]  # to the minute

        before = shown()
        scratch.ok("collection", "remove", "notes")
        scratch.ok("note", "create", "docs/late", "--content", "second")
        assert "created docs/late.md" in scratch.ok("undo").out  # the last change comes first
        assert "Undid: removed the collection 'notes'" in scratch.ok("undo").out
        assert shown() == before
        [context] = scratch.ok("context", "list", "--json").json()
        assert context["text"] == "what I wrote"
        assert "created notes/early.md" in scratch.ok("undo").out  # and only once
        # What was added again by hand has nothing to undo, nor has what nobody can add again.
        scratch.ok("collection", "remove", "notes")
        scratch.ok("collection", "add", str(scratch.root / "notes"))
        assert scratch.call("undo").code == 1
        scratch.ok("collection", "remove", "notes")
        (scratch.root / "notes").rename(scratch.root / "elsewhere")
        assert "There is no directory" in scratch.call("undo").err
        assert "no change to undo" in scratch.call("undo").err

    def test_mask_and_ignore_patterns_can_be_changed(self, scratch: Scratch) -> None:
        for name in ("a.md", "b.txt", "drafts/c.md"):
            scratch.write(f"more/{name}", "text\n")
        scratch.ok("collection", "add", "more")

        def files() -> list[str]:
            return [each["path"] for each in scratch.ok("ls", "more", "--json").json()]

        scratch.ok("collection", "set", "more", "--mask", "**/*.{md,txt}", "--ignore", "drafts/")
        assert files() == ["a.md", "b.txt"]
        scratch.ok("collection", "set", "more", "--no-ignore", "--mask", "*.txt")
        assert files() == ["b.txt"]
        assert scratch.call("collection", "set", "more").code == 2
        assert scratch.call("collection", "set", "more", "--mask", "[").code in (0, 1)
        assert scratch.call("collection", "set", "nope", "--mask", "*.md").code == 1

    def test_the_names_of_tobis_commands_work(self, scratch: Scratch) -> None:
        assert scratch.ok("collection", "mv", "notes", "work").out == "Renamed 'notes' to 'work'\n"
        assert "Documents  3\n" in scratch.ok("collection", "info", "work").out
        assert scratch.ok("collection", "rm", "work").out.startswith(
            "Removed collection 'work' with"
        )
        scratch.ok("context", "add", "/", "everything")
        assert scratch.ok("context", "remove", "/").out == "Removed context for /\n"

    def test_an_excluded_one_is_searched_only_by_name(self, scratch: Scratch) -> None:
        assert "unless they name it: -c notes" in scratch.ok("collection", "exclude", "notes").out
        assert scratch.ok("search", "SQLite", "--json").json() == []
        assert scratch.ok("search", "SQLite", "-c", "notes", "--json").json() != []
        assert scratch.ok("collection", "list").out.count("  excluded\n") == 1
        assert "xlsx,odt,odp,ods}, excluded, changed" in scratch.ok("status").out
        assert "only if named: -c notes\n" in scratch.ok("collection", "show", "notes").out
        assert scratch.ok("collection", "include", "notes").out == (
            "Searches look in 'notes' again.\n"
        )
        assert scratch.ok("search", "SQLite", "--json").json() != []

    def test_the_status_says_that_a_folder_is_gone(self, scratch: Scratch) -> None:
        assert "missing" not in scratch.ok("status", "--json").out
        (scratch.root / "notes").rename(scratch.root / "moved")
        assert "odt,odp,ods}, its folder cannot be read, changed" in scratch.ok("status").out
        collections = scratch.ok("status", "--json").json()["collections"]
        assert [each["name"] for each in collections if each.get("missing")] == ["notes"]


class TestContexts:
    def test_they_are_added_listed_and_removed(self, scratch: Scratch) -> None:
        folder = str(scratch.root / "notes/2025")
        assert scratch.ok("context", "add", "notes/2025", "this year").out == (
            f"Added context for {folder}\n"
        )
        scratch.ok("context", "add", "/", "everything")
        scratch.ok("context", "add", "qmd://docs", "manuals")
        listed = {item["uri"]: item for item in scratch.ok("context", "list", "--json").json()}
        assert set(listed) == {"/", "qmd://docs", "qmd://notes/2025"}
        assert listed["qmd://notes/2025"] == {
            "path": folder,
            "uri": "qmd://notes/2025",
            "collection": "notes",
            "prefix": "2025",
            "text": "this year",
        }
        [hit] = scratch.ok("search", "deploying", "--path", "notes/2025", "--json").json()
        assert hit["context"] == "everything\n\nthis year"
        scratch.ok("context", "rm", "qmd://notes/2025")
        scratch.ok("context", "rm", "/")
        assert [c["uri"] for c in scratch.ok("context", "list", "--json").json()] == ["qmd://docs"]

    def test_one_word_describes_the_directory_one_stands_in(self, scratch: Scratch) -> None:
        inside = Scratch(scratch.root / "notes", {"QMD_DB": str(scratch.database)})
        inside.ok("context", "add", "my notes")
        [context] = scratch.ok("context", "list", "--json").json()
        assert (context["uri"], context["text"]) == ("qmd://notes", "my notes")

    def test_people_see_place_and_text(self, scratch: Scratch) -> None:
        scratch.ok("context", "add", "/", "everything")
        assert scratch.ok("context", "list").out == "/  /\n  everything\n"

    def test_a_place_outside_every_collection_is_an_error(self, scratch: Scratch) -> None:
        assert scratch.call("context", "add", str(scratch.root / "home"), "text").code == 1

    def test_removing_none_is_an_error(self, scratch: Scratch) -> None:
        assert scratch.call("context", "rm", "qmd://notes").code == 1


class TestIndex:
    def test_it_tells_what_changed(self, scratch: Scratch) -> None:
        scratch.write("notes/new.md", "# New\n")
        scratch.write("notes/plan.md", "# Another plan, of another length\n")
        (scratch.root / "docs/api.md").unlink()
        (scratch.root / "docs/long.md").rename(scratch.root / "docs/longer.md")
        assert scratch.ok("index", "--no-embed").out == (
            "Indexed 2 collections: 5 documents\n"
            "  1 added · 1 updated · 1 moved · 1 removed · 2 unchanged\n"
        )

    def test_one_collection_may_be_chosen(self, scratch: Scratch) -> None:
        scratch.write("notes/new.md", "# New\n")
        scratch.write("docs/new.md", "# New\n")
        scratch.ok("index", "-c", "docs", "--no-embed")
        assert len(scratch.ok("ls", "docs", "--json").json()) == 3
        assert len(scratch.ok("ls", "notes", "--json").json()) == 3

    def test_verify_reads_what_looks_unchanged(self, scratch: Scratch) -> None:
        assert "5 unchanged" in scratch.ok("index", "--verify", "--no-embed").out

    def test_skipped_files_are_named_with_the_reason(self, scratch: Scratch) -> None:
        for number in range(12):
            scratch.write(f"notes/binary{number:02}.md", b"\x00\x01\x02")
        result = scratch.ok("index", "--no-embed")
        lines = result.err.splitlines()
        assert lines[0] == "Skipped 12 files:"
        assert lines[1].startswith("  binary: The file holds bytes")
        assert lines[2] == "    notes/binary00.md"
        assert lines[12] == "  … and 2 more: qmd status"
        status = scratch.ok("status", "--json").json()
        assert len(status["skipped"]) == 12
        assert list(status["skipped"][0]) == ["file", "reason", "detail"]
        assert scratch.ok("status").out.count("binary") >= 12

    def test_a_folder_that_vanished_is_an_error_and_keeps_its_documents(
        self, scratch: Scratch
    ) -> None:
        shutil.rmtree(scratch.root / "docs")
        scratch.write("notes/new.md", "# New\n")
        result = scratch.call("index", "--no-embed")
        assert result.code == 1
        assert "docs" in result.err
        assert "hint: " in result.err
        assert len(scratch.ok("ls", "docs", "--json").json()) == 2
        assert len(scratch.ok("ls", "notes", "--json").json()) == 4

    def test_update_pulls_where_there_is_a_work_tree(self, tmp_path: Path) -> None:
        def git(*args: str, where: Path) -> None:
            identity = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
            subprocess.run(["git", *identity, *args], cwd=where, check=True, capture_output=True)

        scratch = Scratch(tmp_path)
        origin = scratch.write("origin/a.md", "# Apple\n").parent
        git("init", "-q", where=origin)
        git("add", ".", where=origin)
        git("commit", "-qm", "one", where=origin)
        git("clone", "-q", "origin", "clone", where=tmp_path)
        scratch.write("plain/b.md", "# Birch\n")
        scratch.ok("collection", "add", "clone")
        scratch.ok("collection", "add", "plain")
        scratch.write("origin/c.md", "# Cherry\n")
        git("add", ".", where=origin)
        git("commit", "-qm", "two", where=origin)
        scratch.ok("update", "--no-embed")
        assert scratch.ok("search", "cherry", "--json").json() == []
        assert scratch.ok("update", "--pull", "--no-embed").out.startswith("Updated 2 collections")
        assert len(scratch.ok("search", "cherry", "--json").json()) == 1

        scratch.write("origin/d.md", "# Date\n")
        git("add", ".", where=origin)
        git("commit", "-qm", "three", where=origin)
        git("config", "filter.x.smudge", "touch mark", where=tmp_path / "clone")
        refused = scratch.call("update", "--pull", "--no-embed")
        assert refused.code == 1
        assert "clone: not pulled: its own git configuration sets filter.x.smudge" in refused.err
        assert "pull yourself: git -C" in refused.err
        with qmd_server(
            scratch.database, environment=scratch.environment | WITHOUT_MODEL
        ) as server:
            answer = server.ask("POST", "/update", {"pull": True})
            assert answer.status == 200
            (problem,) = answer.json()["errors"]
            assert "sets filter.x.smudge" in problem
            git("config", "--unset", "filter.x.smudge", where=tmp_path / "clone")
            hook = scratch.write("clone/.git/hooks/post-merge", f"#!/bin/sh\ntouch {tmp_path}/mark")
            hook.chmod(0o755)
            assert "errors" not in server.ask("POST", "/update", {"pull": True}).json()
            assert (tmp_path / "clone/d.md").exists()
        assert not (tmp_path / "mark").exists()


class TestUpkeep:
    def test_status_json_is_complete(self, scratch: Scratch) -> None:
        status = scratch.ok("status", "--json").json()
        assert list(status) == [
            "database",
            "database_bytes",
            "total_documents",
            "needs_embedding",
            "chunks",
            "chunks_embedded",
            "chunks_outdated",
            "has_vector_index",
            "model",
            "next_model",
            "next_embedded",
            "token_states",
            "last_indexed",
            "collections",
            "skipped",
            "excluded",
            "excluded_kinds",
            "embedding_left_s",
            "pictures",
            "pictures_waiting",
            "pictures_failed",
            "ocr_left_s",
            "ocr_problem",
            "english_model",
            "english_waiting",
        ]
        assert status["database"] == str(scratch.database)
        assert status["total_documents"] == len(NOTES)
        assert status["needs_embedding"] == len(NOTES)
        assert status["has_vector_index"] is False
        assert len(status["collections"]) == 2

    def test_status_tells_people_what_to_run(self, scratch: Scratch) -> None:
        out = scratch.ok("status").out
        assert f"Documents  {len(NOTES)}\n" in out
        assert "qmd embed" in out

    def test_status_names_the_kinds_of_files_that_are_left_out(self, scratch: Scratch) -> None:
        for name in ("a.mobi", "b.MOBI", "c.png", "d.jpg", "e.tar.verylongsuffix"):
            scratch.write(f"notes/{name}", "x")
        scratch.ok("index", "--no-embed")
        status = scratch.ok("status", "--json").json()
        assert status["excluded_kinds"] == {"MOBI": 2, "photo": 2, "other": 1}
        assert "2 MOBI, 2 photos, 1 other (qmd why PATH)" in scratch.ok("status").out
        assert "about 1 s: qmd embed" in scratch.ok("status").out
        scratch.write("notes/broken.md", "a\0b")
        scratch.ok("index", "--no-embed")
        status = scratch.ok("status", "--json").json()
        assert status["excluded_kinds"] == {"MOBI": 2, "photo": 2, "other": 1}  # it is "skipped"

    def test_why_explains_what_is_there_and_what_is_not(self, scratch: Scratch) -> None:
        scratch.write("notes/.hidden.md", "text\n")
        scratch.ok("index", "--no-embed")
        assert scratch.ok("why", "notes/plan.md").out.startswith("notes/plan.md: indexed\n")
        found = scratch.ok("why", str(scratch.root / "notes/.hidden.md"), "--json").json()
        assert list(found) == ["path", "indexed", "reason", "remedy", "detail"]
        assert found["indexed"] is False
        assert "hidden" in found["reason"]

    def test_times_for_people_are_local(self, scratch: Scratch) -> None:
        there = scratch.with_env(TZ="Asia/Shanghai")
        modified = there.ok("ls", "--json").json()[0]["modified"]
        utc = datetime.fromisoformat(modified.replace("Z", "+00:00"))
        local = utc.astimezone(timezone(timedelta(hours=8))).strftime("%Y-%m-%d %H:%M")
        file = there.ok("ls", "--json").json()[0]["file"]
        assert f"modified: {local}\n" in there.run("why", file).out

    def test_a_list_without_documents_names_the_filter(self, scratch: Scratch) -> None:
        assert "has the tag 'wrok'" in scratch.ok("ls", "--tag", "wrok").err
        assert "lies below 'notes/2052'. Did you mean: notes/2025" in (
            scratch.ok("ls", "notes/2052").err
        )

    def test_patterns_that_are_left_out_are_listed(self, scratch: Scratch) -> None:
        scratch.ok("collection", "set", "notes", "--ignore", "2025/", "--no-index")
        assert "odp,ods}, without 2025/\n" in scratch.ok("collection", "list").out
        assert "odp,ods}, without 2025/," in scratch.ok("status").out

    def test_cleanup_removes_only_without_dry_run(self, scratch: Scratch) -> None:
        scratch.ok("collection", "remove", "notes")
        dry = scratch.ok("cleanup", "--dry-run", "--json").json()
        assert list(dry) == ["dry_run", "removed", "bytes_before", "bytes_after"]
        assert scratch.ok("cleanup", "--dry-run", "--json").json() == dry
        done = scratch.ok("cleanup", "--json").json()
        assert done["removed"] == dry["removed"]
        assert not any(scratch.ok("cleanup", "--dry-run", "--json").json()["removed"].values())

    def test_doctor_lists_its_checks(self, scratch: Scratch) -> None:
        result = scratch.call("doctor", "--json")
        checks = result.json()
        assert {tuple(check) for check in checks} == {("name", "status", "message", "remedy")}
        assert result.code == int(any(check["status"] == "error" for check in checks))
        names = {check["name"] for check in checks}
        assert {"sqlite", "integrity"} <= names
        assert "integrity" in scratch.call("doctor").out


class TestUp:
    def test_a_folder_becomes_searchable_once_and_for_all(
        self, tmp_path: Path, model_cache: Path
    ) -> None:
        scratch = Scratch(tmp_path, {"QMD_CACHE_DIR": str(model_cache)})
        for name, text in NOTES.items():
            scratch.write(name, text)
        result = scratch.run("up", "--once", "notes", "docs")
        assert (result.code, result.err) == (0, "")
        lines = result.out.splitlines()
        assert lines[0] == f"Added collection 'notes': {tmp_path / 'notes'}"
        assert "Indexed 2 collections: 5 documents" in lines
        [hint] = [line for line in lines if line.startswith("Search it now:")]
        words = hint.partition("qmd search ")[2]
        assert scratch.ok("search", words, "--json").json() != []
        assert "Everything is searchable by words; making vectors of 5 documents." in lines
        assert scratch.ok("status", "--json").json()["needs_embedding"] == 0

        scratch.write("notes/slow.md", "# Slow\n\nA machine that takes its time.\n")
        with closing(sqlite3.connect(scratch.database)) as database, database:
            database.execute("UPDATE z_meta SET value = '1620' WHERE key = 'embedding_seconds'")
        assert (
            "Everything is searchable by words; making vectors of 1 document, about 27 min."
            " Ctrl-C loses nothing: 'qmd embed' goes on.\n"
        ) in scratch.ok("up", "--once", "notes", "docs").out
        (tmp_path / "notes/slow.md").unlink()
        scratch.ok("index")

        again = scratch.ok("up", "--once", "notes/../notes")
        assert "Added collection" not in again.out
        assert "3 unchanged" in again.out
        assert len(scratch.ok("collection", "list", "--json").json()) == 2
        scratch.write("other/new.md", "# New\n")
        scratch.ok("collection", "add", "other")
        part = scratch.ok("up", "--once", "notes").out
        assert "words; making vectors of notes.\nEmbedded 0 chunks" in part
        scratch.ok("collection", "remove", "other")

        found = scratch.ok("vsearch", "how do we restore a backup?", "--json").json()
        assert found[0]["file"] == "notes/zh/备份.md"
        assert found[0]["match"] == "semantic"
        again = scratch.ok("vsearch", "how do we restore a backup?", "--explain", "--json")
        assert "cosine" in again.json()[0]["explain"]
        both = scratch.ok("query", "database", "--explain", "--json").json()
        assert both[0]["explain"]["parts"]
        assert scratch.ok("embed").out.startswith("Embedded 0 chunks")

    def test_without_a_model_words_are_enough(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path, {"QMD_MODEL": "no-such-model"})
        scratch.write("notes/a.md", "# Apple\n")
        scratch.ok("collection", "add", "notes")
        result = scratch.call("up", "--once")
        assert result.code == 0
        assert "Indexed 1 collection: 1 document" in result.out
        assert "qmd embed" in result.err
        assert len(scratch.ok("search", "apple", "--json").json()) == 1
