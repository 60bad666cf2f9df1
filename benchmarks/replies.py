"""
Do two versions of qmd answer alike? Every reply of many searches, explained, a line of JSON each.

    python benchmarks/replies.py DATABASE QUERIES > before.jsonl
    python benchmarks/replies.py DATABASE QUERIES > after.jsonl      (the other version)
    python benchmarks/replies.py --compare before.jsonl after.jsonl

QUERIES has one query a line. Each is asked of `search`, `vsearch` and `query` as it is, and once
more with options and models that change from query to query: see `OPTIONS` and `models`. The
expander and the reranker are arithmetic; the embedder is that of the database, whose chunks should
all have token states (`qmd embed`), because those that are computed while a query waits depend on
the time that it takes. The replies of equal versions are equal to the last bit.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from collections.abc import Iterator, Sequence
from itertools import cycle, islice, zip_longest
from pathlib import Path
from typing import Any

from qmd import KnowledgeBase
from qmd.errors import InferenceError, QmdError
from qmd.inference.protocols import Expansion
from qmd.settings import BackendSettings, Settings
from qmd.values import Filters
from qmd.values.wire import to_wire

#: What the queries are asked with, each one of them in turn.
OPTIONS: Sequence[dict[str, Any]] = (
    {"limit": 1},
    {"limit": 3, "min_score": 0.3},
    {"limit": 100},
    {"limit": None},
    {"limit": 20, "min_relevance": 0.3},
    {"rerank": False},
    {"rerank": False, "limit": 150},
    {"sort": "title"},
    {"sort": "-date", "limit": 5},
    {"group_by": "title", "limit": 30},
    {"max_tokens": 400},
    {"max_tokens": 250, "explain": False},
    {"filters": Filters(after="2000-01-01"), "limit": 15},
    {"filters": Filters(tags=("no-such-tag",))},
    {"filters": Filters(properties=("title:*",))},
    {"filters": Filters(properties=("no_such_property:1",))},
    {"without": ("tokens",)},
    {"without": ("words", "whole")},
    {"without": ("nearest",), "candidates": 5},
    {"spelling": False, "intent": "how to configure it"},
)
#: A model that failed is left alone for a while: which queries say so depends on the time.
PAUSE = re.compile(r"The \w+ is not asked for \d+ s more: ")
#: The options that a search does not have.
OTHERS = {
    "search": ("rerank", "candidates", "without", "intent"),
    "vsearch": ("rerank", "candidates", "without"),
    "query": (),
}
#: How the words of every second query are put together anew: operators of the query language.
FORMS = (
    '"{first}" {rest}',
    "{text} -{last}",
    "{first}* {rest}",
    "title:{first} {rest}",
    "({first} OR {last}) {rest}",
    "lex: {text}\nvec: {rest}",
    "[[{text}]]",
    "{first}x {rest}",
    "vec: {text}",
    "-{first}",
)


class Variants:
    """An expander: the second half of the query for full text, and all of it turned round."""

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        words = query.split()
        half = words[len(words) // 2 :] if len(words) > 1 else [query[len(query) // 2 :]]
        turned = " ".join(reversed(words)) if len(words) > 1 else query[::-1]
        texts = [("lex", " ".join(half)), ("vec", turned), ("hyde", f"{turned}. {query}")]
        return [Expansion(kind, text) for kind, text in texts][:limit]  # type: ignore[arg-type]


class Checksums:
    """A reranker: passages are as good as their checksum is high; every seventh has no score."""

    name = "checksums"

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        sums = [zlib.crc32(f"{query}\n{passage}".encode()) % 1000 for passage in passages]
        return [None if each % 7 == 0 else each / 1000 for each in sums]


class Broken:
    """An expander and a reranker that fail."""

    name = "broken"

    def expand(self, query: str, *, limit: int, timeout_s: float) -> Sequence[Expansion]:
        raise InferenceError("This expander never works.")

    def rerank(
        self, query: str, passages: Sequence[str], *, timeout_s: float
    ) -> Sequence[float | None]:
        raise InferenceError("This reranker never works.")


def models() -> list[dict[str, Any]]:
    """The models of the knowledge bases that answer in turn, as fields of `Settings`."""
    return [
        {},
        {"expander": Variants()},
        {"reranker": Checksums()},
        {"expander": Variants(), "reranker": Checksums()},
        {"expander": Broken(), "reranker": Broken()},
        {"model": "no-such-model"},
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("database", type=Path)
    parser.add_argument("queries", type=Path)
    parser.add_argument("--compare", action="store_true", help="compare two files of replies")
    arguments = parser.parse_args()
    if arguments.compare:
        sys.exit(compare(arguments.database, arguments.queries))
    backends = BackendSettings(budget_s=600)
    bases = [
        KnowledgeBase.open(arguments.database, Settings(backends=backends, **each))
        for each in models()
    ]
    for line in replies(bases, arguments.queries.read_text(encoding="utf-8").splitlines()):
        print(line)
    for base in bases:
        base.close()


def replies(bases: Sequence[KnowledgeBase], queries: Sequence[str]) -> Iterator[str]:
    """The replies to all queries, each with the search and what it was asked."""
    turns = zip(queries, cycle(bases), cycle(OPTIONS), strict=False)
    for number, (query, base, options) in enumerate(turns):
        for search in OTHERS:
            yield reply(bases[0], search, query, {"explain": True})
            other = in_form(query, FORMS[number // 2 % len(FORMS)]) if number % 2 else query
            yield reply(base, search, other, {"explain": True, **options})


def in_form(query: str, form: str) -> str:
    """The words of a query with operators between them."""
    words = query.replace('"', "").split() or ["?"]
    if len(words) == 1:
        words = [query[:2], query[2:]]
    first, *others = words
    return form.format(text=" ".join(words), first=first, rest=" ".join(others), last=words[-1])


def reply(base: KnowledgeBase, search: str, query: str, options: dict[str, Any]) -> str:
    """One reply, or the error instead of it, as JSON."""
    options = {key: value for key, value in options.items() if key not in OTHERS[search]}
    asked = {key: repr(options[key]) for key in sorted(options)}
    try:
        answer: object = to_wire(getattr(base, search)(query, **options))
    except QmdError as error:
        answer = f"{type(error).__name__}: {error}"
    line = json.dumps([search, query, asked, answer], ensure_ascii=False)
    return PAUSE.sub("", line)


def compare(before: Path, after: Path) -> int:
    """Print how many replies differ, and the first of them; 1 if any does."""
    with before.open(encoding="utf-8") as first, after.open(encoding="utf-8") as second:
        pairs = list(zip_longest(first, second))
    different = [(one, other) for one, other in pairs if one != other]
    print(f"{len(pairs)} replies, {len(different)} of them different")
    for one, other in islice(different, 3):
        print(f"\nbefore: {one}\nafter: {other}")
    return 1 if different else 0


if __name__ == "__main__":
    main()
