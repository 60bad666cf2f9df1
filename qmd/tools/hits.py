"""
The tools search, vsearch and query, which return ranked hits, short enough for a model.

The arguments of `query` are those of all searches, and those that scripts for tobi/qmd send. The
latter are accepted over MCP and REST, and the listing of the tool leaves them out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.bounds import MAX_SEARCHES
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.search.budget import shorten_snippets
from qmd.search.present.snippet import crop_snippet
from qmd.search.question import parse_lines
from qmd.tools.arguments import (
    Arguments,
    OfSearch,
    SearchArguments,
    ValueArguments,
    VsearchArguments,
    arguments_model,
)
from qmd.tools.definition import Tool
from qmd.tools.schemas import output_schema
from qmd.values import Hit, SearchCommand, SearchReply, SearchRequest
from qmd.values.facts import Unlisted
from qmd.values.search import rounded
from qmd.values.wire import to_wire

SearchOptions = ValueArguments[SearchRequest]

_HIT_CHARACTERS = 400
"""The most characters of a hit on average, so that ten hits take 4,000 of a model's context."""
_TEXT_BYTES = 409
"""The same for the texts, in bytes: ten hits take at most 4 KB, whatever their language."""
_LEAST_BYTES = 60  # of a snippet that shows something


def search(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "search", arguments, dialect)


def vsearch(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "vsearch", arguments, dialect)


def query(kb: KnowledgeBase, arguments: SearchOptions, dialect: Dialect) -> Reply:
    return _answer(kb, "query", arguments, dialect)


def _answer(
    kb: KnowledgeBase, command: SearchCommand, arguments: SearchOptions, dialect: Dialect
) -> Reply:
    request = arguments.value()
    reply = kb.answer(command, request)
    freshness = kb.freshness(embeddings_pending=reply.needs_embedding)
    sent = replace(
        reply,
        hits=tuple(map(_rounded, reply.hits)),
        needs_embedding=0 if command == "search" else reply.needs_embedding,
    )
    structured: dict[str, Any] = to_wire(sent, dialect.field)
    structured["freshness"] = to_wire(freshness, dialect.field)
    has_budget = request.max_tokens is not None
    excess = _size(structured) - _HIT_CHARACTERS * max(10, len(reply.hits))
    if excess > 0 and not has_budget:
        sent = replace(sent, hits=tuple(shorten_snippets(sent.hits, excess, _size)))
        structured["results"] = to_wire(sent.hits, dialect.field)
    return Reply(tuple(map(TextBlock, _texts(sent, dialect, has_budget))), structured)


def _texts(reply: SearchReply, dialect: Dialect, has_budget: bool) -> Iterator[str]:
    summary = ""
    if reply.hits or not reply.left_out:
        query = texts.shortened_query(reply.query) if has_budget else reply.query
        summary = texts.search_summary(reply.hits, query)
        yield summary
    if reply.hits:
        shown = reply.hits if has_budget else _fitted(reply, summary)
        yield texts.hits_text(shown, reply.notice)
    elif reply.notice:
        yield f"Note: {reply.notice}"
    if reply.left_out:
        yield texts.hits_left_out(reply.left_out, dialect)
    if reply.degraded is not None:
        yield f"Note: {reply.degraded}"


