"""
Full-text search: match expressions in, document ids and bm25 out.

An expression is independent of the query language of the engine. A word is a phrase of one token;
texts are segmented as full text stores them (`qmd.parse.segment`). Expressions are named tuples,
because a process that searches once pays for their import: frozen dataclasses took three
milliseconds of sixty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import log
from typing import TYPE_CHECKING, Literal, TypeAlias

from qmd.records import NamedTuple

if TYPE_CHECKING:
    from qmd.store.sql import Sql
    from qmd.store.sql.filters import Selection

#: The fields of full text. ``extra`` holds the frontmatter, with the description, and the parts of
#: CamelCase names.
TextField: TypeAlias = Literal["title", "headings", "body", "path", "extra", "description"]
#: All fields but the path.
CONTENT_FIELDS: tuple[TextField, ...] = ("title", "headings", "body", "extra", "description")


class Phrase(NamedTuple):
    """
    Tokens that follow each other in one field.

    Attributes:
        text: The tokens, separated by spaces.
        prefix: The last token may be the beginning of a longer one.
        fields: The phrase must be in one of these fields; empty for any field.
    """

    text: str
    prefix: bool = False
    fields: tuple[TextField, ...] = ()


class Combined(NamedTuple):
    """Two or more expressions of which all, any, or the first but no other must match."""

    operator: Literal["all", "any", "but not"]
    parts: tuple[Expression, ...]


Expression: TypeAlias = "Phrase | Combined"


def all_of(*parts: Expression) -> Expression:
    """Match documents that match all of these expressions, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Combined("all", parts)


def any_of(*parts: Expression) -> Expression:
    """Match documents that match any of these expressions, of which there is at least one."""
    return parts[0] if len(parts) == 1 else Combined("any", parts)


def but_not(match: Expression, *excluded: Expression) -> Expression:
    """Match documents that match ``match`` and none of the excluded expressions."""
    return Combined("but not", (match, *excluded)) if excluded else match


#: The constants k1 and b of FTS5's bm25, which both engines compute:
#: https://sqlite.org/fts5.html#the_bm25_function
BM25_K1, BM25_B = 1.2, 0.75
FIELDS = ("title", "headings", "body", "path", "extra", "description")
#: How much an occurrence counts in each of them. Headings stand in the body as well, and
#: descriptions in extra. Measured nearly flat: .556 to .569 mean MRR@10 of five sets of questions,
#: these best; docs/search.md has the figures for descriptions.
WEIGHTS = (3.0, 0.5, 1.0, 1.5, 0.5, 0.8)
#: The share of the most that an expression can add to bm25 never reaches 1; rounding may.
_MOST_SHARE = 0.999


def idf(held: int, total: int) -> float:
    """FTS5's own weight of a phrase: 0.000001 for what more than half of all documents hold."""
    return max(log((total - held + 0.5) / (held + 0.5)), 1e-6) if held < total else 1e-6


def frequencies_of(scores: Iterable[tuple[int, float]], held: int, total: int) -> dict[int, float]:
    """As `FullText.frequencies`, from the bm25 of one expression: idf · (k1 + 1) · f / (f + 1)."""
    most = idf(held, total) * (BM25_K1 + 1)
    frequencies = {}
    for document_id, score in scores:  # a search asks for a thousand
        share = score / most
        share = min(share, _MOST_SHARE)
        frequencies[document_id] = share / (1 - share) if share > 0 else 0.0
    return frequencies


class FullText(ABC):
    """
    Searches the words of documents.

    ``is_incomplete``: a search of this snapshot left out matches, because there were too many.
    """

    is_incomplete = False

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    @abstractmethod
    def document_count(self) -> int:
        """How many documents there are; it costs nothing."""

    @abstractmethod
    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        """
        Pairs of document id and bm25 (above 0), best first; ties by document id.

        ``limit``: return at most this many; None for all that match.
        """

    @abstractmethod
    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        """
        Document id → how often the document holds an expression, as bm25 counts it.

        A frequency is weighted by field and relative to the length of the document. A frequency f
        adds idf · (k1 + 1) · f / (f + 1) to bm25, where k1 is `BM25_K1`.

        Args:
            ids: Document ids; the result lacks documents that do not hold the expression.
            held: How many documents hold the expression.
            total: How many documents there are.
        """

    @abstractmethod
    def count(self, match: Expression, most: int) -> int:
        """How many documents match; counting stops at ``most``."""

    @abstractmethod
    def terms(self, beginning: str, most: int) -> dict[str, int]:
        """
        The tokens of the index that begin so → how many documents hold each; at most ``most``.

        Words are stems there, and Chinese is pairs of characters.
        """

    @abstractmethod
    def matching_ids(self, match: Expression) -> list[int]:
        """The ids of all documents that match, ascending."""
