"""Reading: the text is the file's, by whatever name it is asked for."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from qmd.values.text import estimate_tokens
from tests.support.cli import NOTES, Scratch, filled


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    return filled(tmp_path_factory.mktemp("cli"))


class TestGet:
    @pytest.mark.parametrize(
        "name",
        [
            "notes/plan.md",
            "qmd://notes/plan.md",
            "plan.md",
            "./notes/plan.md",
            "PLAN",
            "[[plan|the road map]]",
            "road map",
        ],
    )
    def test_a_document_has_many_names(self, scratch: Scratch, name: str) -> None:
        assert scratch.ok("get", name, "--no-line-numbers").out == NOTES["notes/plan.md"]

    def test_its_docid_is_one_of_them(self, scratch: Scratch) -> None:
        [hit] = scratch.ok("search", "SQLite", "--json").json()
        assert scratch.ok("get", hit["docid"], "--json").json()["file"] == "notes/plan.md"

    def test_an_outline_lists_headings_with_their_lines(self, scratch: Scratch) -> None:
        assert scratch.ok("outline", "plan").out == "    1  Road map\n"
        outline = scratch.ok("outline", "plan#Road map", "--json").json()
        assert outline["file"] == "notes/plan.md"
        assert outline["headings"] == [{"level": 1, "text": "Road map", "line": 1, "last_line": 5}]

    def test_a_line_after_the_last_says_how_many_there_are(self, scratch: Scratch) -> None:
        for arguments in (["get", "notes/plan.md:99"], ["multi-get", "notes/plan.md:99"]):
            done = scratch.ok(*arguments)
            assert "from line 99 on: notes/plan.md has 5 lines." in done.err
        assert scratch.ok("get", "notes/plan.md:99").out == ""
        assert "from line" not in scratch.ok("get", "notes/plan.md:5").err

    def test_lines_are_numbered_as_an_editor_does(self, scratch: Scratch) -> None:
        assert scratch.ok("get", "notes/plan.md").out.splitlines() == [
            "1: # Road map",
            "2: ",
            "3: We deploy the parser in March.",
            "4: ",
            "5: The database is SQLite.",
        ]

    @pytest.mark.parametrize(
        "args",
        [
            ["docs/long.md:10:3"],
            ["docs/long.md:10", "-l", "3"],
            ["docs/long.md", "--from", "10", "-l", "3"],
            ["docs/long.md:10", "--from", "50", "-l", "3"],
            ["docs/long.md:10:40", "-l", "3"],
        ],
        ids=" ".join,
    )
    def test_a_part_is_asked_for_in_several_ways(self, scratch: Scratch, args: list[str]) -> None:
        result = scratch.ok("get", *args)
        assert result.out == "10: line 10\n11: line 11\n12: line 12\n"
        assert result.err == "… 48 more lines\n"

    def test_a_part_ends_its_last_line(self, scratch: Scratch) -> None:
        part = scratch.ok("get", "docs/long.md:10:2", "--no-line-numbers")
        assert part.out == "line 10\nline 11\n"

    def test_a_part_may_end_with_a_blank_line(self, scratch: Scratch) -> None:
        assert scratch.ok("get", "notes/plan.md:2:1").out == "2: \n"
        assert scratch.ok("get", "notes/plan.md", "-l", "2").out == "1: # Road map\n2: \n"
        plain = scratch.ok("get", "notes/plan.md", "-l", "2", "--no-line-numbers").out
        assert plain == "# Road map\n\n"
        several = scratch.ok("multi-get", "notes/plan.md", "-l", "2").out
        assert several == "==> notes/plan.md <==\n1: # Road map\n2: \n[... 3 more lines]\n"

    def test_behind_the_end_there_is_no_text(self, scratch: Scratch) -> None:
        assert scratch.ok("get", "notes/plan.md:99").out == ""

    def test_json_holds_the_exact_text(self, scratch: Scratch) -> None:
        found = scratch.ok("get", "docs/long.md:10:2", "--json").json()
        assert list(found) == [
            "docid",
            "file",
            "uri",
            "title",
            "collection",
            "path",
            "context",
            "from_line",
            "more_lines",
            "body",
        ]
        assert (found["from_line"], found["more_lines"]) == (10, 49)
        assert found["body"].splitlines() == ["line 10", "line 11"]

    def test_the_other_formats_hold_the_text_too(self, scratch: Scratch) -> None:
        text = NOTES["notes/plan.md"]
        assert scratch.ok("get", "notes/plan.md", "--md").out == text
        rows = list(csv.DictReader(io.StringIO(scratch.ok("get", "notes/plan.md", "--csv").out)))
        assert rows[0]["body"] == text
        tree = ElementTree.fromstring(scratch.ok("get", "notes/plan.md", "--xml").out)
        assert [node.text for node in tree.findall("document")] == [text]
        docid = scratch.ok("get", "notes/plan.md", "--json").json()["docid"]
        assert scratch.ok("get", "notes/plan.md", "--files").out == f"{docid},notes/plan.md,\n"

    def test_the_bytes_of_a_document_come_back(self, tmp_path: Path) -> None:
        body = "# 标题\r\n\r\nno final newline, 𝄞 and\ttabs\u2028 too".encode()
        scratch = Scratch(tmp_path)
        scratch.write("notes/a.md", body)
        scratch.ok("collection", "add", "notes")
        done = scratch.run_raw("get", "a.md", "--no-line-numbers")
        assert done.stdout == body

    def test_a_file_called_like_a_place_is_found_first(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/x.md", "one\ntwo\n")
        scratch.write("notes/x.md:2:1", "a real file\n")
        scratch.ok("collection", "add", "notes", "--mask", "**/*")
        assert scratch.ok("get", "notes/x.md:2:1").out == "1: a real file\n"
        assert scratch.ok("get", "notes/x.md:1:1").out == "1: one\n"

    def test_a_missing_document_gets_suggestions(self, scratch: Scratch) -> None:
        result = scratch.call("get", "notes/plam.md")
        assert result.code == 1
        assert "Document not found: notes/plam.md" in result.err
        assert "notes/plan.md" in result.err

    def test_an_ambiguous_name_lists_what_it_could_be(self, tmp_path: Path) -> None:
        scratch = Scratch(tmp_path)
        scratch.write("notes/a/same.md", "one\n")
        scratch.write("notes/b/same.md", "two\n")
        scratch.ok("collection", "add", "notes")
        result = scratch.call("get", "same.md", "--json")
        assert result.code == 1
        assert result.error()["code"] == "ambiguous_name"
        assert "notes/a/same.md" in result.error()["message"]


class TestMultiGet:
    def test_a_glob_that_the_shell_has_resolved_is_a_list_of_names(self, scratch: Scratch) -> None:
        listed = scratch.ok("multi-get", "docs/api.md, notes/plan.md", "--json").json()
        assert scratch.ok("multi-get", "docs/api.md", "notes/plan.md", "--json").json() == listed

    @pytest.mark.parametrize("command", ["multi-get", "multi_get"])
    def test_a_glob_finds_them_all(self, scratch: Scratch, command: str) -> None:
        found = scratch.ok(command, "notes/**/*.md", "--json").json()
        assert sorted(item["file"] for item in found) == sorted(
            name for name in NOTES if name.startswith("notes/")
        )
        assert all(item["body"] == NOTES[item["file"]] for item in found)

    def test_people_see_a_header_before_each(self, scratch: Scratch) -> None:
        out = scratch.ok("multi-get", "docs/api.md, notes/plan.md", "-l", "1").out
        assert out == (
            "==> docs/api.md <==\n1: # API\n[... 2 more lines]\n"
            "\n==> notes/plan.md <==\n1: # Road map\n[... 4 more lines]\n"
        )

    def test_a_large_one_is_left_out_and_said_so(self, scratch: Scratch) -> None:
        [item] = scratch.ok("multi-get", "docs/long.md", "--max-bytes", "100", "--json").json()
        assert item["skipped"] is True
        assert "qmd get docs/long.md" in item["reason"]
        assert "body" not in item
        assert (
            "[SKIPPED: docs/long.md is "
            in scratch.ok("multi-get", "docs/long.md", "--max-bytes", "100").out
        )

    def test_a_missing_name_is_an_error_behind_what_was_found(self, scratch: Scratch) -> None:
        result = scratch.call("multi-get", "notes/plan.md, nope.md", "--json")
        assert result.code == 1
        assert [item["file"] for item in json.loads(result.out)] == ["notes/plan.md"]
        assert "nope.md" in result.error()["message"]

    def test_a_pattern_without_a_match_is_an_error(self, scratch: Scratch) -> None:
        result = scratch.call("multi-get", "nope/*.md")
        assert (result.code, result.out) == (1, "")
        assert "No files matched pattern: nope/*.md" in result.err

    def test_every_format_holds_every_document(self, scratch: Scratch) -> None:
        args = ["multi-get", "docs/api.md, notes/plan.md"]
        tree = ElementTree.fromstring(scratch.ok(*args, "--xml").out)
        rows = list(csv.DictReader(io.StringIO(scratch.ok(*args, "--csv").out)))
        names = ["docs/api.md", "notes/plan.md"]
        assert [node.get("file") for node in tree] == names
        assert [node.text for node in tree] == [NOTES[name] for name in names]
        assert [row["body"] for row in rows] == [NOTES[name] for name in names]
        lines = scratch.ok(*args, "--files").out.splitlines()
        assert [line.split(",")[1] for line in lines] == names


class TestLs:
    def test_json_is_the_object_of_the_contract(self, scratch: Scratch) -> None:
        found = scratch.ok("ls", "notes/2025", "--json").json()
        assert [list(item) for item in found] == [
            ["file", "collection", "path", "title", "docid", "bytes", "modified"]
        ]
        assert found[0]["file"] == "notes/2025/retro.md"
        assert found[0]["bytes"] == len(NOTES["notes/2025/retro.md"].encode())

    def test_without_a_prefix_it_lists_all(self, scratch: Scratch) -> None:
        assert sorted(item["file"] for item in scratch.ok("ls", "--json").json()) == sorted(NOTES)

    def test_a_prefix_is_compared_by_whole_components(self, scratch: Scratch) -> None:
        assert scratch.ok("ls", "notes/20", "--json").json() == []

    def test_people_see_a_line_for_each(self, scratch: Scratch) -> None:
        [line] = scratch.ok("ls", "notes/zh").out.splitlines()
        assert line.endswith("notes/zh/备份.md  备份方案")


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    text = "A line about the harbour.\n" * 100
    notes = {f"n/{number}.md": text for number in range(30)}
    return filled(tmp_path_factory.mktemp("budget"), notes)


class TestBudget:
    def test_get_says_what_is_left_out_and_how_to_print_it(self, long: Scratch) -> None:
        result = long.ok("get", "n/1.md", "--max-tokens", "300")
        assert estimate_tokens(result.out) <= 300
        lines = len(result.out.splitlines())
        assert result.err == f"… lines {lines + 1} to 100 left out: qmd get 'n/1.md:{lines + 1}'\n"
        [document] = long.ok("multi-get", "n/1.md", "--max-tokens", "300", "--json").json()
        assert document["left_out"]["last_line"] == 100

    def test_multi_get_names_the_first_document_that_is_missing(self, long: Scratch) -> None:
        result = long.ok("multi-get", "n/*.md", "--max-tokens", "2000", "--json")
        shown = len(result.json())
        assert 2 <= shown < 30
        assert f"{30 - shown} more documents left out, the first is n/" in result.err
        assert "--max-tokens" in result.err

    def test_multi_get_has_a_bound_of_bytes_that_can_be_raised(self, long: Scratch) -> None:
        result = long.ok("multi-get", "n/*.md", "--max-total-bytes", "10000")
        assert len(result.out) <= 10_000
        assert "--max-total-bytes" in result.err
        assert long.ok("multi-get", "n/*.md").err == ""
