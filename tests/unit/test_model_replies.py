"""What language models write, read without ever failing in another way than with a reason."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import InferenceError
from qmd.inference import replies
from qmd.inference.protocols import Expansion

LINES = "lex: sqlite backup\nvec: how is the database saved\nhyde: Copy the file every night."
EXPECTED = [
    Expansion("lex", "sqlite backup"),
    Expansion("vec", "how is the database saved"),
    Expansion("hyde", "Copy the file every night."),
]


@pytest.mark.parametrize(
    "text",
    [
        LINES,
        f"Sure! Here are other ways to ask:\n\n{LINES}\n\nDoes that help?",
        f"```\n{LINES}\n```",
        "1. **lex**: sqlite backup\n2. **vec**: how is the database saved\n"
        "3. **hyde**: Copy the file every night.",
        "- LEX: `sqlite backup`\n* Vec: 'how is the database saved'\n"
        "• HyDE： “Copy the file every night.”",
        LINES.replace("\n", "\r\n\r\n"),
        json.dumps([{"type": e.kind, "text": e.text} for e in EXPECTED]),
        json.dumps({"queries": [{"kind": e.kind, "query": e.text} for e in EXPECTED]}),
        "```json\n" + json.dumps({e.kind: [e.text] for e in EXPECTED}, indent=2) + "\n```",
        json.dumps(LINES.splitlines()),
        f"As note [1] says:\n{LINES}",
        LINES + "\nlex: SQLite  Backup\nlex: how TO back up",
    ],
)
def test_expansions_are_read_however_they_are_dressed_up(text: str) -> None:
    assert replies.expansions(text, "How to back up", 5) == EXPECTED


def test_chinese_lines_with_wide_colons_are_read() -> None:
    found = replies.expansions("lex：数据库 备份\nvec：怎样保存数据？", "如何备份", 5)
    assert found == [Expansion("lex", "数据库 备份"), Expansion("vec", "怎样保存数据？")]


def test_no_more_expansions_than_asked_for_and_none_endless() -> None:
    text = "\n".join(f"lex: word{number} " + "x" * 5000 for number in range(20))
    found = replies.expansions(text, "q", 3)
    assert len(found) == 3
    assert all(len(each.text) <= 300 for each in found)


@pytest.mark.parametrize(
    "text",
    [
        "I cannot help with that.",
        "lex:\nvec: ?!\nhyde:   ",
        "lex: the question",
        "[]",
        "{}",
        '{"lex": 5, "vec": null, "hyde": {"a": [true]}}',
        "[" * 30_000,
        '{"a":' * 10_000,
        "lex " * 100_000,
        "complex: word",
    ],
)
def test_without_a_usable_line_it_says_so(text: str) -> None:
    with pytest.raises(InferenceError, match="no other way to ask"):
        replies.expansions(text, "The  Question", 5)


def test_control_characters_do_not_come_through() -> None:
    (found,) = replies.expansions("lex: red\x1b[31m \x00boat\u202e\u2028", "q", 5)
    assert found.text.isprintable()


@settings(deadline=None)
@given(st.text(max_size=400), st.sampled_from(["", "lex: ", '[{"type":"lex","text":', "1. vec:"]))
def test_any_text_is_read_or_refused(text: str, start: str) -> None:
    try:
        found = replies.expansions(start + text, "q", 5)
    except InferenceError:
        return
    assert 1 <= len(found) <= 5
    assert all(each.text.strip() and each.kind in {"lex", "vec", "hyde"} for each in found)


@pytest.mark.parametrize(
    ("reply", "text"),
    [
        ({"choices": [{"message": {"content": " hello "}}]}, "hello"),
        ({"choices": [{"message": {"content": "<think>lex: no\n</think>\nhello"}}]}, "hello"),
        ({"choices": [{"message": {"content": [{"text": "hel"}, {"text": "lo"}, 3]}}]}, "hello"),
    ],
)
def test_the_text_of_a_chat_completion(reply: Any, text: str) -> None:
    assert replies.chat_text(reply) == text


@pytest.mark.parametrize(
    "reply",
    [
        None,
        [],
        "text",
        {},
        {"choices": []},
        {"choices": [None]},
        {"choices": {"0": 1}},
        {"choices": [{"message": None}]},
        {"choices": [{"message": {"content": None}}]},
        {"choices": [{"message": {"content": 5}}]},
        {"choices": [{"message": {"content": "  "}}]},
        {"choices": [{"message": {"content": "<think>and on and on"}}]},
        {"error": "model is loading"},
    ],
)
def test_what_is_no_chat_completion_is_refused(reply: Any) -> None:
    with pytest.raises(InferenceError):
        replies.chat_text(reply)


@pytest.mark.parametrize(
    "text",
    [
        "[10, 0, 2.5]",
        "Here you are:\n```json\n[10, 0, 2.5]\n```",
        '{"scores": [10, 0, 2.5]}',
        '{"1": 10, "3": 2.5, "2": 0}',
        '[{"id": 1, "score": 10}, {"id": 2, "score": 0}, {"id": 3, "score": 2.5}]',
        '["10", "0", "2.5"]',
        "[1] 10\n[2] 0\n[3] 2.5",
        "Passage 1: 10\nPassage 3: 2.5\nPassage 2: 0",
    ],
)
def test_marks_from_0_to_10_become_0_to_1(text: str) -> None:
    assert replies.scores(text, 3) == [1.0, 0.0, 0.25]


@pytest.mark.parametrize(
    "text",
    [
        "",
        "none of them",
        "[1, 2]",
        "[1, 2, 3, 4]",
        "[1, 2, NaN]",
        "[1, 2, Infinity]",
        "[1, 2, -3]",
        "[1, 2, 11]",
        "[1, 2, true]",
        "[1, 2, null]",
        '[1, 2, "high"]',
        "[1, 2, 1" + "0" * 400 + "]",
        "[" * 20_000,
    ],
)
def test_marks_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(InferenceError):
        replies.scores(text, 3)


def test_a_rerank_reply_is_put_in_the_order_of_the_passages() -> None:
    rows = [{"index": 1, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.2}]
    assert replies.reranked({"results": rows}, 2) == [0.2, 0.9]
    assert replies.reranked({"data": rows}, 2) == [0.2, 0.9]
    assert replies.reranked([{"index": 1, "score": 0}, {"index": 0, "score": 1}], 2) == [1, 0]


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {},
        [],
        {"results": None},
        {"results": [{"index": 0, "relevance_score": 0.5}]},
        {"results": [{"index": 0, "relevance_score": 0.5}] * 2},
        {"results": [{"index": i, "relevance_score": float("nan")} for i in range(2)]},
        {"results": [{"index": i, "relevance_score": 10**400} for i in range(2)]},
        {"results": [{"index": i, "relevance_score": True} for i in range(2)]},
        {"results": [{"index": i + 1, "relevance_score": 0.1} for i in range(2)]},
        {"results": [{"index": str(i), "relevance_score": 0.1} for i in range(2)]},
        {"results": ["a", "b"]},
    ],
)
def test_a_rerank_reply_with_fewer_scores_than_passages_is_refused(reply: Any) -> None:
    with pytest.raises(InferenceError, match="scores came for 2 passages"):
        replies.reranked(reply, 2)
