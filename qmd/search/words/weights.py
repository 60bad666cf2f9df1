"""
The words of a query that loose matching searches for, how much each counts, and BM25 by them.

The BM25 of FTS5 has two fixed properties that do not suit questions. Its idf is 0 for a word in
more than half of all documents and small for a word in a third, so that of "which switch makes it
pick one" only the rare words count. And with its k1 of 1.2 the third occurrence of a word adds
hardly anything. So FTS5 makes a first ranking, which is fast, and the best of it are ranked again
here. On five sets of known-item questions the mean MRR@10 rose from .560 to .590; on nine
collections with judgments nDCG@10 did not change.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum, log1p
from typing import TYPE_CHECKING, Literal, get_args

from qmd.parse import segment
from qmd.records import NamedTuple
from qmd.search.candidates import Candidate
from qmd.search.query.language import ParsedQuery
from qmd.search.query.terms import Script, loose_parts, script_of, text_parts
from qmd.search.words.expressions import phrase
from qmd.store.full_text import BM25_K1
from qmd.values import Match

if TYPE_CHECKING:
    from qmd.store import Reader

#: In an index of more than `LARGE` documents, loose matching leaves out a word that more than the
#: share `COMMON` of them hold, if rarer words remain: such words take most of the time. In a small
#: index they are kept, because leaving them out costs quality (cisi from .319 to .293).
LARGE = 20_000
COMMON = 0.10
#: The most words in one loose expression.
MAX_PARTS = 96

#: Words that say nothing about a document's subject (loose matching only).
STOP_WORDS = frozenset(
    """
    a about after all an and any are as at be been but by can could d did do does don for from get
    had has have how i if in into is it its ll m me my no not of on one or our out over re s she so
    some t than that the their them then there these they this to up us ve was we were what when
    where which who why will with would you your
    """.split()  # noqa: SIM905  a list of a hundred quoted words is no easier to read
)

#: Pairs of characters that are typical of Chinese questions, simplified and traditional. They are
#: rare in documents, so their idf is too high; it is multiplied by `QUIET`. This raised the MRR@10
#: of two sets of Chinese questions from .647 to .672; without the pairs full text alone gets worse.
CHATTER = frozenset(
    """
    怎么 什么 如何 为什 怎样 哪些 哪个 哪里 可以 能不 不能 有没 没有 一个 这个 那个
    这些 那些 这样 那样 我们 你们 他们 它们 自己 时候 以后 之后 然后 还是 但是 因为
    所以 如果 就是 不是 只是 已经 需要 应该 想要 能够 多少 一下 一些 一种 还有 以及
    或者 而且 只有 只能 里面 上面 下面 之前 现在 东西 办法 的话 这种 那种 么办 么样
    么做 是什 不会 会不 是不 一样 几个 有什 有哪 才能 怎麼 什麼 為什 怎樣 哪個 哪裡
    有沒 沒有 一個 這個 那個 這些 這樣 那樣 我們 你們 他們 它們 時候 以後 之後 然後
    還是 因為 已經 應該 能夠 還有 裡面 現在 東西 辦法 的話 這種 那種 麼辦 麼樣 麼做
    不會 會不 一樣 幾個
    """.split()  # noqa: SIM905  a list of a hundred quoted words is no easier to read
)
QUIET = 0.3


_Kind = Literal["telling", "common", "stop", "absent"]
#: This many of the first ranking are ranked again, whatever the limit, so that a longer list of
#: hits begins like a shorter one.
POOL = 100
#: The constant k1; with a greater k1, further occurrences of a word add more. FTS5 has 1.2.
K1 = 2.0


class QueryWords(NamedTuple):
    """
    The words of a query with their weights.

    Attributes:
        weights: Word → weight. Words that no document holds have one too, so that a document
            without them covers less of the query.
        document_count: How many documents the index has.
    """

    query: ParsedQuery
    weights: Mapping[str, Word]
    document_count: int

    def held_by(self, reader: Reader, document_ids: Sequence[int]) -> dict[int, list[str]]:
        """Document id → the words that the document holds, for each of the documents."""
        held: dict[int, list[str]] = {document_id: [] for document_id in document_ids}
        for word, weighed in self.weights.items():
            expression = phrase(word) if weighed.documents else None
            if expression is not None:
                for document_id in reader.full_text.frequencies(
                    expression, document_ids, weighed.documents, self.document_count
                ):
                    held[document_id].append(word)
        return held

    def coverage(self, held: Iterable[str]) -> float:
        """The weight of the ``held`` words, as a share of the weight of all words, 0..1."""
        total = fsum(word.idf for word in self.weights.values())
        share = fsum(self.weights[word].idf for word in held if word in self.weights)
        return share / total if total else 0.0

    def rest_coverage(self, held: Collection[str]) -> float:
        """
        How much of the query a document holds besides one word of it: coverage without this word.

        The word is the one that counts most of the ``held`` ones. So a document that holds one word
        of several has 0, and one that holds all words has 1, as for coverage.
        """
        idfs = [self.weights[word].idf for word in held if word in self.weights]
        heaviest = max(idfs, default=0.0)
        total = fsum(word.idf for word in self.weights.values()) - heaviest
        if total <= 0:
            return float(bool(idfs))
        return (fsum(idfs) - heaviest) / total

    def title_coverage(self, title: str) -> float:
        """
        The same share of the words that a title holds; their stems are compared.

        For a query of phrases or fields alone, the share of its terms that the title holds.
        """
        if not self.weights:
            folded = segment.fold(title)
            held_terms = [segment.fold(term.text) in folded for term in self.query.terms]
            return sum(held_terms) / len(held_terms) if held_terms else 0.0
        stems = _stems(title)
        return self.coverage(word for word in self.weights if stem(word) in stems)

    @property
    def script(self) -> Script:
        return script_of(self.query.text)


def weigh_words(reader: Reader, query: ParsedQuery) -> QueryWords:
    """
    Count how many documents hold each word of the query, and weigh the words by that.

    Stop words are left out unless the query has no other words. In a large index, words that too
    many documents hold are left out if the query has rarer ones.
    """
    total = reader.full_text.document_count()
    is_large = total > LARGE
    most = int(total * COMMON) + 1 if is_large else total
    weights = _count_words(reader, query, total, most)
    by_kind: dict[_Kind, dict[str, Word]] = {kind: {} for kind in get_args(_Kind)}
    for word, weighed in weights.items():
        is_common = is_large and weighed.documents >= most
        by_kind[_kind(word, weighed, is_common)][word] = weighed
    content = (by_kind["telling"] or by_kind["common"]) | by_kind["absent"]
    # A document that shares only "the" with a question has nothing to do with it.
    held_stop_words = {
        word: weighed for word, weighed in by_kind["stop"].items() if weighed.documents
    }
    return QueryWords(query, content or held_stop_words, total)


def _kind(word: str, weighed: Word, is_common: bool) -> _Kind:
    if word.casefold() in STOP_WORDS:
        return "stop"
    if weighed.documents == 0:
        return "absent"
    return "common" if is_common else "telling"


def _count_words(reader: Reader, query: ParsedQuery, total: int, most: int) -> dict[str, Word]:
    """
    Word → its weight, for the words of a query; documents are counted up to ``most``.

    Stop words have one only if there are no others: it takes long to count their documents.
    """
    terms = [term for group in query.groups for term in group]
    loose = [part for t in terms if not t.quoted and not t.field for part in loose_parts(t)]
    phrases = {word: phrase(word) for word in list(dict.fromkeys(loose))[:MAX_PARTS]}
    indexed = {word: each for word, each in phrases.items() if each is not None}
    content = {word: each for word, each in indexed.items() if word.casefold() not in STOP_WORDS}
    weights = {}
    for word, expression in (content or indexed).items():
        documents = reader.full_text.count(expression, most)
        loudness = QUIET if word in CHATTER else 1.0
        weights[word] = Word(documents, loudness * idf(documents, total))
    return weights


@lru_cache(maxsize=1024)  # a server shows the same documents again and again
def _stems(title: str) -> frozenset[str]:
    """The stems of the words of a title."""
    return frozenset(map(stem, text_parts(title)))


@lru_cache(maxsize=1024)  # each hit's title is compared with the same words of the query
def stem(word: str) -> str:
    """A rough stem of a word, folded; enough to see whether a text holds the word."""
    word = segment.fold(word)
    if not word.isascii() or len(word) < 4:
        return word
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "edly", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("e", "y")) else word


class Word(NamedTuple):
    """
    A word of the query.

    Attributes:
        documents: How many documents hold it.
        idf: Its weight, above 0.
    """

    documents: int
    idf: float


def idf(documents: int, total: int) -> float:
    """
    The weight of a word that ``documents`` of ``total`` documents hold.

    The weight is above 0 even for a word that all documents hold.
    """
    return log1p((max(total - documents, 0) + 0.5) / (documents + 0.5))


def rank_again(
    reader: Reader, rows: Sequence[tuple[int, float]], words: QueryWords, match: Match
) -> list[Candidate]:
    """
    Rank the first `POOL` rows again; the others follow as they were.

    The scores of the others are lowered to that of the last ranked row where they are above it.

    Args:
        rows: Document ids with FTS5's bm25, best first.
        match: How they match.

    Returns:
        Best first; ties by document id.
    """
    pool = [document_id for document_id, _ in rows[:POOL]]
    parts: dict[int, dict[str, float]] = {document_id: {} for document_id in pool}
    for word, (documents, weight) in words.weights.items():
        expression = phrase(word) if documents else None
        if expression is None:
            continue
        frequencies = reader.full_text.frequencies(
            expression, pool, documents, words.document_count
        )
        most, half = weight * (K1 + 1), K1 / BM25_K1
        for document_id, frequency in frequencies.items():
            # f / (f + 1) with our K1 in place of FTS5's.
            parts[document_id][word] = most * frequency / (frequency + half)
    ranked = [
        Candidate(document_id, match, fsum(by_word.values()), by_word)
        for document_id, by_word in parts.items()
    ]
    ranked.sort(key=lambda candidate: (-candidate.bm25, candidate.document_id))
    last = ranked[-1].bm25 if ranked else 0.0
    for document_id, score in rows[POOL:]:
        last = min(last, score)
        ranked.append(Candidate(document_id, match, last))
    return ranked
