"""
The searches: by words, by meaning, and by both. Their arguments are the fields of `SearchRequest`.

`qmd search` loads no more than this module of what makes tools, so their replies are worded in
`hits`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

import qmd.search
from qmd import operations, values
from qmd.errors import CollectionNotFoundError, NotFoundError
from qmd.operations.definition import ByHand, KnowledgeBase, Replied, operation
from qmd.values.facts import Describe, Inline, InSchema, Unlisted
from qmd.values.search import MAX_SEARCHES, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.operations.replies import Reply
    from qmd.operations.texts import Dialect

FAMILY = {"toolset": "qmd", "group": "search"}

Request = Annotated[SearchRequest, Inline()]
All = Annotated[bool, Unlisted(), Describe("All hits; limit does not count")]


@dataclass(frozen=True, slots=True)
class TypedSearch:
    """One text for one retriever; as a line of a query it is ``type: query``."""

    type: Literal["lex", "vec", "hyde"]
    query: str


def _reply(replied: Replied, dialect: Dialect) -> Reply:
    return operations.hits.reply(replied, dialect)


def _by_hand(prepare: Callable[[Any], Any] | None = None) -> ByHand:
    return ByHand(
        _reply,
        SearchReply,
        more=lambda: {"freshness": values.Freshness},
        outputs_more=True,
        prepare=prepare,
    )


_ALIKE: Mapping[str, Any] = {
    "errors": (CollectionNotFoundError, NotFoundError),
    "done_by": "search:answer",
    "options": ("full", "line_numbers", "full_path", "mode_auto", "format"),
    "usual": (
        *("--limit", "--collection", "--path", "--tag", "--property", "--after", "--before"),
        *("--sort", "--full", "--json"),
    ),
}


def _limited(request: SearchRequest, is_all: bool) -> SearchRequest:
    return replace(request, limit=None) if is_all else request


@operation(
    tool=_by_hand(),
    title="Search (BM25)",
    zh="全文搜索，中英文皆可；快，不用模型。查词语、名称、标识符、报错信息和原句时先用它。"
    '语法：词（须全部出现；不足时补以较宽松的匹配，标为 "relaxed"）、"短语"、-词、词*、OR、'
    "title:词、description:词、path:词、tag:词；属性用 key:value、key:>4。"
    "结果按相关性从高到低；把结果的 file 交给 get 即可继续阅读。",
    **_ALIKE,
    examples=(
        'qmd search "connection pool" -n 5',
        "qmd search 数据库 -c notes --after 2025-01-01",
        "qmd search 'title:plan -draft \"road map\"' --json",
    ),
    bodies=({"query": "meeting notes", "limit": 5, "min_score": 0.5},),
)
def search(kb: KnowledgeBase, request: Request, all: All = False) -> SearchReply:  # noqa: A002
    """
    Full-text search, in English and Chinese; fast, no model.

    Syntax: words (all must occur; looser matches fill up as "relaxed"), "phrase", -word, word*, OR,
    title:, description:, path:, tag: before a word; key:value, key:>4 for properties. Best hits
    first; get reads a hit's file.
    """
    return kb.run_search("search", _limited(request, all))


@operation(
    tool=_by_hand(),
    title="Vector search",
    zh="按含义做语义搜索，可跨中英文。适合用词与文档不同的问题和想法。"
    "尚未生成向量（qmd embed）时会失败，请改用 search。",
    **_ALIKE,
    examples=('qmd vsearch "how to recover from a failed deploy"', "qmd vsearch 如何备份 -n 3"),
    bodies=({"query": "how do we back up the database?"},),
)
def vsearch(kb: KnowledgeBase, request: Request, all: All = False) -> SearchReply:  # noqa: A002
    """
    Search by meaning, also across English and Chinese.

    For ideas in other words than the documents'.

    It needs the vectors that 'qmd embed' makes.
    """
    return kb.run_search("vsearch", _limited(request, all))


def _without_query(sent: Any) -> Any:
    """
    A query is required only where there are no searches.

    The schemas require it always: "one of two" is a union, of which generators of clients make two
    types that lack all other fields.
    """
    if isinstance(sent, dict) and sent.get("searches") and sent.get("query") is None:
        return {**sent, "query": ""}
    return sent


@operation(
    tool=_by_hand(_without_query),
    title="Hybrid query",
    zh="效果最好：全文与向量合并，由两者共同决定次序；比 search 慢。适合自然语言提问。"
    "没有向量时只用全文作答，并在 degraded 中说明。query 也可写成多行：'lex: 词'、'vec: 句子'、"
    "'hyde: 假想的答案'、'intent: 目的'。",
    **_ALIKE,
    examples=(
        'qmd query "why did we choose SQLite?"',
        "qmd query 为什么选择它 --explain",
        "qmd query $'lex: wal checkpoint\\nvec: how are readers kept from blocking'",
    ),
    bodies=(
        {"query": "how do we back up the database?", "collection": "notes"},
        {
            "query": "",
            "searches": [{"type": "lex", "query": "backup"}],
            "collections": ["notes"],
        },
    ),
)
def query(
    kb: KnowledgeBase,
    request: Request,
    all: All = False,  # noqa: A002
    searches: Annotated[
        tuple[TypedSearch, ...],
        Unlisted(),
        Describe("Texts for words (lex) and for meaning (vec, hyde); query may be empty then"),
        InSchema(maxItems=MAX_SEARCHES),  # `bounds` checks it
    ] = (),
) -> SearchReply:
    """
    Best results: full text and vectors together; slower than search.

    For questions. Without vectors it uses full text and says so. query may also be lines 'lex:
    words', 'vec: sentence', 'hyde: made-up answer', 'intent: what it is for'.

    Both decide the order, and so does a reranker that you name.
    """
    text = in_lines(request.query, searches) if searches else request.query
    return kb.run_search("query", _limited(replace(request, query=text), all))


def in_lines(query: str, searches: Iterable[TypedSearch]) -> str:
    """A query with the searches as lines of it."""
    lines = [
        f"{each.type}: {' '.join(each.query.split())}" for each in searches if each.query.strip()
    ]
    if lines and query.strip() and qmd.search.question.parse_lines(query) is None:
        text = " ".join(query.split())
        query = f"lex: {text}\nvec: {text}"
    return "\n".join(filter(None, (query.strip(), *lines))) if lines else query
