"""
Full-text retrieval: documents that hold all of the query first, looser matches behind them.

Scores are 0..1: 0.5 and above, everything the query asks for is there (``exact``); below,
only a part of it (``relaxed``). Inside each half bm25 orders (`qmd.search.words.bm25`), squeezed by
x / (x + 10).

Loose matches are ordered by bm25 alone: mixing in how much of the query a document covers
lowered nDCG@10 on five of six test collections (cranfield .528 to .478).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import TYPE_CHECKING

from qmd.parse import segment
from qmd.search.query import prefix
from qmd.search.query.language import Field, ParsedQuery, Term, parts
from qmd.search.words import bm25
from qmd.search.words import literals as raw
from qmd.store.full_text import CONTENT
from qmd.values import Match

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

#: Where the scores of each kind of match begin; what bm25 adds stays below 0.5.
BASE: dict[Match, float] = {"exact": 0.5, "relaxed": 0.0}
#: bm25 that makes half of what it can add.
HALF = 10.0
#: In a collection of more documents than this, a word in more than this share of them is left
#: out of loose matching if rarer ones stay: it costs most of the time. In small ones it is kept,
#: because leaving it out costs quality (cisi .319 to .293).
LARGE = 20_000
COMMON = 0.10
#: Most terms in one loose expression.
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

#: Pairs of characters that Chinese questions are made of; simplified and traditional. They count
#: `QUIET` as much as their rarity says: in documents that explain they are rare. MRR@10 of two
#: sets of Chinese questions .647 to .672; left out entirely, full text alone loses.
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


@dataclass(frozen=True, slots=True)
class LexicalHit:
    """
    A document with its score (0..1) and what that was made of.

    ``words``: word → its part of ``bm25``; empty where phrases, fields or signs were asked for,
    whose bm25 is FTS5's own.
    """

    document: int
    score: float
    bm25: float
    match: Match
    words: Mapping[str, float] = dataclasses.field(default_factory=dict)


class Weights:
    """`informative` for one request: asked for in several places, counted at most once."""

    def __init__(self, reader: Reader, query: ParsedQuery) -> None:
        self._reader = reader
        self.query = query
        self._known: dict[str, bm25.Word] | None = None
        self._total: int | None = None

    @property
    def words(self) -> dict[str, bm25.Word]:
        if self._known is None:
            self._known = informative(self._reader, self.query, self.total)
        return self._known

    @property
    def total(self) -> int:
        """How many documents there are."""
        if self._total is None:
            self._total = self._reader.documents.count()
        return self._total

    def rank(self, rows: Sequence[tuple[int, float]]) -> list[bm25.Scored]:
        return bm25.rank(self._reader, rows, self.words, self.total)


def search(
    reader: Reader,
    query: ParsedQuery,
    selection: Selection,
    limit: int | None,
    weights: Weights | None = None,
) -> list[LexicalHit]:
    """
    Exact hits, filled up with relaxed ones to ``limit`` (None: all), best first.

    A query that only narrows finds all that is left, the latest first.

    ``weights``: of the query's words, for a caller that needs them too.
    """
    if not query.groups and not query.only_narrows:
        return []
    weights = weights or Weights(reader, query)
    hits = _exact(reader, query, selection, limit, weights)
    if limit is None or len(hits) < limit:
        found = {hit.document for hit in hits}
        hits += _relaxed(reader, query, selection, limit, found, weights)
    return hits


# --- exact ---------------------------------------------------------------------------


def _exact(
    reader: Reader,
    query: ParsedQuery,
    selection: Selection,
    limit: int | None,
    weights: Weights,
) -> list[LexicalHit]:
    groups: list[str] = []
    signs: list[list[str]] = []  # what only a scan of the texts can find
    for group in query.groups:
        expressions = [e for e in map(expression, group) if e is not None]
        if len(expressions) == len(group):
            groups.append(_any(expressions))
        else:
            signs.append([term.text for term in group])
    checks = _checks(reader, query)
    rows: Iterable[tuple[int, float]]
    if groups and not checks and all(map(_plain, query.terms)):
        match = _but_not(" AND ".join(groups), query.excluded)
        found = reader.full_text.search(match, selection, _pool(limit))
        return [
            LexicalHit(hit.document, _score(hit.bm25, "exact"), hit.bm25, "exact", hit.parts)
            for hit in weights.rank(found)[:limit]
        ]
    if groups:
        match = _but_not(" AND ".join(groups), query.excluded)
        # A check in Python may refuse any of the rows, so there is no telling how many to ask for.
        rows = reader.full_text.search(match, selection, None if checks else limit)
    else:
        # Signs, or nothing to look for: then tags, part of the condition, and exclusions narrow.
        numbers = (
            raw.scan(reader, signs, selection) if signs else reader.documents.latest_ids(selection)
        )
        unwanted = list(_phrases(query.excluded))
        known = set(reader.full_text.matching_ids(_any(unwanted))) if unwanted else set[int]()
        rows = ((number, 0.0) for number in numbers if number not in known)
    hits: list[LexicalHit] = []
    for number, score in rows:
        if checks and not _passes(reader, number, checks):
            continue
        hits.append(LexicalHit(number, _score(score, "exact"), score, "exact"))
        if limit is not None and len(hits) == limit:
            break
    return hits


def _plain(term: Term) -> bool:
    """Whether the words of the term are all that is asked for."""
    return not (term.literal or term.prefix or term.field)


def _pool(limit: int | None) -> int | None:
    return None if limit is None else max(limit, bm25.POOL)


def expression(term: Term) -> str | None:
    """The FTS5 expression for a term, or None where the index holds nothing of it."""
    phrase = segment.phrase(term.lead)
    if phrase is None:
        return None
    if term.prefix and not phrase.endswith("*"):
        phrase += " *"
        stems = prefix.stems(term.text)
        if stems:
            whole = segment.quote(segment.fold(term.text) + "e") + " *"
            phrase = f"({' OR '.join([phrase, whole, *map(segment.quote, stems)])})"
    if term.field:
        return f"{term.field} : {phrase}"
    # A path is no text: a folder named after a Chinese word must not make all files in it hits.
    return f"{CONTENT} : {phrase}" if term.literal or term.chinese else phrase


@dataclass(frozen=True, slots=True)
class _Check:
    """
    What to look for in the raw text, because the index has lost its signs and spacing.

    One of the ``patterns`` must be there, in the title, the path, or (None) title and text.
    A document among ``others`` passes by words of the same group that need no check. Negated,
    none may be there; ``others`` are then the only documents that can hold one.
    """

    patterns: tuple[tuple[Field | None, raw.Pattern], ...]
    others: frozenset[int] = frozenset()
    negated: bool = False


def _checks(reader: Reader, query: ParsedQuery) -> list[_Check]:
    checks = []
    for group in query.groups:
        literals = [term for term in group if _unsure(term) or expression(term) is None]
        words = [e for e in (expression(term) for term in group if term not in literals) if e]
        if literals:
            others = reader.full_text.matching_ids(_any(words)) if words else ()
            checks.append(_Check(_patterns(literals), frozenset(others)))
    for term in query.excluded:
        if _unsure(term):
            match = expression(term)
            holding = (
                reader.full_text.matching_ids(match)
                if match
                else reader.documents.latest_ids(reader.all_documents)
            )
            checks.append(_Check(_patterns([term]), frozenset(holding), negated=True))
    return checks


def _unsure(term: Term) -> bool:
    """Whether the index finds more than the term: signs, spacing and endings are not in it."""
    return term.literal or (term.prefix and bool(prefix.stems(term.text)))


def _patterns(literals: Sequence[Term]) -> tuple[tuple[Field | None, raw.Pattern], ...]:
    found = [(term.field, raw.pattern(term.text)) for term in literals]
    found += [  # words are looked for in the path as well
        ("path", raw.pattern(term.text))
        for term in literals
        if term.prefix and not (term.field or term.literal or term.chinese)
    ]
    return tuple(found)


def _passes(reader: Reader, number: int, checks: Sequence[_Check]) -> bool:
    read: dict[Field | None, raw.Text] = {}

    def there(check: _Check) -> bool:
        for field, wanted in check.patterns:
            if field not in read:
                read[field] = raw.text(reader.documents.searched_text(number, field))
            if raw.holds(read[field], wanted):
                return True
        return False

    for check in checks:
        if check.negated:
            if number in check.others and there(check):
                return False
        elif number not in check.others and not there(check):
            return False
    return True


def wanted(reader: Reader, query: ParsedQuery) -> Callable[[int], bool] | None:
    """Whether a document holds nothing that the query excludes; None where it excludes nothing."""
    if not query.excluded:
        return None
    phrases = list(_phrases(query.excluded))
    holding = frozenset(reader.full_text.matching_ids(_any(phrases)) if phrases else ())
    checks = _checks(reader, ParsedQuery((), query.excluded, (), ""))
    return lambda number: number not in holding and _passes(reader, number, checks)


# --- relaxed -------------------------------------------------------------------------


def _relaxed(
    reader: Reader,
    query: ParsedQuery,
    selection: Selection,
    limit: int | None,
    found: set[int],
    weights: Weights,
) -> list[LexicalHit]:
    """What holds a part of the query and is not in ``found``, up to ``limit`` with these."""
    required: list[str] = []
    loose = False
    for group in query.groups:
        if not any(term.quoted or term.field for term in group):
            loose = True
        else:
            expressions = [e for e in map(expression, group) if e is not None]
            if len(expressions) == len(group):
                required.append(_any(expressions))  # else a check looks for it
    words = [word for word, weighed in weights.words.items() if weighed.documents]
    phrases = [phrase for phrase in map(segment.phrase, words) if phrase is not None]
    if not loose or not (phrases or required):
        return []
    match = " OR ".join(phrases)
    if required:
        needed = " AND ".join(required)
        match = f"({needed} AND ({match})) OR ({needed})" if match else needed
    checks = _checks(reader, _only_quoted(query))
    pool = _pool(limit)
    depth = None if pool is None or checks else pool + len(found)
    most = None if limit is None else limit - len(found)
    enough = most if required else pool
    rows: list[tuple[int, float]] = []
    for number, score in reader.full_text.search(_but_not(match, query.excluded), selection, depth):
        if enough is not None and len(rows) >= enough:
            break
        if number in found:
            continue
        if checks and not _passes(reader, number, checks):
            continue
        rows.append((number, score))
    ranked = [bm25.Scored(*row, {}) for row in rows] if required else weights.rank(rows)
    return [
        LexicalHit(hit.document, _score(hit.bm25, "relaxed"), hit.bm25, "relaxed", hit.parts)
        for hit in ranked[:most]
    ]


def _only_quoted(query: ParsedQuery) -> ParsedQuery:
    groups = tuple(group for group in query.groups if any(term.quoted for term in group))
    return ParsedQuery(groups, query.excluded, (), "")


def informative(reader: Reader, query: ParsedQuery, total: int) -> dict[str, bm25.Word]:
    """
    The words of a query that loose matching looks for, and those that no document holds, with
    what they weigh.

    Stop words are left out, unless there is nothing else, and in a large collection words that
    too many documents hold, as long as any other word is found.
    """
    words: dict[str, None] = {}
    for group in query.groups:
        for term in group:
            if not term.quoted and not term.field:
                words.update(dict.fromkeys(parts(term)))
    most = int(total * COMMON) + 1 if total > LARGE else total
    telling: dict[str, bm25.Word] = {}
    common: dict[str, bm25.Word] = {}
    stop: dict[str, bm25.Word] = {}
    absent: dict[str, bm25.Word] = {}
    for word in list(words)[:MAX_PARTS]:
        phrase = segment.phrase(word)
        if phrase is None:
            continue
        number = reader.full_text.count(phrase, most)
        loudness = QUIET if word in CHATTER else 1.0
        weighed = bm25.Word(number, loudness * bm25.idf(number, total))
        if word.casefold() in STOP_WORDS:
            stop[word] = weighed
        elif number == 0:
            absent[word] = weighed
        elif total > LARGE and number >= most:
            common[word] = weighed
        else:
            telling[word] = weighed
    # A page that shares "the" with a question has nothing to do with it.
    return ((telling or common) | absent) or {w: it for w, it in stop.items() if it.documents}


def coverage(words: Mapping[str, bm25.Word], held: Iterable[str]) -> float:
    """How much of the words are held, 0..1, rare ones counting more."""
    total = fsum(weighed.idf for weighed in words.values())
    return fsum(words[word].idf for word in held if word in words) / total if total else 0.0


def stem(word: str) -> str:
    """A rough stem of a folded word, enough to see whether a text holds it."""
    word = segment.fold(word)
    if not word.isascii() or len(word) < 4:
        return word
    for ending in ("ations", "ation", "ings", "ing", "ies", "ied", "edly", "ed", "es", "ly", "s"):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word[:-1] if word.endswith(("e", "y")) else word


# --- expressions ---------------------------------------------------------------------


def _any(expressions: Sequence[str]) -> str:
    unique = dict.fromkeys(expressions)
    return "(" + " OR ".join(f"({e})" if ":" in e else e for e in unique) + ")"


def _but_not(match: str, excluded: Sequence[Term]) -> str:
    """Negated literals with signs are left to the check of the raw text."""
    phrases = list(_phrases(excluded))
    return f"({match}) NOT {_any(phrases)}" if phrases else match


def _phrases(excluded: Sequence[Term]) -> Iterator[str]:
    for term in excluded:
        phrase = expression(term)
        if phrase is not None and not _unsure(term):
            yield phrase


def _score(bm25: float, match: Match) -> float:
    return BASE[match] + (0.5 * bm25 / (bm25 + HALF) if bm25 > 0 else 0.0)
