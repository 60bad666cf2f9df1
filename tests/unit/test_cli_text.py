"""What the command line does to text: harmless on a terminal, unchanged in every format."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import re
import sys
import unicodedata
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from qmd.cli.formats import _NOT_XML, flat, md_fenced, numbered, xml_element
from qmd.cli.render_hits import explanation, render_hits
from qmd.cli.terminal import escape_json, harmless, one_line, use_color
from qmd.search.present import splitter
from qmd.values import Hit, SearchReply

# All there is, surrogates too: file names and queries may hold them.
ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()))
DIRECTIONS = set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")


def dangerous(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp")} | (
        set(text) & DIRECTIONS
    )


@given(ANY_TEXT)
@settings(deadline=None)
def test_a_name_is_one_line_without_control_characters(text: str) -> None:
    assert dangerous(one_line(text)) == set()


@given(ANY_TEXT)
@settings(deadline=None)
def test_a_text_keeps_only_tabs_and_line_ends(text: str) -> None:
    assert dangerous(harmless(text)) <= {"\t", "\n"}


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
@settings(deadline=None)
def test_ordinary_text_stays_as_it_is(text: str) -> None:
    assert one_line(text) == text
    assert harmless(text) == text


@given(ANY_TEXT)
@settings(deadline=None)
def test_json_is_safe_to_print_and_means_the_same(text: str) -> None:
    printed = escape_json(json.dumps({"a": text}, ensure_ascii=False, indent=2))
    assert dangerous(printed) <= {"\n"}
    assert json.loads(printed) == json.loads(json.dumps({"a": text}))


# --- each format, read by a real parser: what went in comes out ---------------------------

#: What breaks formats, beside any other character.
AWKWARD = [*"\r\n\t\",;|=+@-`#<>&'\0\x0b\x1b\x85\u2028\u2029\ud800\ufeff ", "\r\n", "]]>", "```"]
awkward = st.lists(st.sampled_from(AWKWARD) | st.text(max_size=3), max_size=8).map("".join)
stored = awkward.map(lambda text: text.replace("\ud800", "?"))  # no name holds a surrogate
hits = st.builds(
    Hit,
    docid=st.just("#abc123"),
    file=st.builds("{}/{}".format, stored, stored),
    title=awkward,
    score=st.floats(0, 1),
    context=st.none() | awkward,
    snippet=awkward,
    line=st.integers(1, 9999),
    relevance=st.floats(0, 1),
    match=st.just("exact"),
)
replies = st.lists(hits, max_size=3).map(lambda found: SearchReply("query", tuple(found)))


def printed(reply: SearchReply, output: str, bodies: list[str] | None = None) -> str:
    with contextlib.redirect_stdout(io.StringIO(newline="")) as out:
        render_hits(reply, output, bodies=bodies, line_numbers=False)
    return out.getvalue()


def read_csv(text: str) -> list[list[str]]:
    assume("\0" not in text or sys.version_info >= (3, 11))  # the reader of 3.10 refuses it
    return list(csv.reader(io.StringIO(text, newline=""), strict=True))


@given(replies, st.booleans())
@settings(deadline=None)
def test_csv_gives_its_fields_back(reply: SearchReply, full: bool) -> None:
    bodies = [hit.title for hit in reply.hits] if full else None
    header, *rows = read_csv(printed(reply, "csv", bodies))
    assert header == ["docid", "score", "file", "title", "context", "line", "snippet"] + (
        ["body"] if full else []
    )
    assert rows == [
        [hit.docid, f"{hit.score:.4f}", hit.file, hit.title, hit.context or "", str(hit.line)]
        + [hit.snippet]
        + ([hit.title] if full else [])
        for hit in reply.hits
    ]


@given(replies)
@settings(deadline=None)
def test_files_give_their_fields_back(reply: SearchReply) -> None:
    assert read_csv(printed(reply, "files")) == [
        [hit.docid, f"{hit.score:.2f}", hit.file, flat(hit.context)] for hit in reply.hits
    ]


@given(replies)
@settings(deadline=None)
def test_json_gives_its_fields_back(reply: SearchReply) -> None:
    for hit, found in zip(reply.hits, json.loads(printed(reply, "json")), strict=True):
        assert (found["file"], found["title"]) == (hit.file, hit.title)
        assert (found["context"], found["snippet"]) == (hit.context, hit.snippet)


@given(replies)
@settings(deadline=None)
def test_xml_gives_all_back_that_xml_can_hold(reply: SearchReply) -> None:
    def held(text: str | None) -> str | None:
        return None if text is None else re.sub(_NOT_XML, "\ufffd", text)

    nodes = ElementTree.fromstring(printed(reply, "xml"))
    for hit, node in zip(reply.hits, nodes, strict=True):
        assert (node.text or "") == held(hit.snippet)
        assert (node.get("file"), node.get("title")) == (held(hit.file), held(hit.title))
        assert node.get("context") == held(hit.context)


@given(hits)
@settings(deadline=None)
def test_nothing_in_a_hit_changes_the_blocks_of_its_markdown(hit: Hit) -> None:
    reply = SearchReply("query", (hit,))
    blocks = [token for token in MarkdownIt().parse(printed(reply, "md")) if token.level == 0]
    assert [block.type for block in blocks] == [
        *("heading_open", "heading_close", "paragraph_open", "paragraph_close", "fence")
    ]


@pytest.mark.parametrize("output", ["cli", "md", "json", "csv", "xml", "files"])
def test_a_notice_stands_above_the_hits_only_for_people(output: str) -> None:
    hit = Hit("#abc123", "notes/a.md", "A", 0.04, None, "1: a", 1, 0.04, "semantic")
    plain = SearchReply("query", (hit,))
    above = "Nothing here.\n\n" if output in ("cli", "md") else ""
    assert printed(replace(plain, notice="Nothing here."), output) == above + printed(plain, output)


@given(ANY_TEXT, ANY_TEXT)
@settings(deadline=None)
def test_xml_is_well_formed_whatever_it_holds(name: str, text: str) -> None:
    node = ElementTree.fromstring(xml_element("file", {"file": name, "none": None}, text))
    assert set(node.attrib) == {"file"}
    if name.isprintable():
        assert node.get("file") == name


@pytest.mark.parametrize("text", ["```\ncode\n```", "plain", "````", "~~~", "a ``` b"])
def test_no_line_of_a_text_closes_its_fence(text: str) -> None:
    first, *middle, last = md_fenced(text).splitlines()
    assert first == last
    assert set(first) == {"`"}
    assert "\n".join(middle) == text
    assert first not in text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ""),
        ("a", "7: a\n"),
        ("a\n", "7: a\n"),
        ("a\r\nb\rc\n\n", "7: a\n8: b\n9: c\n10: \n"),
        ("a\u2028b\x0cc", "7: a\u2028b\x0cc\n"),
    ],
)
def test_lines_are_numbered_as_an_editor_counts_them(text: str, expected: str) -> None:
    assert numbered(text, 7) == expected


def test_a_context_of_paragraphs_becomes_one_line() -> None:
    assert flat("all notes\n\nthis  year\n") == "all notes · this  year"
    assert flat(None) == ""


def with_marks(query: str, text: str) -> str:
    parts = splitter(query)(text)
    return "".join(f"<{part}>" if is_match else part for part, is_match in parts)


class TestHighlight:
    @pytest.mark.parametrize(
        ("query", "text", "marked"),
        [
            ("deploys", "We deploy; they Deployed.", "We <deploy>; they <Deployed>."),
            ("deploy", "redeploy", "redeploy"),
            ("数据库", "关系数据库的库", "关系<数据库>的库"),
            ("数据库备份", "备份数据库", "<备份数据库>"),
            ("plan -draft", "a draft of the plan", "a draft of the <plan>"),
            ("the plan", "the plan", "the <plan>"),
            ('"road map"', "a road map", "a <road map>"),
            ("restore", "We re\xadsto\xadred\xad it.", "We <re\xadsto\xadred>\xad it."),
            ("数据库", "数\u200b据库\ufeff", "<数\u200b据库>\ufeff"),
            ("", "text", "text"),
            ("[(*", "a [(* b", "a <[(*> b"),
        ],
    )
    def test_it_marks_what_the_query_asks_for(self, query: str, text: str, marked: str) -> None:
        assert with_marks(query, text) == marked

    @given(ANY_TEXT, ANY_TEXT)
    @settings(deadline=None)
    def test_it_takes_any_query_and_changes_no_text(self, query: str, text: str) -> None:
        assert "".join(part for part, _ in splitter(query)(text)) == text


class TestColour:
    @pytest.mark.parametrize(
        ("env", "expected"),
        [
            ({}, False),
            ({"FORCE_COLOR": "1"}, True),
            ({"FORCE_COLOR": ""}, False),
            ({"FORCE_COLOR": "1", "NO_COLOR": "1"}, False),
            ({"FORCE_COLOR": "1", "NO_COLOR": ""}, True),
        ],
    )
    def test_the_environment_decides_where_no_terminal_is(
        self, monkeypatch: pytest.MonkeyPatch, env: dict[str, str], expected: bool
    ) -> None:
        for name in ("FORCE_COLOR", "NO_COLOR"):
            monkeypatch.delenv(name, raising=False)
        for name, value in env.items():
            monkeypatch.setenv(name, value)
        assert use_color(io.StringIO()) is expected


def test_every_format_rounds_a_score_as_the_servers_do(capsys: pytest.CaptureFixture[str]) -> None:
    hit = Hit("#abc123", "notes/a.md", "A", 0.805, None, "1: a", 1, 0.805, "exact")
    for output, shown in (("cli", "A  81%"), ("md", " · 81%"), ("files", "#abc123,0.81,")):
        render_hits(SearchReply("a", (hit,)), output, bodies=None, line_numbers=False)
        assert shown in capsys.readouterr().out


def test_an_explanation_leaves_out_what_was_not_measured() -> None:
    assert explanation({"relevance": {"value": 0.805, "coverage": 1.0, "nearness": None}}) == [
        "    relevance: value 0.805  coverage 1"
    ]


def test_conditions_on_tasks_and_facts_are_not_marked() -> None:
    query, text = "boat task:open due:<2026-12-01 fact:decision", "open task 2026: boat, decision"
    assert with_marks(query, text) == "open task 2026: <boat>, decision"
    assert with_marks("task:open", "an open task") == "an open task"
