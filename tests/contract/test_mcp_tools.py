"""What the six tools answer, to the letter, on a real index."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError
from mcp.server import Server
from mcp_types import (
    CallToolResult,
    EmbeddedResource,
    Implementation,
    TextContent,
    TextResourceContents,
)
from support.live import put
from support.mcp_client import with_client
from support.vault import FILES, make_index

from qmd import KnowledgeBase
from qmd.server.mcp import McpFace
from qmd.values.text import DEFAULT_MASK


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    with KnowledgeBase.open(make_index(tmp_path_factory.mktemp("tools"))) as kb:
        yield kb


@pytest.fixture(scope="module")
def server(kb: KnowledgeBase) -> Server[Any]:
    return McpFace(kb).server


def call(server: Server[Any], name: str, **arguments: Any) -> CallToolResult:
    async def use(client: Client) -> CallToolResult:
        await client.list_tools()  # so that the client checks results against the schemas
        return await client.call_tool(name, arguments)

    return with_client(server, use)


def texts(result: CallToolResult) -> list[str]:
    return [block.text for block in result.content if isinstance(block, TextContent)]


def documents(result: CallToolResult) -> list[TextResourceContents]:
    found = []
    for block in result.content:
        if isinstance(block, EmbeddedResource):
            assert isinstance(block.resource, TextResourceContents)
            found.append(block.resource)
    return found


def refused(result: CallToolResult) -> str:
    assert result.is_error
    assert result.structured_content is None
    assert result.meta is not None and result.meta["qmd/error"]
    (text,) = texts(result)
    return text


# --- search, vsearch, query ----------------------------------------------------------


@pytest.mark.parametrize("tool", ["search", "query"])
def test_a_hit_has_the_sources_fields_and_ours_behind_them(server: Server[Any], tool: str) -> None:
    result = call(server, tool, query="islands")
    (hit,) = result.structured_content["results"]
    assert list(hit)[:6] == ["docid", "file", "title", "score", "context", "snippet"]
    assert set(hit) - set(list(hit)[:6]) == {"line", "relevance", "match"}
    assert (hit["file"], hit["title"]) == ("notes/2025/plan.md", "Plan")
    assert hit["context"] == "the year 2025"
    assert hit["docid"].startswith("#")
    assert len(hit["docid"]) == 7
    assert hit["line"] == 4
    assert hit["match"] == "exact"
    assert "4: Sail to the islands." in hit["snippet"].split("\n")
    assert hit["score"] == round(hit["score"], 2)
    assert 0 < hit["score"] <= 1
    assert texts(result)[0] == (
        'Found 1 result for "islands":\n\n'
        f"{hit['docid']} {round(hit['score'] * 100)}% notes/2025/plan.md - Plan"
    )
    assert hit["score"] == hit["relevance"]
    assert texts(result)[1] == (
        f"notes/2025/plan.md:4 (relevance {hit['relevance']:.2f})\n{hit['snippet']}"
    )


def test_chinese_words_are_found(server: Server[Any]) -> None:
    (hit,) = call(server, "search", query="数据库").structured_content["results"]
    assert (hit["file"], hit["title"]) == ("notes/2025/回顾.md", "年度回顾")


def test_no_context_is_null(server: Server[Any]) -> None:
    (hit,) = call(server, "search", query="sourdough").structured_content["results"]
    assert hit["context"] is None


@pytest.mark.parametrize("tool", ["search", "query"])
@pytest.mark.parametrize("query", ["xyzzyplugh", "", "   "])
def test_nothing_found_is_a_sentence_and_an_empty_list(
    server: Server[Any], tool: str, query: str
) -> None:
    result = call(server, tool, query=query)
    assert not result.is_error
    assert texts(result)[0] == f'No results found for "{query}"'
    assert result.structured_content["results"] == []


def test_explain_comes_only_when_asked(server: Server[Any]) -> None:
    (hit,) = call(server, "search", query="islands", explain=True).structured_content["results"]
    assert isinstance(hit["explain"], dict)


def test_filters_narrow_the_hits(server: Server[Any]) -> None:
    def files(**filters: Any) -> set[str]:
        results = call(server, "search", query="sail OR sourdough", **filters)
        return {hit["file"] for hit in results.structured_content["results"]}

    everything = {"notes/2025/plan.md", "notes/External Podcast/2023 April - Interview.md"}
    assert files(collection="notes") == everything
    assert files(path="2025") == {"notes/2025/plan.md"}
    assert files(path="notes/2025") == {"notes/2025/plan.md"}
    assert files(tags=["none"]) == set()
    assert files(before="1990") == set()
    assert files(limit=1) < everything


def test_vsearch_without_vectors_says_exactly_what_to_do(server: Server[Any]) -> None:
    assert refused(call(server, "vsearch", query="sailing")) == (
        "Vector index not found. Run 'qmd embed' first to create embeddings."
    )


def test_query_without_vectors_answers_and_says_that_it_is_degraded(server: Server[Any]) -> None:
    result = call(server, "query", query="islands")
    assert not result.is_error
    degraded = result.structured_content["degraded"]
    assert degraded
    assert texts(result)[2:] == [f"Note: {degraded}"]


@pytest.mark.parametrize("tool", ["search", "query"])
def test_a_client_reads_above_the_hits_that_nothing_seems_to_answer(
    server: Server[Any], tool: str
) -> None:
    result = call(
        server,
        tool,
        query="islands zeppelin quasar marmalade trombone glacier orchid sonata walnut monsoon",
    )
    notice = "Nothing here seems to answer this; the nearest are:"
    assert result.structured_content["notice"] == notice
    assert texts(result)[1].startswith(f"{notice}\n\nnotes/2025/plan.md:4 (relevance 0.1")
    assert "notice" not in call(server, tool, query="islands").structured_content
    assert "notice" not in call(server, tool, query="zeppelin").structured_content


@pytest.mark.parametrize("tool", ["search", "query"])
def test_an_unknown_collection_is_an_error_with_a_suggestion(
    server: Server[Any], tool: str
) -> None:
    text = refused(call(server, tool, query="x", collection="nots"))
    assert text.startswith("Collection not found: nots")
    assert "notes" in text


def test_a_wrong_argument_is_an_error_result(server: Server[Any]) -> None:
    assert refused(call(server, "search", query="x", limit=0)) == (
        "Invalid arguments for search: limit must be an integer from 1 to 1000, got 0"
    )


def test_an_unknown_tool_is_a_protocol_error(server: Server[Any]) -> None:
    with pytest.raises(MCPError) as caught:
        call(server, "serch", query="x")
    assert caught.value.error.code == -32602
    assert "did you mean search?" in caught.value.error.message


@pytest.mark.parametrize("letter", ["w", "字", "😀"])
def test_the_texts_of_ten_hits_take_three_and_a_half_kilobytes(tmp_path: Path, letter: str) -> None:
    """In any language, however long the lines; the best line of each is shown."""
    for number in range(10):
        lines = [f"{letter * 700} boat {letter * 700}" for _ in range(9)]
        put(tmp_path / f"notes/a folder/{number} {letter * 20}.md", "\n\n".join(lines))
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "notes")
        kb.index()
        reply = call(McpFace(kb).server, "search", query="boat")
    assert len(reply.structured_content["results"]) == 10
    shown = texts(reply)
    assert sum(len(text.encode()) for text in shown) <= 3584
    assert shown[1].count("(relevance ") == shown[1].count("boat") == 10


# --- get -----------------------------------------------------------------------------


def test_get_answers_with_one_resource_block(server: Server[Any]) -> None:
    result = call(server, "get", file="notes/2025/plan.md")
    (document,) = documents(result)
    assert len(result.content) == 1
    assert document.uri == "qmd://notes/2025/plan.md"
    assert document.mime_type == "text/markdown"
    assert document.meta == {"name": "notes/2025/plan.md", "title": "Plan"}
    assert document.text == (
        f"<!-- File: notes/2025/plan.md, docid {result.structured_content['docid']} -->\n"
        "<!-- Context: the year 2025 -->\n\n" + FILES["2025/plan.md"]
    )


def test_get_has_the_same_as_structured_content(server: Server[Any]) -> None:
    reply = call(server, "get", file="notes/2025/plan.md", fromLine=3, maxLines=1, lineNumbers=True)
    structured = reply.structured_content
    assert re.fullmatch("#[0-9a-f]{6,}", structured.pop("docid"))
    assert structured == {
        "file": "notes/2025/plan.md",
        "uri": "qmd://notes/2025/plan.md",
        "title": "Plan",
        "collection": "notes",
        "path": "2025/plan.md",
        "context": "the year 2025",
        "fromLine": 3,
        "moreLines": 2,
        "body": "3: Buy a boat.",
    }


def get_text(server: Server[Any], **arguments: Any) -> str:
    """The text below the heading that names the file."""
    (document,) = documents(call(server, "get", **arguments))
    heading, _, text = document.text.partition("-->\n\n")
    assert heading.startswith(f"<!-- File: {document.meta['name']}")
    return text


def test_get_numbers_lines_when_asked(server: Server[Any]) -> None:
    assert get_text(server, file="notes/no newline.md", lineNumbers=True) == (
        "1: # Short\n2: \n3: last line"
    )


def test_get_numbers_lines_from_the_first_line_shown(server: Server[Any]) -> None:
    text = get_text(server, file="notes/2025/plan.md", fromLine=3, maxLines=2, lineNumbers=True)
    assert text.rstrip("\n") == "3: Buy a boat.\n4: Sail to the islands."


@pytest.mark.parametrize(
    ("arguments", "lines"),
    [
        ({}, ""),
        ({"fromLine": 3, "maxLines": 2}, ", lines 3-4"),
        ({"maxLines": 1}, ", line 1"),
        ({"fromLine": 5}, ", line 5"),
        ({"fromLine": 99}, ", no line from 99"),
    ],
)
def test_the_heading_says_which_lines_are_shown_unless_all_are(
    server: Server[Any], arguments: dict[str, int], lines: str
) -> None:
    (document,) = documents(call(server, "get", file="notes/2025/plan.md", **arguments))
    assert document.text.startswith(f"<!-- File: notes/2025/plan.md{lines}, docid #")


def test_a_line_behind_the_path_beats_from_line(server: Server[Any]) -> None:
    text = get_text(server, file="notes/windows.md:3", fromLine=1, maxLines=1, lineNumbers=True)
    assert text.rstrip("\r\n") == "3: first"


@pytest.mark.parametrize("first", [0, -5])
def test_a_from_line_below_one_is_one(server: Server[Any], first: int) -> None:
    whole = get_text(server, file="notes/no newline.md")
    assert get_text(server, file="notes/no newline.md", fromLine=first) == whole


def test_a_from_line_past_the_end_gives_an_empty_text(server: Server[Any]) -> None:
    assert get_text(server, file="notes/no newline.md", fromLine=99, lineNumbers=True) == ""


def test_a_document_comes_whole_and_unchanged(server: Server[Any]) -> None:
    assert get_text(server, file="notes/big.md") == FILES["big.md"]
    assert get_text(server, file="notes/windows.md") == FILES["windows.md"]


@pytest.mark.parametrize(
    "file",
    [
        "notes/2025/回顾.md",
        "2025/回顾.md",
        "回顾.md",
        "qmd://notes/2025/%E5%9B%9E%E9%A1%BE.md",
        "qmd://notes/2025/回顾.md",
        "qmd://notes%2F2025%2F%E5%9B%9E%E9%A1%BE.md",
    ],
)
def test_all_forms_of_a_name_are_accepted(server: Server[Any], file: str) -> None:
    (document,) = documents(call(server, "get", file=file))
    assert document.uri == "qmd://notes/2025/%E5%9B%9E%E9%A1%BE.md"


def test_a_docid_from_a_hit_is_accepted_with_and_without_its_sign(server: Server[Any]) -> None:
    (hit,) = call(server, "search", query="islands").structured_content["results"]
    for file in (hit["docid"], hit["docid"][1:]):
        (document,) = documents(call(server, "get", file=file))
        assert document.uri == "qmd://notes/2025/plan.md"


def test_an_unknown_file_is_an_error_with_suggestions(server: Server[Any]) -> None:
    text = refused(call(server, "get", file="notes/2025/plans.md"))
    head, *suggestions = text.split("\n  - ")
    assert head == ("Document not found: notes/2025/plans.md\n\nDid you mean one of these?")
    assert suggestions[0] == "notes/2025/plan.md"
    assert len(suggestions) <= 3
    for each in suggestions:
        assert not call(server, "get", file=each).is_error


def test_nonsense_gets_no_suggestions(server: Server[Any]) -> None:
    assert refused(call(server, "get", file="qqqqqqqqqqqqqqqqqqqqq")) == (
        "Document not found: qqqqqqqqqqqqqqqqqqqqq"
    )
    # The folder and the suffix are the same; the name is not.
    assert refused(call(server, "get", file="notes/2025/nope.md")) == (
        "Document not found: notes/2025/nope.md"
    )


# --- multi_get -----------------------------------------------------------------------


def test_multi_get_puts_errors_first_and_skips_in_place(server: Server[Any]) -> None:
    result = call(
        server, "multi_get", pattern="notes/2025/plan.md, notes/nowhere.md, notes/big.md, 100%.md"
    )
    assert not result.is_error
    assert [block.type for block in result.content] == ["text", "resource", "text", "resource"]
    errors, skipped = texts(result)
    assert errors.startswith("Errors:\nFile not found: notes/nowhere.md")
    size = round(len(FILES["big.md"]) / 1024)
    assert skipped == (
        f"[SKIPPED: notes/big.md - File too large ({size}KB). "
        "Use 'qmd_get' with file=\"notes/big.md\" to retrieve.]"
    )
    assert [document.meta for document in documents(result)] == [
        {"name": "notes/2025/plan.md", "title": "Plan"},
        {"name": "notes/100%.md", "title": "Percent"},
    ]


@pytest.mark.parametrize("pattern", ["notes/2025/*.md", "2025/*.md"])
def test_a_glob_matches_with_and_without_the_collection(server: Server[Any], pattern: str) -> None:
    names = [
        document.meta["name"]
        for document in documents(call(server, "multi_get", pattern=pattern))
        if document.meta
    ]
    assert sorted(names) == ["notes/2025/ meeting.md", "notes/2025/plan.md", "notes/2025/回顾.md"]


def test_a_cut_document_says_how_many_lines_are_missing(server: Server[Any]) -> None:
    context = "<!-- Context: the year 2025 -->\n\n"
    (plain,) = documents(call(server, "multi_get", pattern="2025/plan.md", maxLines=2))
    docid = call(server, "get", file="notes/2025/plan.md").structured_content["docid"]
    file = f"<!-- File: notes/2025/plan.md, lines 1-{{}}, docid {docid} -->\n"
    assert plain.text == file.format(2) + context + "# Plan\n\n\n[... truncated 3 more lines]"
    (numbered,) = documents(
        call(server, "multi_get", pattern="2025/plan.md", maxLines=3, lineNumbers=True)
    )
    assert numbered.text == (
        file.format(3)
        + context
        + "1: # Plan\n2: \n3: Buy a boat.\n4: \n5: [... truncated 2 more lines]"
    )


def test_multi_get_has_the_same_as_structured_content(server: Server[Any]) -> None:
    pattern = "notes/2025/plan.md, notes/nowhere.md, notes/big.md, 100%.md"
    structured = call(server, "multi_get", pattern=pattern, maxLines=1).structured_content
    assert [
        (each["file"], each["body"], each["moreLines"]) for each in structured["documents"]
    ] == [
        ("notes/2025/plan.md", "# Plan", 4),
        ("notes/100%.md", "# Percent", 2),
    ]
    assert [each["file"] for each in structured["skipped"]] == ["notes/big.md"]
    (error,) = structured["errors"]
    assert error.startswith("File not found: notes/nowhere.md")


def test_max_bytes_decides_what_is_skipped(server: Server[Any]) -> None:
    size = len(FILES["big.md"].encode())
    assert documents(call(server, "multi_get", pattern="big.md", maxBytes=size))
    (notice,) = texts(call(server, "multi_get", pattern="big.md", maxBytes=size - 1))
    assert notice.startswith("[SKIPPED: notes/big.md")


def test_a_pattern_that_matches_nothing_is_an_error(server: Server[Any]) -> None:
    assert refused(call(server, "multi_get", pattern="nowhere/*.md")) == (
        "No files matched pattern: nowhere/*.md"
    )


# --- plain text ----------------------------------------------------------------------


def test_plain_text_is_all_that_a_reply_says_in_one_text(
    server: Server[Any], kb: KnowledgeBase
) -> None:
    plain = McpFace(kb, plain_text=True).server
    for tool, arguments in (
        ("search", {"query": "islands"}),
        ("get", {"file": "notes/2025/plan.md"}),
        ("get", {"file": "nowhere"}),
        ("multi_get", {"pattern": "notes/2025/*.md, notes/big.md"}),
        ("status", {}),
    ):
        usual, one = call(server, tool, **arguments), call(plain, tool, **arguments)
        (text,) = texts(one)
        said = [
            block.text if isinstance(block, TextContent) else block.resource.text
            for block in usual.content
        ]
        assert text == "\n\n".join(each.rstrip("\n") for each in said)
        assert one.is_error == usual.is_error
        assert (one.structured_content is None) == (usual.structured_content is None)


def test_a_client_that_passes_on_texts_and_structures_gets_each_document_once(
    server: Server[Any],
) -> None:
    async def use(client: Client) -> list[CallToolResult]:
        return [
            await client.call_tool("get", {"file": "notes/2025/plan.md"}),
            await client.call_tool("multi_get", {"pattern": "notes/2025/*.md"}),
        ]

    for name, kind in (("claude-code", "text"), ("other", "resource")):
        client_info = Implementation(name=name, version="2.1")
        for result in with_client(server, use, mode="legacy", client_info=client_info):
            assert {block.type for block in result.content} == {kind}
            assert result.structured_content


# --- status --------------------------------------------------------------------------


def test_status_lists_one_collection_on_request(server: Server[Any]) -> None:
    whole = call(server, "status").structured_content
    name = whole["collections"][0]["name"]
    one = call(server, "status", collection=name)
    assert one.structured_content["collections"] == whole["collections"][:1]
    assert one.structured_content["totalDocuments"] == whole["totalDocuments"]
    wrong = call(server, "status", collection=f"{name}s")
    assert wrong.is_error
    assert f"Did you mean: {name}" in texts(wrong)[0]


def test_status_says_the_same_in_text_and_structure(server: Server[Any]) -> None:
    result = call(server, "status")
    structured = result.structured_content
    assert list(structured) == [
        "totalDocuments",
        "needsEmbedding",
        "hasVectorIndex",
        "collections",
        "freshness",
    ]
    freshness = structured["freshness"]
    datetime.fromisoformat(freshness["lastSync"].replace("Z", "+00:00"))
    assert freshness["embeddingsPending"] == len(FILES) - 1
    assert (freshness["filesPending"], freshness["indexing"]) == (0, False)
    (collection,) = structured["collections"]
    count = len(FILES) - 1
    assert texts(result)[0] == (
        "QMD Index Status:\n"
        f"  Total documents: {count}\n"
        f"  Needs embedding: {count}\n"
        "  Vector index: no\n"
        "  Collections: 1\n"
        f"    - {collection['path']} ({count} docs)"
    )
    assert "qmd embed" in texts(result)[1]
    assert structured["totalDocuments"] == structured["needsEmbedding"] == count
    assert structured["hasVectorIndex"] is False
    assert list(collection) == ["name", "path", "pattern", "documents", "lastUpdated"]
    assert (collection["name"], collection["pattern"]) == ("notes", DEFAULT_MASK)
    datetime.fromisoformat(collection["lastUpdated"].replace("Z", "+00:00"))


def test_an_empty_index_answers_and_says_what_to_do(tmp_path: Path) -> None:
    with KnowledgeBase.open(tmp_path / "new.sqlite", create=True) as kb:
        empty = McpFace(kb).server
        assert call(empty, "search", query="x").structured_content["results"] == []
        assert call(empty, "query", query="x").structured_content["results"] == []
        status = call(empty, "status")
        assert status.structured_content["totalDocuments"] == 0
        assert "qmd collection add" in texts(status)[1]


# --- sizes ---------------------------------------------------------------------------

ENGLISH = (
    "The harbour master keeps a ledger of every vessel that enters the bay, with its tonnage, "
    "its cargo and the name of its captain; entry {n} of the ledger tells of a lantern.\n"
)
CHINESE = (
    "港口的管理员把每一艘进港船只的吨位、货物和船长的名字都记在账本里，"
    "第{n}条记录提到了一盏灯笼。\n"
)


@pytest.mark.parametrize("paragraph", ["\n\n", " "], ids=["short lines", "long lines"])
@pytest.mark.parametrize("tool", ["search", "query"])
@pytest.mark.parametrize(
    ("sentence", "query", "limit", "structured_limit"),
    [(ENGLISH, "lantern", 8_000, 4_200), (CHINESE, "灯笼", 15_000, 8_400)],
    ids=["English", "Chinese"],
)
def test_a_reply_with_ten_hits_is_small_and_shows_every_match(
    tmp_path: Path,
    sentence: str,
    query: str,
    limit: int,
    structured_limit: int,
    tool: str,
    paragraph: str,
) -> None:
    notes = tmp_path / "harbour" / "ledgers of the old town"
    notes.mkdir(parents=True)
    for n in range(12):
        body = paragraph.join(sentence.format(n=n * 100 + each).strip() for each in range(20))
        title = f"Ledger {n} of the harbour master"
        (notes / f"ledger-{n:03}.md").write_text(f"# {title}\n\n{body}\n", encoding="utf-8")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path / "harbour")
        kb.index()
        result = call(McpFace(kb).server, tool, query=query)
    results = result.structured_content["results"]
    assert len(results) == 10
    for hit in results:
        assert query in hit["snippet"]
        assert f"{hit['line']}: " in hit["snippet"]
    wire = result.model_dump(by_alias=True, mode="json", exclude_none=True)
    assert json_bytes(wire) <= limit
    assert json_bytes(result.structured_content) <= structured_limit


def json_bytes(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode())


def test_a_single_hit_keeps_the_lines_around_its_match(server: Server[Any]) -> None:
    (hit,) = call(server, "search", query="islands").structured_content["results"]
    assert len(hit["snippet"].split("\n")) > 1