def _fitted(reply: SearchReply, summary: str) -> Sequence[Hit]:
    """The hits with snippets that fit into the text: the best line, from the last hit upwards."""
    bare = [replace(hit, snippet="") for hit in reply.hits]
    frame = _bytes(summary) + _bytes(texts.hits_text(bare, reply.notice))
    room = _TEXT_BYTES * max(10, len(bare)) - frame
    excess = sum(_bytes(hit.snippet) for hit in reply.hits) - room
    hits = shorten_snippets(reply.hits, excess, _bytes)
    if sum(_bytes(hit.snippet) for hit in hits) <= room:
        return hits
    most = max(_LEAST_BYTES, room // len(hits))
    return [
        hit
        if _bytes(hit.snippet) <= most
        else replace(hit, snippet=crop_snippet(hit.snippet, reply.query, most))
        for hit in hits
    ]


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


def _rounded(hit: Hit) -> Hit:
    return replace(hit, score=rounded(hit.score), relevance=rounded(hit.relevance))


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def hits_schema(dialect: Dialect) -> dict[str, Any]:
    # The tool status describes freshness in full; here the listing must stay short.
    return output_schema(SearchReply, dialect, freshness=dict[str, object])


# --- arguments of query --------------------------------------------------------------


class TypedSearch(Arguments):
    """One text for one retriever; as a line of a query it is ``type: query``."""

    type: Literal["lex", "vec", "hyde"]
    query: str


class _QueryArguments(OfSearch):
    searches: Annotated[list[TypedSearch], Unlisted()] = Field(
        [],
        description="Texts for words (lex) and for meaning (vec, hyde); query may be empty then",
        json_schema_extra={"maxItems": MAX_SEARCHES},  # `bounds` checks it
    )

    @model_validator(mode="before")
    @classmethod
    def _without_query(cls, sent: Any) -> Any:
        """
        A query is required only where there are no searches.

        The schemas require it always: "one of two" is a union, of which generators of clients make
        two types that lack all other fields.
        """
        if isinstance(sent, dict) and sent.get("searches") and sent.get("query") is None:
            return {**sent, "query": ""}
        return sent

    def value(self) -> SearchRequest:
        """The request; searches become the lines of its query."""
        request = super().value()
        lines = [
            f"{search.type}: {' '.join(search.query.split())}"
            for search in self.searches
            if search.query.strip()
        ]
        query = request.query
        if lines and query.strip() and parse_lines(query) is None:
            text = " ".join(query.split())
            query = f"lex: {text}\nvec: {text}"
        if not lines:
            return request
        return replace(request, query="\n".join(filter(None, (query.strip(), *lines))))


QueryArguments = arguments_model("QueryArguments", SearchRequest, _QueryArguments, "query")


# --- tools ---------------------------------------------------------------------------

_CHINESE = {
    "query": "要查找的内容",
    "limit": "最多返回多少条",
    "minScore": "舍弃得分更低的结果",
    "collection": "只查这一个集合",
    "path": "只查此文件夹之下",
    "tags": "同时带有这些标签",
    "properties": "例如 rating:>4",
    "after": "ISO 日期，含当日",
    "before": "ISO 日期，不含当日",
    "sort": "date、title 或属性名；前加 - 为降序",
    "groupBy": "按此属性分组",
    "explain": "说明得分的由来",
    "minRelevance": "舍弃相关性更低的结果",
    "maxTokens": "最多返回多少 token",
}


def _chinese(does: str) -> dict[str, str]:
    return {"does": does, **_CHINESE}


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="search",
        title="Search (BM25)",
        description=(
            "Full-text search, in English and Chinese; fast, no model. "
            'Syntax: words (all must occur; looser matches fill up as "relaxed"), "phrase", -word, '
            "word*, OR, title:, description:, path:, tag: before a word; key:value, key:>4 for "
            "properties. Best hits first; get reads a hit's file."
        ),
        arguments=SearchArguments,
        run=search,
        wordings={
            "zh": _chinese(
                "全文搜索，中英文皆可；快，不用模型。查词语、名称、标识符、报错信息和原句时先用它。语法：词（须全部出现；"
                '不足时补以较宽松的匹配，标为 "relaxed"）、"短语"、-词、词*、OR、title:词、'
                "description:词、path:词、tag:词；属性用 key:value、key:>4。"
                "结果按相关性从高到低；把结果的 file 交给 get 即可继续阅读。"
            )
        },
        output_schema=hits_schema,
        outputs_more=True,
    ),
    Tool(
        name="vsearch",
        title="Vector search",
        description=(
            "Search by meaning, also across English and Chinese: for ideas in other words than "
            "the documents'."
        ),
        arguments=VsearchArguments,
        run=vsearch,
        wordings={
            "zh": _chinese(
                "按含义做语义搜索，可跨中英文。适合用词与文档不同的问题和想法。"
                "尚未生成向量（qmd embed）时会失败，请改用 search。"
            )
        },
        output_schema=hits_schema,
        outputs_more=True,
    ),
    Tool(
        name="query",
        title="Hybrid query",
        description=(
            "Best results: full text and vectors together; slower than search. "
            "For questions. "
            "Without vectors it uses full text and says so in degraded. "
            "query may also be lines 'lex: words', 'vec: sentence', 'hyde: made-up answer', "
            "'intent: what it is for'."
        ),
        arguments=QueryArguments,
        run=query,
        wordings={
            "zh": _chinese(
                "效果最好：全文与向量合并并重排；比 search 慢。适合自然语言提问。"
                "没有向量时只用全文作答，"
                "并在 degraded 中说明。query 也可写成多行：'lex: 词'、'vec: 句子'、"
                "'hyde: 假想的答案'、'intent: 目的'。"
            )
        },
        output_schema=hits_schema,
        outputs_more=True,
    ),
)
