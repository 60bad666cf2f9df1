"""Answers with a budget: they fit, the best comes first, and what is missing is said."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from qmd import KnowledgeBase
from qmd.errors import InputError
from qmd.operations import texts
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.parse.lines import split_lines
from qmd.tools.toolsets import tools_of
from qmd.values import DocumentSlice
from qmd.values.text import MAX_TOTAL_BYTES, MIN_TOKENS, estimate_tokens
from tests.support.corpus import Corpus

TOOLS = tools_of("qmd", alone=True)

LINE = "The harbour master counts the boats every evening, and writes them down.\n"
CHINESE = "港口管理员每天傍晚清点船只，并且把数目写在本子上。\n"
FILES = {
    **{f"en/{number:03}.md": f"# Boats {number}\n\n{LINE * 30}" for number in range(40)},
    **{f"zh/{number:03}.md": f"# 船 {number}\n\n{CHINESE * 30}" for number in range(40)},
    "long line.md": "word " * 3000,
    "huge.md": LINE * 10_000,
    "windows.md": LINE.replace("\n", "\r\n") * 100,
    **{f"quotes/{number:03}.md": '"\\\t\x01' * 2000 for number in range(30)},
}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    corpus = Corpus(tmp_path_factory.mktemp("budget"))
    corpus.fill(FILES)
    corpus.kb.add_context("notes/en", "what the harbour master wrote")
    yield corpus.kb
    corpus.kb.close()


def call(
    kb: KnowledgeBase, name: str, arguments: dict[str, Any], dialect: texts.Dialect = texts.MCP
) -> Reply:
    (tool,) = (tool for tool in TOOLS if tool.name == name)
    return tool.call(kb, arguments, dialect)


def text_of(reply: Reply) -> str:
    return "\n".join(
        block.text if isinstance(block, TextBlock) else block.shown for block in reply.blocks
    )


class TestHits:
    @pytest.mark.parametrize("tool", ["search", "query"])
    @pytest.mark.parametrize("budget", [300, 500, 1000, 2000, 4000])
    @pytest.mark.parametrize("query", ["harbour boats", "港口 船只", "boats -zzz 船"])
    @pytest.mark.unmeasured
    def test_a_reply_fits_into_its_budget(
        self, kb: KnowledgeBase, tool: str, budget: int, query: str
    ) -> None:
        whole = call(kb, tool, {"query": query})
        reply = call(kb, tool, {"query": query, "maxTokens": budget})
        assert reply.structured is not None
        assert whole.structured is not None
        results = reply.structured["results"]
        assert estimate_tokens(text_of(reply)) <= budget
        assert estimate_tokens(json.dumps(reply.structured, ensure_ascii=False)) <= budget
        shown = [hit["docid"] for hit in results]
        assert shown == [hit["docid"] for hit in whole.structured["results"]][: len(shown)]
        assert shown, "the least budget shows a hit"
        left_out = len(whole.structured["results"]) - len(shown)
        assert reply.structured.get("leftOut", 0) == left_out
        assert ("left out: raise maxTokens" in text_of(reply)) == (left_out > 0)

    @pytest.mark.unmeasured
    def test_snippets_are_shortened_before_hits_are_left_out(self, kb: KnowledgeBase) -> None:
        def shown(budget: int) -> tuple[int, int]:
            reply = kb.search("harbour boats", limit=5, max_tokens=budget)
            return len(reply.hits), sum("\n" in hit.snippet for hit in reply.hits)

        whole, snippets = shown(100_000)
        assert (whole, snippets) == (5, 5)
        budgets = range(300, 1500, 20)
        counts = [shown(budget) for budget in budgets]
        assert counts == sorted(counts), "a greater budget shows no less"
        assert any(hits == 5 and full < 5 for hits, full in counts)
        assert all(full == 0 for hits, full in counts if hits < 5)

    def test_rest_counts_what_is_left_out(self, kb: KnowledgeBase) -> None:
        reply = call(kb, "search", {"query": "harbour boats", "max_tokens": 500}, texts.REST)
        assert reply.structured is not None
        assert reply.structured["left_out"] > 0

    def test_a_long_query_is_not_repeated_whole(self, kb: KnowledgeBase) -> None:
        reply = call(kb, "search", {"query": "boats " * 1000, "maxTokens": 300})
        assert estimate_tokens(text_of(reply)) <= 300

    def test_a_budget_below_the_least_is_refused(self, kb: KnowledgeBase) -> None:
        with pytest.raises(InputError, match="at least 300"):
            kb.search("boats", max_tokens=299)
        for tool, argument in (("search", "query"), ("get", "file"), ("multi_get", "pattern")):
            reply = call(kb, tool, {argument: "x", "maxTokens": 5})
            assert reply.is_error
            assert "maxTokens" in text_of(reply)
            assert "300" in text_of(reply)

    def test_whole_numbers_and_null_are_as_elsewhere(self, kb: KnowledgeBase) -> None:
        assert not call(kb, "search", {"query": "boats", "maxTokens": 500.0}).is_error
        assert not call(kb, "get", {"file": "en/001.md", "maxTokens": None}).is_error


class TestGet:
    @pytest.mark.parametrize("numbered", [False, True])
    @pytest.mark.parametrize("budget", [300, 500, 1000])
    @pytest.mark.parametrize("file", ["en/001.md", "zh/001.md", "windows.md", "long line.md"])
    def test_a_reply_fits_into_its_budget_and_fills_it(
        self, kb: KnowledgeBase, file: str, budget: int, numbered: bool
    ) -> None:
        arguments = {"file": file, "maxTokens": budget, "lineNumbers": numbered}
        reply = call(kb, "get", arguments)
        tokens = estimate_tokens(text_of(reply))
        assert tokens <= budget
        if len(reply.blocks) > 1:
            assert tokens >= 0.6 * budget

    def test_the_notice_says_how_to_read_on_and_nothing_is_lost(self, kb: KnowledgeBase) -> None:
        text = FILES["windows.md"]
        parts: list[str] = []
        name = "notes/windows.md"
        while True:
            part = kb.get(name, max_tokens=500)
            parts.append(part.text)
            if part.left_out is None:
                break
            assert part.left_out.last_line == 100
            name = f"notes/windows.md:{part.left_out.first_line}"
        lines = [line for part in parts for line in split_lines(part)]
        assert lines == split_lines(text)
        reply = call(kb, "get", {"file": "windows.md", "maxTokens": 500})
        first = kb.get("windows.md", max_tokens=500).left_out
        assert first is not None
        notice = reply.blocks[-1].text
        start = first.first_line
        assert notice == f"[lines {start}-100 left out: get notes/windows.md:{start}]"

    def test_lines_that_were_not_asked_for_are_not_left_out(self, kb: KnowledgeBase) -> None:
        part = kb.get("windows.md:10:3", max_tokens=300)
        assert part.left_out is None
        assert part.more_lines == 88
        part = kb.get("windows.md:10:60", max_tokens=300)
        assert part.left_out is not None
        assert part.left_out.last_line == 69

    def test_a_line_over_the_budget_is_begun(self, kb: KnowledgeBase) -> None:
        part = kb.get("long line.md", max_tokens=300)
        assert part.left_out is not None
        assert part.left_out.is_begun
        assert FILES["long line.md"].startswith(part.text.removesuffix("…"))
        reply = call(kb, "get", {"file": "long line.md", "maxTokens": 300})
        assert reply.blocks[-1].text == "[the end of line 1 left out: raise maxTokens]"

    def test_a_document_with_room_is_unchanged(self, kb: KnowledgeBase) -> None:
        assert kb.get("windows.md", max_tokens=100_000) == kb.get("windows.md")

    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
    @given(st.integers(MIN_TOKENS, 3000), st.integers(1, 120))
    def test_any_budget_gives_the_beginning_of_the_lines(
        self, kb: KnowledgeBase, budget: int, line: int
    ) -> None:
        whole = kb.get(f"windows.md:{line}")
        part = kb.get(f"windows.md:{line}", max_tokens=budget)
        assert whole.text.startswith(part.text)
        assert estimate_tokens(part.text) <= budget


class TestMultiGet:
    @pytest.mark.parametrize("numbered", [False, True])
    @pytest.mark.parametrize("budget", [300, 1000, 5000])
    @pytest.mark.parametrize("pattern", ["en/*.md", "zh/*.md", "**/*.md", "huge.md,en/001.md"])
    @pytest.mark.unmeasured
    def test_a_reply_fits_into_its_budget(
        self, kb: KnowledgeBase, pattern: str, budget: int, numbered: bool
    ) -> None:
        arguments = {"pattern": pattern, "maxTokens": budget, "lineNumbers": numbered}
        assert estimate_tokens(text_of(call(kb, "multi_get", arguments))) <= budget

    @pytest.mark.parametrize(
        "arguments",
        [
            {"pattern": "**/*.md"},
            {"pattern": "**/*.md", "lineNumbers": True, "maxBytes": 10_000_000},
            {"pattern": "quotes/*.md", "maxBytes": 10_000_000},
            {"pattern": "huge.md", "maxBytes": 10_000_000, "lineNumbers": True},
            {"pattern": "**/*.md", "maxBytes": 1},
            {"pattern": ",".join("x" * 190 for _ in range(1000))},
        ],
        ids=["all", "numbered", "escapes", "one large", "all skipped", "unknown names"],
    )
    def test_without_a_budget_a_reply_has_a_bound_of_bytes(
        self, kb: KnowledgeBase, arguments: dict[str, Any]
    ) -> None:
        reply = call(kb, "multi_get", arguments)
        sent = [
            [block.text, block.uri, block.title] if isinstance(block, DocumentBlock) else block.text
            for block in reply.blocks
        ]
        assert len(json.dumps(sent, ensure_ascii=False).encode()) <= MAX_TOTAL_BYTES

    def test_the_end_says_what_is_missing_and_how_to_go_on(self, kb: KnowledgeBase) -> None:
        reply = kb.multi_get("en/*.md", max_tokens=2000)
        shown = [item for item in reply.items if isinstance(item, DocumentSlice)]
        assert len(shown) + reply.more == 40
        assert reply.next_file == f"notes/en/{len(shown):03}.md"
        last = call(kb, "multi_get", {"pattern": "en/*.md", "maxTokens": 2000}).blocks[-1]
        assert isinstance(last, TextBlock)
        assert last.text == (
            f"[{reply.more} more documents left out, the first is {reply.next_file}: "
            "narrow the pattern, or list the files to read next]"
        )

    def test_reading_on_gives_every_document(self, kb: KnowledgeBase) -> None:
        names = sorted(f"notes/{name}" for name in FILES if name.startswith("zh/"))
        seen: list[str] = []
        while len(seen) < len(names):
            reply = kb.multi_get(",".join(names[len(seen) :]), max_total_bytes=20_000)
            assert reply.items
            for item in reply.items:
                seen.append(item.document.file)
                if isinstance(item, DocumentSlice) and item.left_out is not None:
                    rest = kb.get(f"{item.document.file}:{item.left_out.first_line}")
                    assert FILES[item.document.path] == f"{item.text}\n{rest.text}\n"
            assert reply.next_file == (names[len(seen)] if len(seen) < len(names) else None)
        assert seen == names

    def test_a_caller_in_python_can_lift_the_bound(self, kb: KnowledgeBase) -> None:
        reply = kb.multi_get("**/*.md", max_bytes=10_000_000, max_total_bytes=None)
        assert len(reply.items) == len(FILES)
        assert reply.more == 0


class TestLargeDocument:
    """A document that is larger than some MCP clients let a reply be."""

    TEXT = "".join(f'{number} a "quoted" line of a long log\n' for number in range(60_000))

    @pytest.fixture(scope="class")
    @classmethod
    def large(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
        corpus = Corpus(tmp_path_factory.mktemp("large"))
        corpus.fill({"log.md": cls.TEXT, "line.md": "x" * 1_500_000 + "\nend\n"})
        yield corpus.kb
        corpus.kb.close()

    @pytest.mark.parametrize("numbered", [False, True])
    def test_get_over_mcp_has_a_bound_and_says_how_to_go_on(
        self, large: KnowledgeBase, numbered: bool
    ) -> None:
        arguments = {"file": "log.md", "lineNumbers": numbered}
        document, notice = call(large, "get", arguments).blocks
        assert isinstance(document, DocumentBlock)
        assert len(json.dumps(document.text).encode()) <= MAX_TOTAL_BYTES
        following = document.text.count("\n") + 2
        assert notice.text == f"[lines {following}-60000 left out: get notes/log.md:{following}]"
        next_block = call(large, "get", {**arguments, "file": f"log.md:{following}"}).blocks[0]
        assert next_block.text.startswith(f"{following}: " if numbered else f"{following - 1} a")

    def test_one_line_may_be_larger_than_the_bound(self, large: KnowledgeBase) -> None:
        document, notice = call(large, "get", {"file": "line.md"}).blocks
        assert 100_000 < len(document.text) <= MAX_TOTAL_BYTES
        assert notice.text == (
            "[the end of line 1, which no reply has room for, and line 2 left out: "
            "get notes/line.md:2]"
        )

    def test_rest_and_python_give_the_whole_document(self, large: KnowledgeBase) -> None:
        assert large.get("log.md").text == self.TEXT
        (document,) = call(large, "get", {"file": "log.md"}, texts.REST).blocks
        assert document.text == self.TEXT


class TestLists:
    """The tools that list links, headings, tags and changes."""

    @pytest.fixture(scope="class")
    @classmethod
    def linked(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
        corpus = Corpus(tmp_path_factory.mktemp("lists"))
        headings = "".join(f"## Part {number} of the harbour\n\ntext\n\n" for number in range(100))
        notes = {
            f"note {number}.md": f"# Note {number}\n\nFrom [[hub]] to [[gone {number}]].\n"
            f"#boats/kind{number}\n"
            for number in range(100)
        }
        links = "".join(f"[[note {number}]]\n" for number in range(100))
        corpus.fill({**notes, "hub.md": f"# Hub\n\n{links}\n{headings}"})
        yield corpus.kb
        corpus.kb.close()

    @pytest.mark.parametrize("budget", [300, 1000, 3000])
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("links", {"file": "hub", "limit": 100}),
            ("check_links", {"limit": 100}),
            ("tags", {"limit": 100}),
            ("recent", {"limit": 100}),
            ("outline", {"file": "hub"}),
        ],
    )
    def test_a_reply_fits_and_says_how_much_is_missing(
        self, linked: KnowledgeBase, name: str, arguments: dict[str, Any], budget: int
    ) -> None:
        (tool,) = (tool for tool in tools_of("graph", alone=False) if tool.name == name)
        whole = tool.call(linked, arguments, texts.MCP)
        reply = tool.call(linked, {**arguments, "maxTokens": budget}, texts.MCP)
        assert not reply.is_error
        assert estimate_tokens(text_of(reply)) <= budget
        assert estimate_tokens(json.dumps(reply.structured, ensure_ascii=False)) <= budget
        assert " more" in text_of(reply)
        lines = text_of(reply).splitlines()
        shown = [line for line in lines if not line.startswith("…")]
        assert set(shown) <= set(text_of(whole).splitlines())
        assert len(shown) >= 3
