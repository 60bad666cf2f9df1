"""Citations: how they are written, and which of them pass."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.claims import FALSE_CLAIMS, TRUE_CLAIMS
from support.embedder import HashEmbedder
from support.pdf import lines, pdf

from qmd import KnowledgeBase, Settings
from qmd.agent.citations import (
    CheckedAnswer,
    CitedLines,
    check_answer,
    citation_check,
    find_citations,
    format_citation,
    marked_answer,
)
from qmd.agent.claims import problem_with, sentences
from qmd.agent.executor import Reading, ToolExecutor
from qmd.agent.parser import ToolCall
from qmd.tools.toolsets import select

RELEASE = """\
# Release plan

We deploy the parser every Tuesday at 9:00.

Roll back to the last tag, then tell the team in the channel.
The archive holds 1,200 photos from 2024.
"""
BACKUP = """\
# 数据库备份

每天夜里两点备份数据库，保留三十天。
恢复之前先停止写入，最后核对行数。
"""
FILES = {"notes/release.md": RELEASE, "notes/备份 [旧].md": BACKUP, "notes/备份.md": BACKUP}


def read_lines(name: str, first: int, last: int) -> CitedLines | None:
    text = FILES.get(name)
    if text is None:
        return None
    lines = text.splitlines()
    return CitedLines(name, lines[0].lstrip("# "), "\n".join(lines[first - 1 : last]), len(lines))


def check(text: str, reading: Reading | None = None) -> CheckedAnswer:
    read = reading or Reading({name: [(1, 6)] for name in FILES})
    return check_answer(text, read, read_lines, lambda claim, source: None)


def reasons(text: str, reading: Reading | None = None) -> list[str]:
    return [citation.reason for citation in check(text, reading).citations]


@pytest.mark.parametrize(
    "claim",
    [
        "The parser is deployed on Tuesday at 9:00 [notes/release.md:3].",
        "We deploy the parser every Tuesday. [notes/release.md:3]",
        "- **Roll back** to the last tag and tell the team [notes/release.md:5-6].",
        "The archive has 1200 photos of 2024 [notes/release.md:6]",
        "数据库每天夜里备份，保留三十天 [notes/备份.md:3]。",
        "恢复之前要停止写入。[notes/备份.md:4]",
        "Deploys are on Tuesdays [notes/release.md:3; notes/release.md:1-3].",
        "解析器每周部署 [notes/release.md:3]",
        "There are two steps [notes/release.md:5]: roll back to the last tag, and tell the team.",
    ],
)
def test_what_the_lines_say_passes(claim: str) -> None:
    assert set(reasons(claim)) == {""}


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        ("We deploy the parser at 10:30 [notes/release.md:3].", "do not say"),
        (
            "We deploy the parser every third Tuesday, since 2019 [notes/release.md:3].",
            "do not say",
        ),
        ("The parser is deployed at ten [notes/release.md:3].", "say 10"),
        ("The archive holds five photos [notes/release.md:6].", "say 5"),
        ("Cheese [notes/release.md:3].", "something else"),
        ("The finance report is due in autumn [notes/release.md:3].", "something else"),
        ("公司收入增长很快 [notes/备份.md:3]。", "something else"),
        ("We deploy on Tuesday [notes/release.md:30].", "has 6 lines"),
        ("We deploy on Tuesday [notes/none.md:3].", "no such document"),
        ("We deploy on Tuesday [notes/release.md:5-3].", "first one first"),
        ("We deploy on Tuesday [notes/release.md:0].", "first one first"),
        ("We deploy on Tuesday [notes/release.md:1-9999999].", "1 to 200"),
    ],
)
def test_what_they_do_not_say_fails_and_the_reason_is_named(claim: str, reason: str) -> None:
    (given_reason,) = reasons(claim)
    assert reason in given_reason


def test_the_page_of_cited_lines_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf([lines("A quagga grazes."), lines("A zebra sleeps.")]))
    (folder / "b.md").write_text("A zebra sleeps.\n")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(folder)
        kb.index()
        line = kb.get("a.pdf#page=2").from_line
        text = f"A zebra sleeps [notes/a.pdf:{line}]. A zebra sleeps [notes/b.md:1]."
        reading = Reading({"notes/a.pdf": [(1, 9)], "notes/b.md": [(1, 1)]})
        checked = citation_check(kb)(text, reading)
    in_pdf, in_note = checked.as_json()["citations"]
    assert (in_pdf["status"], in_pdf["anchor"], in_pdf["place"]) == ("ok", "page=2", "p. 2")
    assert "place" not in in_note
    assert marked_answer(text, checked) == text.replace(f":{line}]", f":{line}] (p. 2)")


def test_lines_that_were_not_read_prove_nothing() -> None:
    reading = Reading({"notes/release.md": [(5, 6)]})
    claim = "We deploy the parser every Tuesday [notes/release.md:3]."
    assert reasons(claim, reading) == ["these lines were not read"]


def test_code_and_links_are_no_citations() -> None:
    text = "```\n[notes/release.md:3]\n```\n\n[a](notes/x.md:3)"
    assert list(find_citations(text)) == []


def test_the_answer_shows_what_failed_and_what_nothing_supports() -> None:
    text = (
        "# Deploying\n\nHere is what I found:\n\nWe deploy on Tuesday [notes/release.md:3]. "
        "The moon is made of cheese [notes/release.md:3]. Nobody likes rainy weekends. Is that all?"
    )
    checked = check(text)
    assert [citation.status for citation in checked.citations] == ["ok", "not_found"]
    assert [sentence.text for sentence in checked.unsupported] == [
        "The moon is made of cheese [notes/release.md:3].",
        "Nobody likes rainy weekends.",
    ]
    assert "cheese [notes/release.md:3] (not found in the source)." in marked_answer(text, checked)
    assert "weekends. (without support)" in marked_answer(text, checked, strict=True)
    assert text == marked_answer(text, CheckedAnswer())


def test_an_answer_full_of_citations_ends_at_the_limit() -> None:
    checked = check("We deploy [notes/release.md:3]. " * 500)
    assert len(checked.citations) == 100


@pytest.mark.parametrize(("claim", "lines"), TRUE_CLAIMS)
def test_true_claims_are_supported(claim: str, lines: str) -> None:
    assert problem_with(claim, lines) == ""


@pytest.mark.parametrize(("claim", "lines"), FALSE_CLAIMS)
def test_false_claims_are_not(claim: str, lines: str) -> None:
    assert problem_with(claim, lines) != ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[notes/my plan.md:3 – 7]", [("notes/my plan.md", 3, 7)]),
        ("[notes/[draft] a.md:1]", [("notes/[draft] a.md", 1, 1)]),
        ("每天备份【笔记/备份.md：8】。", [("笔记/备份.md", 8, 8)]),
        ("[a/b.md:1-2; c d/e.md:5]", [("a/b.md", 1, 2), ("c d/e.md", 5, 5)]),
        ("[a/b.md:1, 5-6]", [("a/b.md", 1, 1), ("a/b.md", 5, 6)]),
        ("[a/b.md:L12-L15]", [("a/b.md", 12, 15)]),
        ("[[a/b.md:3]]", [("a/b.md", 3, 3)]),
        ("at [12:30], [x], [a/b.md], [a/b.md:], [:3], [http://localhost:8080]", []),
        ("```\n[a/b.md:3]\n```\n~~~py\n[a/b.md:4]\n~~~\n[a/b.md:5]", [("a/b.md", 5, 5)]),
        ("[a/b.md:\n3]", []),
    ],
)
def test_what_is_a_citation(text: str, expected: list[tuple[str, int, int]]) -> None:
    assert [(each.file, each.from_line, each.to_line) for each in find_citations(text)] == expected


# --- properties -----------------------------------------------------------------------

_NAMES = (
    st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)
    | st.text("ab/.[]【】;；:：- %5B\n\r12", min_size=1, max_size=30)
).map(lambda name: f"notes/{name}.md".replace("://", ""))


@given(_NAMES, st.integers(1, 9_999), st.integers(0, 9_999))
def test_a_citation_is_read_as_it_was_written(name: str, first: int, more: int) -> None:
    (written,) = find_citations(f"So it is {format_citation(name, first, first + more)}.")
    assert (written.file, written.from_line, written.to_line) == (name, first, first + more)


@given(st.integers(1, 6), st.integers(0, 5), st.sampled_from(["notes/release.md", "notes/备份.md"]))
def test_a_quote_of_lines_that_were_read_passes(first: int, more: int, file: str) -> None:
    lines = FILES[file].splitlines()
    last = min(first + more, len(lines))
    quote = " ".join(lines[min(first, last) - 1 : last]).replace("#", "")
    text = f"{quote.rstrip('.。')} {format_citation(file, min(first, last), last)}"
    assert set(reasons(text)) == {""}


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 5)), max_size=8), st.integers(1, 60))
def test_what_was_read_is_known_line_by_line(ranges: list[tuple[int, int]], line: int) -> None:
    reading = Reading({"a/b.md": [(first, first + more) for first, more in ranges]})
    is_read = any(first <= line <= first + more for first, more in ranges)
    assert reading.holds("a/b.md", line, line) == is_read


@given(st.text(max_size=300))
def test_sentences_are_the_text_in_order(text: str) -> None:
    end = 0
    for sentence in sentences(text):
        assert text[sentence.start : sentence.end] == sentence.text
        assert sentence.start >= end
        end = sentence.end


# --- with the tools -------------------------------------------------------------------


@pytest.fixture
def kb(tmp_path: Path) -> Iterator[KnowledgeBase]:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "release.md").write_text(RELEASE)
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "x.sqlite", settings, create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        yield kb


@pytest.mark.parametrize(
    ("tool", "params", "lines"),
    [
        ("get", {"file": "notes/release.md"}, (1, 6)),
        ("get", {"file": "release", "from_line": 3, "max_lines": 2}, (3, 4)),
        ("multi_get", {"pattern": "notes/*.md", "maxLines": 3}, (1, 3)),
        ("search", {"query": "roll back"}, (5, 5)),
        ("read_note", {"path": "notes/release"}, (1, 6)),
    ],
)
def test_the_lines_that_a_tool_returns_were_read(
    kb: KnowledgeBase, tool: str, params: dict[str, object], lines: tuple[int, int]
) -> None:
    executor = ToolExecutor(kb, select(("qmd", "notes")).tools)
    result = executor.execute(ToolCall(tool, params))
    assert result.success, result.error
    assert result.reading.holds("notes/release.md", *lines)
    assert not result.reading.holds("notes/release.md", lines[0], 99)


def test_a_name_in_a_citation_is_any_name_of_the_document(kb: KnowledgeBase) -> None:
    answer = citation_check(kb)(
        "We deploy on Tuesday [release.md:3]. Also at 9 [nothing.md:3].",
        Reading({"notes/release.md": [(1, 6)]}),
    )
    assert [(each.file, each.status) for each in answer.citations] == [
        ("notes/release.md", "ok"),
        ("nothing.md", "not_found"),
    ]
    assert answer.citations[0].quote == "We deploy the parser every Tuesday at 9:00."


def test_lines_behind_the_end_fail_with_the_length_of_the_document(kb: KnowledgeBase) -> None:
    answer = citation_check(kb)("We deploy on Tuesday [notes/release.md:400].", Reading())
    assert [each.reason for each in answer.citations] == ["the document has 6 lines"]
