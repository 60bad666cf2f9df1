"""Any string is a query: never an error, always the same answer, within its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from qmd.parse.lines import split_lines
from qmd.search.query import parse_string
from qmd.values import SearchReply
from tests.support.corpus import Corpus

LONG_LINE = "The word needle lies far " + "along a very long line " * 60 + "before its end."
FILES = {
    "plan.md": "---\ntags: [work]\n---\n# Plan\n\nBuy a boat, sail to the islands.\nNOT AND OR\n",
    "db.md": "# 数据库\r\n\r\n数据库的使用方法：先备份，再迁移。\r\n最后检查。\r\n",
    "code.md": '# C++ and C#\n\n`std::vector<int> foo_bar;` NEAR(a b) ^start wild* "quoted"\n',
    "long.md": f"# Long\n\n{LONG_LINE}\n\n🙂 emoji 👍🏽\n",
    "empty.md": "",
    "one.md": "a",
    "separators.md": "first\u2028still first\nsecond\rthird\r\n\r\nfifth\x0bfifth",
}
SYNTAX = st.sampled_from(
    [
        '"',
        "''",
        "NEAR(",
        "NEAR(a b, 2)",
        "^",
        "*",
        "a*",
        "+",
        "-",
        "--",
        "-a",
        '-"',
        "AND",
        "OR",
        "NOT",
        "(",
        ")",
        "{title}",
        "title:",
        "path:",
        "tag:",
        "tag:work",
        "title:*",
        "-tag:x",
        ":",
        "\0",
        "\ud800",
        "\udfff",
        "数据",
        "，",
        "🙂",
        "%",
        "_",
        "\\",
        ";--",
        "\u200b",
        "\u0301",
        "ＯＲ",
        "\n",
        "body : x",
        "C++",
        "needle",
        "lex:",
        "\nvec: a",
        "hyde:",
        "intent: \r",
    ]
)
ANY_TEXT = st.text(st.characters(), max_size=40)
QUERIES = st.one_of(
    ANY_TEXT,
    st.lists(st.one_of(SYNTAX, ANY_TEXT), max_size=8).map(" ".join),
    st.lists(SYNTAX, max_size=8).map("".join),
)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Corpus]:
    made = Corpus(tmp_path_factory.mktemp("any-query"))
    made.fill(FILES)
    made.kb.embed()
    yield made
    made.kb.close()


def check(reply: SearchReply, limit: int | None) -> None:
    scores = [hit.score for hit in reply.hits]
    assert scores == sorted(scores, reverse=True)
    assert all(0 <= score <= 1 for score in scores)
    assert all(0 <= hit.relevance <= 1 for hit in reply.hits)
    assert limit is None or len(reply.hits) <= limit
    assert len({hit.file for hit in reply.hits}) == len(reply.hits)
    matches = [hit.match for hit in reply.hits if hit.match != "semantic"]
    if "semantic" not in {hit.match for hit in reply.hits}:
        assert matches == sorted(matches), "exact hits come before relaxed ones"
    for hit in reply.hits:
        check_snippet(hit.snippet, hit.line, FILES[hit.path])


def check_snippet(snippet: str, line: int, text: str) -> None:
    """Each line is ``N: `` and line N of the source, whole or with … where it is cropped."""
    lines = split_lines(text)
    assert len(snippet) <= 300
    if not lines:
        assert snippet == ""
        return
    numbers = []
    for shown in snippet.split("\n"):
        number, separator, content = shown.partition(": ")
        assert separator
        numbers.append(int(number))
        whole = lines[int(number) - 1]
        if content != whole:
            assert "…" in (content[:1], content[-1:])
            piece = content.removeprefix("…").removesuffix("…")
            assert piece
            assert piece in whole
            assert content.startswith("…") == (not whole.startswith(piece))
            assert content.endswith("…") == (not whole.endswith(piece))
    assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
    assert line in numbers


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(query=QUERIES, limit=st.sampled_from([1, 2, 5, None]))
@example(query='"', limit=None)
@example(query="-", limit=None)
@example(query="a" * 40 + "*", limit=None)
@example(query="needle", limit=None)
@example(query="\u19d0 ᦰ", limit=None)
def test_any_string_can_be_searched_for(corpus: Corpus, query: str, limit: int | None) -> None:
    reply = corpus.kb.search(query, limit=limit)
    check(reply, limit)
    assert corpus.kb.search(query, limit=limit) == reply
    assert reply.degraded is None


@settings(deadline=None, max_examples=50, suppress_health_check=[HealthCheck.too_slow])
@given(query=QUERIES, limit=st.sampled_from([1, 2, 5, None]))
def test_any_string_can_be_asked_of_both_retrievers(
    corpus: Corpus, query: str, limit: int | None
) -> None:
    reply = corpus.kb.query(query, limit=limit, explain=True)
    check(reply, limit)
    assert corpus.kb.query(query, limit=limit, explain=True) == reply
    near = corpus.kb.vsearch(query, limit=limit, min_score=0.0)
    check(near, limit)


@pytest.mark.parametrize(
    "query",
    [
        "x" * 100_000,
        '"' + "word " * 20_000 + '"',
        " ".join(f"word{number}" for number in range(5_000)),
        "数据库的使用方法" * 5_000,
        '"' + "数据库的使用方法" * 5_000 + '"',
        " ".join(["a OR"] * 3_000),
        " ".join(f'-"w{number}"' for number in range(2_000)) + " plan",
        " ".join(f"-w{number}" for number in range(2_000)) + " plan",
        " ".join(f"tag:t{number}" for number in range(2_000)),
        " OR ".join(f"w{number}" for number in range(2_000)),
        "(" * 50_000,
        "，。" * 20_000,
        "a*" * 20_000,
        "🙂" * 10_000,
        " ".join(f"title:w{number}" for number in range(500)),
        " ".join(f"foo_{number}" for number in range(500)),
    ],
    ids=lambda query: f"{query[:12]}… of {len(query)}",
)
@pytest.mark.unmeasured
def test_a_pasted_text_is_a_query_too(corpus: Corpus, query: str) -> None:
    check(corpus.kb.search(query, limit=10), 10)
    check(corpus.kb.query(query, limit=10), 10)


@settings(deadline=None)
@given(query=QUERIES)
def test_parsing_never_fails_and_keeps_every_term_non_blank(query: str) -> None:
    parsed = parse_string(query)
    assert all(term.text.strip() for term in (*parsed.terms, *parsed.excluded))
    assert not re.search("[\0\ud800-\udfff]", parsed.text)
