"""Searching: every format is what its name says, every option does what the help says."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from qmd.values.text import estimate_tokens
from tests.support.cli import NOTES, Scratch, filled

KEYS = [
    "docid",
    "file",
    "uri",
    "title",
    "score",
    "context",
    "snippet",
    "line",
    "relevance",
    "match",
    "collection",
    "path",
]


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Scratch:
    scratch = filled(tmp_path_factory.mktemp("cli"))
    scratch.ok("context", "add", "qmd://notes", 'plans, "drafts" and reviews')
    return scratch


def hits(scratch: Scratch, *args: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = scratch.ok("search", "--json", *args).json()
    return found


def files(scratch: Scratch, *args: str) -> list[str]:
    return [hit["file"] for hit in hits(scratch, *args)]


class TestJson:
    def test_a_hit_is_the_object_of_the_contract(self, scratch: Scratch) -> None:
        [hit] = hits(scratch, "SQLite")
        assert list(hit) == KEYS
        assert hit["file"] == "notes/plan.md"
        assert hit["uri"] == "qmd://notes/plan.md"
        assert hit["title"] == "Road map"
        assert hit["context"] == 'plans, "drafts" and reviews'
        assert "5: The database is SQLite." in hit["snippet"].split("\n")
        assert hit["line"] == 5
        assert hit["match"] == "exact"
        assert (hit["collection"], hit["path"]) == ("notes", "plan.md")
        assert 0 < hit["score"] <= 1
        assert 0 < hit["relevance"] <= 1
        assert len(hit["docid"]) == 7

    def test_chinese_stays_readable_and_its_uri_is_encoded(self, scratch: Scratch) -> None:
        result = scratch.ok("search", "数据库", "--json")
        assert '"file": "notes/zh/备份.md"' in result.out
        assert result.json()[0]["uri"] == "qmd://notes/zh/%E5%A4%87%E4%BB%BD.md"

    def test_nothing_found_is_an_empty_array_and_no_error(self, scratch: Scratch) -> None:
        result = scratch.call("search", "zyzzyva", "--json")
        assert (result.code, result.out) == (0, "[]\n")

    @pytest.mark.parametrize("query", ["", "   "])
    def test_a_blank_query_finds_nothing_and_is_no_error(
        self, scratch: Scratch, query: str
    ) -> None:
        assert hits(scratch, query) == []

    def test_explain_comes_last_and_only_on_demand(self, scratch: Scratch) -> None:
        [hit] = hits(scratch, "SQLite", "--explain")
        assert list(hit) == [*KEYS, "explain"]
        assert isinstance(hit["explain"], dict)

    def test_full_adds_the_exact_text(self, scratch: Scratch) -> None:
        [hit] = hits(scratch, "SQLite", "--full")
        assert hit["body"] == NOTES["notes/plan.md"]

    def test_full_with_line_numbers_numbers_every_line(self, scratch: Scratch) -> None:
        [hit] = hits(scratch, "SQLite", "--full", "--line-numbers")
        assert hit["body"].splitlines()[-1] == "5: The database is SQLite."


class TestFormats:
    def test_csv_has_a_header_and_quotes(self, scratch: Scratch) -> None:
        rows = list(csv.reader(io.StringIO(scratch.ok("search", "SQLite", "--csv").out)))
        assert rows[0] == ["docid", "score", "file", "title", "context", "line", "snippet"]
        [hit] = hits(scratch, "SQLite")
        assert rows[1] == [
            hit["docid"],
            f"{hit['score']:.4f}",
            "notes/plan.md",
            "Road map",
            'plans, "drafts" and reviews',
            "5",
            hit["snippet"],
        ]

    def test_xml_is_well_formed(self, scratch: Scratch) -> None:
        tree = ElementTree.fromstring(scratch.ok("search", "parser", "--xml").out)
        assert tree.tag == "results"
        found = {node.get("file"): node for node in tree.findall("file")}
        assert set(found) == {"docs/api.md", "notes/plan.md"}
        assert found["notes/plan.md"].get("context") == 'plans, "drafts" and reviews'
        assert "C++ callers" in str(found["docs/api.md"].text)

    def test_files_are_lines_of_docid_score_file_context(self, scratch: Scratch) -> None:
        [hit] = hits(scratch, "SQLite")
        assert scratch.ok("search", "SQLite", "--files").out == (
            f'{hit["docid"]},{hit["score"]:.2f},notes/plan.md,"plans, ""drafts"" and reviews"\n'
        )

    def test_md_has_a_heading_and_a_fenced_snippet(self, scratch: Scratch) -> None:
        out = scratch.ok("search", "SQLite", "--md").out
        assert out.startswith("## Road map\n\n`notes/plan.md:5` · #")
        assert "\n```\n" in out

    def test_cli_names_title_place_score_context_and_lines(self, scratch: Scratch) -> None:
        out = scratch.ok("search", "SQLite").out.splitlines()
        assert out[0].startswith("Road map  ")
        assert out[0].endswith("%")
        assert out[1].startswith("notes/plan.md:5  #")
        assert out[1].endswith('plans, "drafts" and reviews')
        assert "  5: The database is SQLite." in out

    def test_cli_says_on_stderr_that_nothing_was_found(self, scratch: Scratch) -> None:
        result = scratch.call("search", "zyzzyva")
        assert (result.code, result.out) == (0, "")
        assert result.err == 'No results found for "zyzzyva"\n'

    @pytest.mark.parametrize("name", ["json", "csv", "md", "xml", "files"])
    def test_the_short_form_is_the_same(self, scratch: Scratch, name: str) -> None:
        long = scratch.ok("search", "parser", "--format", name)
        assert scratch.ok("search", "parser", f"--{name}") == long
        assert long.out != ""


class TestOptions:
    def test_several_words_are_one_query(self, scratch: Scratch) -> None:
        assert files(scratch, "database", "SQLite") == files(scratch, "database SQLite")

    def test_a_dash_leaves_a_word_out(self, scratch: Scratch) -> None:
        assert sorted(files(scratch, "parser")) == ["docs/api.md", "notes/plan.md"]
        assert files(scratch, "parser -tree") == ["notes/plan.md"]
        assert files(scratch, "--", "parser", "-tree") == ["notes/plan.md"]

    def test_a_collection_is_chosen_and_may_be_repeated(self, scratch: Scratch) -> None:
        assert files(scratch, "parser", "-c", "docs") == ["docs/api.md"]
        assert len(files(scratch, "parser", "-c", "docs", "-c", "notes")) == 2

    def test_the_limit_cuts_and_all_lifts_it(self, scratch: Scratch) -> None:
        assert len(files(scratch, "parser", "-n", "1")) == 1
        assert len(files(scratch, "parser", "--all")) == 2

    def test_a_path_is_compared_by_whole_components(self, scratch: Scratch) -> None:
        assert files(scratch, "deploy", "--path", "notes/2025") == ["notes/2025/retro.md"]
        assert files(scratch, "deploy", "--path", "2025") == ["notes/2025/retro.md"]
        assert files(scratch, "deploy", "--path", "notes/20") == []

    def test_every_tag_must_be_there(self, scratch: Scratch) -> None:
        assert files(scratch, "deploy", "--tag", "team", "--tag", "review") == [
            "notes/2025/retro.md"
        ]
        assert files(scratch, "deploy", "--tag", "team", "--tag", "other") == []

    @pytest.mark.parametrize(
        ("option", "date", "found"),
        [
            ("--after", "2025-03-01", True),
            ("--after", "2025", True),
            ("--after", "2999-01-01", False),
            ("--before", "2025-03-01", False),
            ("--before", "2025-03-02", True),
            ("--before", "2025-04", True),
        ],
    )
    def test_after_is_inclusive_and_before_exclusive(
        self, scratch: Scratch, option: str, date: str, found: bool
    ) -> None:
        assert ("notes/2025/retro.md" in files(scratch, "deploying", option, date)) is found

    def test_min_score_leaves_weaker_hits_out(self, scratch: Scratch) -> None:
        scores = sorted(hit["score"] for hit in hits(scratch, "parser"))
        assert len(hits(scratch, "parser", "--min-score", str(scores[-1] - 0.0001))) == sum(
            score >= scores[-1] - 0.0001 for score in scores
        )
        assert len(hits(scratch, "parser", "--min-score", "0")) == 2

    @pytest.mark.parametrize("mode", ["auto", "local"])
    def test_this_process_answers_when_no_server_runs(self, scratch: Scratch, mode: str) -> None:
        assert files(scratch, "SQLite", "--mode", mode) == ["notes/plan.md"]


class TestBudget:
    @pytest.mark.parametrize("output", ["cli", "json", "csv", "md", "xml", "files"])
    @pytest.mark.parametrize("budget", [300, 600])
    def test_what_is_printed_fits(self, tmp_path: Path, output: str, budget: int) -> None:
        scratch = filled(
            tmp_path, {f"n/{n}.md": f"# 第 {n} 页\n\n港口的船只。\n" for n in range(60)}
        )
        args = ["search", "港口", "-n", "60", "--max-tokens", str(budget), "--format", output]
        result = scratch.ok(*args)
        assert 0.4 * budget <= estimate_tokens(result.out) <= budget
        assert re.fullmatch(r"\d+ more hits left out: raise --max-tokens\.\n", result.err)

    def test_full_texts_are_no_list_of_hits(self, scratch: Scratch) -> None:
        result = scratch.call("search", "SQLite", "--full", "--max-tokens", "500")
        assert result.code == 2
        assert "qmd get --max-tokens" in result.err

    def test_the_least_budget_is_named(self, scratch: Scratch) -> None:
        result = scratch.call("search", "SQLite", "--max-tokens", "20")
        assert result.code == 2
        assert "300" in result.err


class TestNotice:
    NOTICE = "Nothing here seems to answer this; the nearest are:\n"
    HOPELESS = "parser zeppelin quasar marmalade trombone glacier orchid sonata walnut monsoon"

    @pytest.mark.parametrize("output", ["cli", "md"])
    def test_people_read_it_above_the_hits(self, scratch: Scratch, output: str) -> None:
        result = scratch.call("search", self.HOPELESS, "--format", output)
        assert result.out.startswith(f"{self.NOTICE}\n")
        assert result.err == ""

    @pytest.mark.parametrize("output", ["json", "csv", "xml", "files"])
    def test_beside_a_list_it_goes_to_stderr(self, scratch: Scratch, output: str) -> None:
        result = scratch.call("search", self.HOPELESS, "--format", output)
        assert "Nothing" not in result.out
        assert result.err == f"qmd: {self.NOTICE}"

    @pytest.mark.parametrize("query", ["parser", "zeppelin"])
    def test_it_is_not_there_with_an_answer_or_without_hits(
        self, scratch: Scratch, query: str
    ) -> None:
        result = scratch.call("search", query)
        assert "Nothing" not in result.out + result.err


class TestWithoutVectors:
    def test_query_answers_from_words_and_says_so(self, scratch: Scratch) -> None:
        result = scratch.call("query", "SQLite", "--json")
        assert result.code == 0
        assert [hit["file"] for hit in result.json()] == ["notes/plan.md"]
        assert result.err.startswith("qmd: ")
        assert len(result.err.splitlines()) == 1

    def test_query_takes_its_own_options(self, scratch: Scratch) -> None:
        options = ["--no-rerank", "--no-expand", "--candidates", "5", "--intent", "storage"]
        assert scratch.ok("query", "SQLite", "--json", *options).json() != []

    @pytest.mark.parametrize("command", ["search", "vsearch"])
    def test_an_option_of_query_alone_is_refused(self, scratch: Scratch, command: str) -> None:
        result = scratch.call(command, "deploy", "--without", "words")
        assert result.code == 2
        assert "No such option" in result.err

    @pytest.mark.parametrize("command", ["search", "vsearch", "query"])
    def test_a_script_may_give_all_searches_the_same(self, scratch: Scratch, command: str) -> None:
        same = ["--no-rerank", "--no-expand", "--candidates", "5", "--intent", "storage"]
        assert scratch.call(command, "SQLite", *same) == scratch.call(command, "SQLite")

    def test_vsearch_says_what_to_run(self, scratch: Scratch) -> None:
        result = scratch.call("vsearch", "SQLite")
        assert result.code == 1
        assert result.err == (
            "qmd: error: Vector index not found. Run 'qmd embed' first to create embeddings.\n"
            "hint: qmd embed\n"
        )


def test_a_query_of_undecodable_bytes_is_a_query(tmp_path: Path) -> None:
    scratch = filled(tmp_path)
    done = scratch.run_raw("search", b"\xff\xfe".decode("utf-8", "surrogateescape"), "--json")
    assert (done.returncode, done.stdout) == (0, b"[]\n")


def test_a_query_may_be_marked_for_expansion_as_in_tobis_qmd(scratch: Scratch) -> None:
    plain = scratch.ok("query", "SQLite", "--json").json()
    assert plain != []
    assert scratch.ok("query", "expand: SQLite", "--json").json() == plain
    assert scratch.ok("query", "expand:\nlex: SQLite", "--json").json() != []
