"""The calls of scripts that were written for tobi/qmd: `query` with `searches`, `get` by lines."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import MCPError
from support.embedder import HashEmbedder
from support.mcp_client import with_client
from support.rest import rest_client

from qmd import KnowledgeBase, Settings
from qmd.inference.protocols import Reranker
from qmd.operations.searches import TypedSearch, in_lines
from qmd.server.mcp import McpFace
from qmd.tools.toolsets import tools_of
from qmd.values.search import MAX_SEARCHES

TOOLS = tools_of("qmd", alone=True)

QUERY = next(tool for tool in TOOLS if tool.name == "query")
NAMES = ("searches", "collections", "intent", "rerank", "candidateLimit")


class LastIsBest(Reranker):
    """Prefers the last passage, and keeps what it was asked."""

    name = "last-is-best"

    def __init__(self) -> None:
        self.asked: list[tuple[str, int]] = []

    def rerank(self, query: str, passages: Sequence[str], *, timeout_s: float) -> list[float]:
        self.asked.append((query, len(passages)))
        return [(place + 1) / len(passages) for place in range(len(passages))]


@pytest.fixture
def reranker() -> LastIsBest:
    return LastIsBest()


@pytest.fixture
def kb(tmp_path: Path, reranker: LastIsBest) -> Iterator[KnowledgeBase]:
    settings = Settings(embedder=HashEmbedder(), reranker=reranker)
    with KnowledgeBase.open(tmp_path / "index.sqlite", settings, create=True) as opened:
        for name in ("sea", "land", "air"):
            folder = tmp_path / name
            folder.mkdir()
            for place in range(3):
                (folder / f"{place}.md").write_text(
                    f"# {name} {place}\n\nA pump of the {name}.\nThe second line.\n",
                    encoding="utf-8",
                )
            opened.add_collection(folder, name=name)
        opened.index()
        opened.embed()
        yield opened


@pytest.fixture
def client(kb: KnowledgeBase) -> Iterator[httpx.Client]:
    with rest_client(kb) as asked:
        yield asked


def call(kb: KnowledgeBase, tool: str, /, **arguments: Any) -> Any:
    server = McpFace(kb).server
    return with_client(server, lambda client: client.call_tool(tool, arguments))


def files(reply: Any) -> set[str]:
    return {hit["file"] for hit in reply["results"]}


SEARCHES = [
    {"type": "lex", "query": '"pump of the sea"'},
    {"type": "vec", "query": "what\nmoves water"},
    {"type": "hyde", "query": "lex: a text that looks like a line"},
]


def test_searches_stand_in_place_of_the_query(kb: KnowledgeBase, client: httpx.Client) -> None:
    over_mcp = call(kb, "query", searches=SEARCHES, limit=6, minScore=0)
    assert not over_mcp.is_error, over_mcp.content
    over_rest = client.post("/query", json={"searches": SEARCHES, "limit": 6, "minScore": 0}).json()
    assert files(over_mcp.structured_content) == files(over_rest)
    assert {"sea/0.md", "sea/1.md", "sea/2.md"} <= files(over_rest)


def test_words_alone_find_only_what_has_them(kb: KnowledgeBase) -> None:
    reply = call(kb, "query", searches=[{"type": "lex", "query": '"pump of the sea"'}])
    assert files(reply.structured_content) == {"sea/0.md", "sea/1.md", "sea/2.md"}


def test_several_collections(client: httpx.Client) -> None:
    for path in ("/query", "/search", "/vsearch"):
        body = {"query": "pump", "collections": ["sea", "air"], "min_score": 0}
        found = files(client.post(path, json=body).json())
        assert {file.partition("/")[0] for file in found} == {"sea", "air"}, path
    both = client.post("/search", json={"query": "pump", "collection": "sea", "collections": []})
    assert {file.partition("/")[0] for file in files(both.json())} == {"sea"}


def test_an_unknown_one_among_the_collections_is_an_error(client: httpx.Client) -> None:
    answer = client.post("/query", json={"query": "pump", "collections": ["sea", "moon"]})
    assert answer.status_code == 404
    assert "moon" in answer.json()["detail"]


def test_the_reranker_gets_the_intent_and_as_many_candidates_as_it_may(
    kb: KnowledgeBase, reranker: LastIsBest
) -> None:
    call(kb, "query", query="pump", intent="plumbing", candidateLimit=2)
    assert reranker.asked == [("plumbing\npump", 2)]
    call(kb, "query", query="pump", rerank=False)
    assert len(reranker.asked) == 1


def test_get_and_multi_get_take_his_arguments(kb: KnowledgeBase) -> None:
    for arguments in (
        {"file": "sea/0.md", "fromLine": 3, "maxLines": 1, "lineNumbers": True},
        {"file": "sea/0.md:3:1", "lineNumbers": True},
        {"file": "qmd://sea/0.md:3", "maxLines": 1.0, "lineNumbers": True},
    ):
        reply = call(kb, "get", **arguments)
        assert not reply.is_error, (arguments, reply.content)
        assert reply.content[0].resource.text.splitlines()[-1] == "3: A pump of the sea."
    several = call(
        kb, "multi_get", pattern="sea/*.md", maxLines=1, maxBytes=65536, lineNumbers=False
    )
    assert len([block for block in several.content if block.type == "resource"]) == 3


def test_the_listing_has_none_of_it(kb: KnowledgeBase) -> None:
    schema = QUERY.input_schema()
    assert not set(NAMES) & schema["properties"].keys()
    assert schema["required"] == ["query"]


@pytest.mark.parametrize(
    ("tool", "arguments", "sentence"),
    [
        ("query", {"searches": []}, "query is required (a string)"),
        ("query", {"limit": 3}, "query is required (a string)"),
        (
            "query",
            {"searches": [{"type": "bm25", "query": "x"}]},
            'searches must be a list of objects with type ("lex" or "vec" or "hyde") and '
            "query (a string)",
        ),
        ("query", {"searches": [{"type": "lex", "query": "x", "n": 1}]}, "list of objects with"),
        (
            "query",
            {"searches": [{"type": "lex", "query": "x"}] * (MAX_SEARCHES + 1)},
            "searches may have 10 items at most, got 11",
        ),
        ("query", {"query": "x", "candidateLimit": 0}, "candidateLimit must be an integer of at"),
        ("search", {"searches": []}, 'unknown argument "searches" (query takes it)'),
        ("vsearch", {"query": "x", "rerank": False}, 'unknown argument "rerank" (query takes it)'),
    ],
)
def test_an_error_names_what_is_right_here(
    kb: KnowledgeBase, tool: str, arguments: dict[str, Any], sentence: str
) -> None:
    reply = call(kb, tool, **arguments)
    assert reply.is_error
    assert sentence in reply.content[0].text


def test_a_query_beside_searches_is_one_more_text_for_both() -> None:
    phrase = TypedSearch(**SEARCHES[0])
    assert in_lines("pump", [phrase]) == 'lex: pump\nvec: pump\nlex: "pump of the sea"'
    assert in_lines(" ", [TypedSearch("vec", "\n")]) == " "


@pytest.mark.parametrize(
    ("there", "here"),
    [("deep_search", "query"), ("structured_search", "query"), ("vector_search", "vsearch")],
)
def test_a_tool_of_his_that_is_none_here_is_named_by_its_name_here(
    kb: KnowledgeBase, there: str, here: str
) -> None:
    with pytest.raises(MCPError, match=f"did you mean {here}"):
        call(kb, there, query="pump")
