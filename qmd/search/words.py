"""
Turns the words of a query into expressions for full text, weighs them, and checks them in raw text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise, starmap
from math import fsum, log1p
from typing import TYPE_CHECKING, Literal, get_args

from qmd import lazy
from qmd.parse import segment
from qmd.parse.segment import SIGNS, cjk_runs, fold, is_cjk, normalize
from qmd.records import NamedTuple
from qmd.search.candidates import Candidate
from qmd.search.query import Field, ParsedQuery, Script, Term, loose_parts, script_of, text_parts
from qmd.store import full_text
from qmd.values import Match

if TYPE_CHECKING:
    from qmd.store import Reader, Selection


# --- match expressions ------------------------------------------------------------------
# Porter stems ``university`` to ``univers``, so no token of an index of stems begins with
# ``universi``. A search for ``universi*`` therefore also asks for the stems that such words may
# have, and then checks the texts themselves.
#
# Full text stems the beginning too: ``copy`` becomes ``copi``, and ``copyable`` does not begin with
# that. Porter removes a final ``e`` before it looks for endings, so a search for ``copye`` matches
# exactly the tokens that begin with ``copy``.

#: The endings that porter removes or changes.
_ENDINGS = tuple(
    """
    able al alism aliti ality ally ance anci ancy ant ate ation ational ative ator bility bli e ed
    eli ely ement ence enci ency ent entli er es ful fulness ible ic ical icate iciti icity ies
    ing ion ism iti ity ive iveness iviti ivity ization ize izer li logi logy ly ment ness ous
    ously ousness s tional y
    """.split()  # noqa: SIM905  a list of seventy quoted endings is no easier to read
)
#: Porter makes no stem with fewer characters than this.
SHORTEST = 2
#: Longer words, in characters, are searched for by their own stem only.
LONGEST = 40


def phrase(literal: str, fields: tuple[full_text.TextField, ...] = ()) -> full_text.Phrase | None:
    """The phrase for a literal; None if the literal has no letter or digit."""
    tokens = segment.phrase_tokens(literal)
    return None if tokens is None else full_text.Phrase(*tokens, fields)


@lru_cache(maxsize=256)
def expression(term: Term) -> full_text.Expression | None:
    """The expression for a term; None if the term has no letter or digit."""
    fields: tuple[full_text.TextField, ...] = ()
    if term.field:
        fields = (term.field,)
    elif term.literal or term.chinese:
        # A folder that is named after a Chinese word must not make all files in it hits.
        fields = full_text.CONTENT_FIELDS
    lead = phrase(term.lead, fields)
    if lead is None or not term.prefix or lead.prefix:
        return lead
    begun = lead._replace(prefix=True)
    stems = word_stems(term.text)
    if not stems:
        return begun
    with_e = full_text.Phrase(segment.fold(term.text) + "e", True, fields)
    return full_text.any_of(
        begun, with_e, *(full_text.Phrase(stem, False, fields) for stem in stems)
    )


def group_expression(group: Sequence[Term]) -> full_text.Expression | None:
    """The expression for any of these terms; None if one of them has no expression."""
    expressions = [e for e in map(expression, group) if e is not None]
    return any_distinct(expressions) if len(expressions) == len(group) else None


def any_distinct(expressions: Sequence[full_text.Expression]) -> full_text.Expression:
    """Match any of these expressions; a repeated one counts once in bm25."""
    return full_text.any_of(*dict.fromkeys(expressions))


def without(match: full_text.Expression, excluded: Sequence[Term]) -> full_text.Expression:
    """Exclude terms from a match, except those that must be checked in the raw text."""
    return full_text.but_not(match, *dict.fromkeys(excluded_expressions(excluded)))


def loose_expression(
    strict: Sequence[full_text.Expression], words: Sequence[full_text.Phrase]
) -> full_text.Expression | None:
    """
    Match documents with all strict expressions; the words only raise their rank.

    Without strict expressions, match documents with any of the words. None if there is nothing.
    """
    if not words:
        return full_text.all_of(*strict) if strict else None
    any_word = full_text.any_of(*words)
    if not strict:
        return any_word
    return full_text.any_of(full_text.all_of(*strict, any_word), full_text.all_of(*strict))


def excluded_expressions(excluded: Sequence[Term]) -> Iterator[full_text.Expression]:
    """The expressions of the excluded terms that need no check of the raw text."""
    for term in excluded:
        match = expression(term)
        if match is not None and not needs_check(term):
            yield match


def needs_check(term: Term) -> bool:
    """Whether the raw text must be checked, because the index lacks signs, spacing and endings."""
    return term.literal or (term.prefix and bool(word_stems(term.text)))


@lru_cache(maxsize=1000)
def word_stems(beginning: str) -> tuple[str, ...]:
    """
    List words that have the same stems as the words with this beginning.

    ``universi`` gives ``universe``, ``univers``, …. The result lacks the stem of ``beginning``
    itself. It is empty if stemming cannot shorten the beginning (``wor``), and for words with
    characters other than ASCII letters.
    """
    word = beginning.lower()
    if not (word.isascii() and word.isalpha()) or not SHORTEST < len(word) <= LONGEST:
        return ()
    candidates: dict[str, None] = {}
    for end in range(SHORTEST, len(word)):
        rest = word[end:]
        doubled = rest[0] == word[end - 1] and _may_end(rest[1:])  # "runn" of "running"
        if doubled or _may_end(rest):
            candidates[word[:end]] = None
            candidates[word[:end] + "e"] = None
            if rest[0] == "b":
                candidates[word[:end] + "ble"] = None  # "scalabi" of "scalability": "scalabl"
    return tuple(candidates)


@lru_cache(maxsize=10_000)
def _may_end(rest: str) -> bool:
    """Whether ``rest`` consists of endings, of which the last may be incomplete."""
    return not rest or any(
        ending.startswith(rest) or (rest.startswith(ending) and _may_end(rest[len(ending) :]))
        for ending in _ENDINGS
    )


# --- loose matching: how much each word counts, and BM25 by that ------------------------
# The BM25 of FTS5 has two fixed properties that do not suit questions. Its idf is 0 for a word in
# more than half of all documents and small for a word in a third, so that of "which switch makes it
# pick one" only the rare words count. And with its k1 of 1.2 the third occurrence of a word adds
# hardly anything. So FTS5 makes a first ranking, which is fast, and the best of it are ranked again
# here. On five sets of known-item questions the mean MRR@10 rose from .560 to .590; on nine
# collections with judgments nDCG@10 did not change.

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

#: Pairs of characters that Chinese questions are asked with, simplified and traditional, and single
#: characters between them. Alone they say no more about a subject than stop words do.
ASKING = frozenset(
    """
    怎么 什么 如何 为什 怎样 哪些 哪个 哪里 可以 能不 不能 有没 没有 一个 这个 那个
    这些 那些 这样 那样 我们 你们 他们 它们 时候 然后 还是 但是 因为 所以 如果 就是
    不是 只是 多少 一下 一些 一种 还有 以及 或者 而且 只有 的话 这种 那种 么办 么样
    么做 是什 不会 会不 是不 一样 有什 有哪 怎麼 什麼 為什 怎樣 哪個 哪裡 有沒 沒有
    一個 這個 那個 這些 這樣 那樣 我們 你們 他們 它們 時候 然後 還是 因為 還有 的話
    這種 那種 麼辦 麼樣 麼做 不會 會不 一樣
    """.split()  # noqa: SIM905  a list of a hundred quoted words is no easier to read
)
FILLERS = frozenset("的了是在有吗嗎呢吧啊和这這那我你他她它谁誰")
#: What requests for an answer are made with. Beside stop words and `ASKING` they look for nothing;
#: their weights are those of other words, as a document may be about them.
REQUESTS = STOP_WORDS | frozenset(("describe", "explain", "know", "like", "please", "tell", "want"))
_REQUESTING = ASKING | frozenset(
    """
    告诉 知道 请问 解释 介绍 说说 讲讲 谈谈 聊聊 说一 讲一 谈一 告訴 請問 解釋 介紹 說說 講講 談談
    說一 講一 談一
    """.split()  # noqa: SIM905
)
_REQUEST_FILLERS = FILLERS | frozenset("请請想给給帮幫")
#: With these, pairs that are typical of Chinese questions. They are rare in documents, so their idf
#: is too high; it is multiplied by `QUIET`. This raised the MRR@10 of two sets of Chinese questions
#: from .647 to .672; without the pairs full text alone gets worse.
CHATTER = ASKING | frozenset(
    """
    自己 以后 之后 已经 需要 应该 想要 能够 只能 里面 上面 下面 之前 现在 东西 办法
    几个 才能 以後 之後 已經 應該 能夠 裡面 現在 東西 辦法 幾個
    """.split()  # noqa: SIM905
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
        for word in self.weights:
            for document_id in self.frequencies(reader, word, document_ids):
                held[document_id].append(word)
        return held

    def frequencies(
        self, reader: Reader, word: str, document_ids: Sequence[int]
    ) -> Mapping[int, float]:
        """Document id → how often it holds a word of the query; see `FullText.frequencies`."""
        documents = self.weights[word].documents
        expression = phrase(word) if documents else None
        if expression is None:
            return {}
        frequencies = reader.full_text.frequencies(
            expression, document_ids, documents, self.document_count
        )
        if word.isalnum():  # no name with signs
            return frequencies
        check = [RawCheck(((None, pattern(word)),))]
        return {each: frequencies[each] for each in frequencies if passes(reader, each, check)}

    @property
    def names(self) -> frozenset[str]:
        """The words with signs, such as ``C++``, of which the index knows the letters at most."""
        return frozenset(word for word in self.weights if not word.isalnum())

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


def tells_nothing(query: ParsedQuery) -> bool:
    """
    Whether the query has stop words alone, or what questions and requests are made with.

    In capitals they are names: ``WHO``, ``IT``.
    """
    return bool(query.terms) and all(
        not (term.quoted or term.field)
        and (
            _only_asks(term.text, _REQUESTING, _REQUEST_FILLERS)
            if is_cjk(term.text)
            else _only_stop_words(term.text)
        )
        for term in query.terms
    )


def _only_stop_words(text: str) -> bool:
    is_name = text.isupper() and len(text) > 1
    return not is_name and REQUESTS.issuperset(text.casefold().split("'"))


def _only_asks(
    text: str, pairs: Collection[str] = ASKING, fillers: Collection[str] = FILLERS
) -> bool:
    """Whether a text has Chinese characters, all of which are fillers or in one of the pairs."""
    runs = [match[0] for match in cjk_runs(text)]
    return bool(runs) and all(
        run[place] in fillers
        or run[place : place + 2] in pairs
        or run[place - 1 : place + 1] in pairs
        for run in runs
        for place in range(len(run))
    )


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
    plain = [term for term in query.terms if not term.quoted and not term.field]
    loose = dict.fromkeys(part for term in plain for part in loose_parts(term))
    phrases = {word: phrase(word) for word in list(loose)[:MAX_PARTS]}
    indexed = {word: each for word, each in phrases.items() if each is not None}
    weights = {}
    for word in _content(list(indexed), plain) or indexed:
        documents = reader.full_text.count(indexed[word], most)
        loudness = QUIET if word in CHATTER else 1.0
        weights[word] = Word(documents, loudness * idf(documents, total))
    return weights


def _content(words: Sequence[str], terms: Sequence[Term]) -> list[str]:
    """
    The words without stop words, and without what only asks in Chinese.

    So ``什么是C++`` looks for what ``what is C++`` does.
    """
    only_asks = _only_asks(" ".join(term.text for term in terms))
    return [
        word
        for word in words
        if word.casefold() not in STOP_WORDS and not (only_asks and is_cjk(word))
    ]


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

    Documents with more of the names such as ``C++`` come before others with words of the query.
    Scores that would be above that of a document further ahead are lowered to it.

    Args:
        rows: Document ids with FTS5's bm25, best first.
        match: How they match.

    Returns:
        Best first; ties by document id.
    """
    names = words.names
    pool = [document_id for document_id, _ in rows[:POOL]]
    parts: dict[int, dict[str, float]] = {document_id: {} for document_id in pool}
    for word, (_, weight) in words.weights.items():
        frequencies = words.frequencies(reader, word, pool)
        most, half = weight * (K1 + 1), K1 / full_text.BM25_K1
        for document_id, frequency in frequencies.items():
            # f / (f + 1) with our K1 in place of FTS5's.
            parts[document_id][word] = most * frequency / (frequency + half)
    ranked = [
        Candidate(document_id, match, fsum(by_word.values()), by_word)
        for document_id, by_word in parts.items()
    ]
    ranked.sort(key=lambda each: (-len(names & each.words.keys()), -each.bm25, each.document_id))
    ranked += [Candidate(document_id, match, score) for document_id, score in rows[POOL:]]
    for ahead, each in pairwise(ranked):
        each.bm25 = min(each.bm25, ahead.bm25)
    return ranked


# --- literals and exclusions in the raw text --------------------------------------------
# The index holds no signs, spacing or word endings, so it matches more than such terms ask for.
# Text and literal are both normalized (NFKC, no letter case), and any run of blanks equals any
# other. A literal matches only where the index has the start of a word: ``als*`` is not in
# ``tutorials``. A sign after a backslash of Markdown stands for itself, too: ``snake\_case`` is
# ``snake_case``.

#: Before a text is folded, it is searched for this many leading characters of a literal.
QUICK = 64

_ESCAPED = lazy.pattern(r"\\([!-/:-@\[-`{-~])")


class RawCheck(NamedTuple):
    """
    A condition on the raw text of a document: it must hold one of the patterns.

    Attributes:
        patterns: Pairs of the field to look in (None: title and text) and the pattern.
        indexed_ids: The documents that pass without a look at their text, because the index is
            sure of them. If ``negated``: the only documents that can hold a pattern.
        negated: The document must hold none of the patterns instead.
    """

    patterns: tuple[tuple[Field | None, Pattern], ...]
    indexed_ids: frozenset[int] = frozenset()
    negated: bool = False


class Exclusions(NamedTuple):
    """The documents that a query excludes: by the index, and by checks of the raw text."""

    indexed_ids: frozenset[int]
    checks: tuple[RawCheck, ...]

    def admit(self, reader: Reader, document_id: int) -> bool:
        """Whether a document holds nothing that the query excludes."""
        return document_id not in self.indexed_ids and passes(reader, document_id, self.checks)


def exclusions(reader: Reader, query: ParsedQuery) -> Exclusions | None:
    """Look up what a query excludes; None if it excludes nothing."""
    if not query.excluded:
        return None
    indexed_ids = frozenset(excluded_ids(reader, query))
    return Exclusions(indexed_ids, tuple(_negated_checks(reader, query)))


def excluded_ids(reader: Reader, query: ParsedQuery) -> list[int]:
    """The ids of the documents that hold an excluded term, for terms that need no check."""
    phrases = list(excluded_expressions(query.excluded))
    return reader.full_text.matching_ids(any_distinct(phrases)) if phrases else []


def raw_checks(reader: Reader, query: ParsedQuery) -> list[RawCheck]:
    """The checks that a document must pass to be an exact hit."""
    checks = []
    for group in query.groups:
        unsure = [term for term in group if needs_check(term) or expression(term) is None]
        if unsure:
            sure = [term for term in group if term not in unsure]
            checks.append(RawCheck(_patterns(unsure), _indexed_ids(reader, sure)))
    return checks + _negated_checks(reader, query)


def name_checks(reader: Reader, words: QueryWords) -> list[RawCheck]:
    """
    What a relaxed match must pass, if the query has names such as ``C++`` beside other words.

    It holds a name as it is written, or another word.
    """
    if not words.names:
        return []
    others = [Term(word) for word in words.weights if word not in words.names]
    patterns = tuple((None, pattern(name)) for name in words.names)
    return [RawCheck(patterns, _indexed_ids(reader, others))]


def _indexed_ids(reader: Reader, terms: Sequence[Term]) -> frozenset[int]:
    """The ids of the documents that hold one of the terms according to the index."""
    expressions = [e for e in map(expression, terms) if e is not None]
    matching = reader.full_text.matching_ids(any_distinct(expressions)) if expressions else ()
    return frozenset(matching)


def _negated_checks(reader: Reader, query: ParsedQuery) -> list[RawCheck]:
    checks = []
    for term in query.excluded:
        if needs_check(term):
            match = expression(term)
            holding = (
                reader.full_text.matching_ids(match)
                if match
                else reader.documents.latest_ids(reader.all_documents)
            )
            checks.append(RawCheck(_patterns([term]), frozenset(holding), negated=True))
    return checks


def _patterns(terms: Sequence[Term]) -> tuple[tuple[Field | None, Pattern], ...]:
    patterns = [(term.field, pattern(term.text)) for term in terms]
    patterns += [  # a plain word may also be in the path
        ("path", pattern(term.text))
        for term in terms
        if term.prefix and not (term.field or term.literal or term.chinese)
    ]
    return tuple(patterns)


def passes(reader: Reader, document_id: int, checks: Sequence[RawCheck]) -> bool:
    """Whether a document passes all checks. Each field of the document is read at most once."""
    if not checks:
        return True

    @cache
    def read(field: Field | None) -> str:
        return reader.documents.searched_text(document_id, field)

    @cache
    def as_written(field: Field | None) -> RawText:
        return raw_text(read(field))

    @cache
    def as_shown(field: Field | None) -> RawText | None:
        shown = _without_escapes(read(field))
        return None if shown is None else raw_text(shown)

    def is_held(field: Field | None, pattern: Pattern) -> bool:
        if holds(as_written(field), pattern):
            return True
        shown = as_shown(field)
        return shown is not None and holds(shown, pattern)

    def passes_one(check: RawCheck) -> bool:
        if (document_id in check.indexed_ids) is not check.negated:
            return True
        return any(starmap(is_held, check.patterns)) is not check.negated

    return all(map(passes_one, checks))


def _without_escapes(raw: str) -> str | None:
    """The text without the backslashes before signs; None if it has none."""
    return _ESCAPED.sub(r"\1", raw) if "\\" in raw and _ESCAPED.search(raw) else None


class RawText(NamedTuple):
    """
    A text in two forms of equal length: ``folded``, and ``capitals`` with its letter case.

    The character at a position of one form is the character at that position of the other.
    """

    folded: str
    capitals: str


class Pattern(NamedTuple):
    """An expression to search a folded text for; if ``word``, a match must begin a word."""

    expression: re.Pattern[str] | str
    word: bool


def raw_text(raw: str) -> RawText:
    """Prepare a text for `holds`."""
    normal = normalize(raw)
    folded = normal.casefold()
    if len(folded) != len(normal):
        normal = "".join(
            character if len(character.casefold()) == 1 else character.casefold()
            for character in normal
        )
    return RawText(folded, normal)


def pattern(literal: str) -> Pattern:
    """Compile a literal for `holds`."""
    words = fold(literal).split()
    whole = words[0] if len(words) == 1 else re.compile(r"\s+".join(map(re.escape, words)))
    return Pattern(whole, bool(words) and _in_word(words[0][0]))


def holds(text: RawText, pattern: Pattern) -> bool:
    """Whether a text holds the literal."""
    positions = _positions(text.folded, pattern.expression)
    return any(not pattern.word or _begins_word(text, position) for position in positions)


def _positions(folded: str, expression: re.Pattern[str] | str) -> Iterator[int]:
    position = -1
    while True:
        if isinstance(expression, str):
            position = folded.find(expression, position + 1)
        else:
            match = expression.search(folded, position + 1)
            position = match.start() if match else -1
        if position < 0:
            return
        yield position


def _begins_word(text: RawText, position: int) -> bool:
    """Whether a word begins at ``position``; each part of a CamelCase name is a word, too."""
    if position == 0 or not _in_word(text.folded[position - 1]):
        return True
    previous, first, following = (
        text.capitals[position - 1],
        *text.capitals[position : position + 2].ljust(2),
    )
    return first.isupper() and (not previous.isupper() or following.islower())


def _in_word(character: str) -> bool:
    # The index has each CJK character as a word, and each sign as a blank.
    return character.isalnum() and not (is_cjk(character) or SIGNS.match(character))


def scan_documents(
    reader: Reader, literals: Sequence[Sequence[str]], selection: Selection
) -> Iterator[int]:
    """
    Read all texts, and yield in order the ids of documents that hold one literal of each group.

    This is for literals that the index does not hold: those without any letter or digit, such
    as ``->``.

    Args:
        literals: Groups of alternatives.
    """
    quick_checks = [re.compile("|".join(map(_unfolded, group))) for group in literals]
    patterns = [[pattern(literal) for literal in group] for group in literals]

    def is_held(raw: str) -> bool:
        # Folding takes many times longer than this search: only texts that pass it are folded.
        return all(check.search(raw) for check in quick_checks) and _holds_each_group(raw, patterns)

    for document_id, raw in reader.documents.names_and_texts(selection):
        shown = _without_escapes(raw)
        if is_held(raw) or (shown is not None and is_held(shown)):
            yield document_id


def _holds_each_group(raw: str, groups: Sequence[Sequence[Pattern]]) -> bool:
    """Whether a text holds one pattern of each group."""
    text = raw_text(raw)
    return all(any(holds(text, pattern) for pattern in group) for group in groups)


def _unfolded(literal: str) -> str:
    """
    A regular expression that matches every raw text whose folded form has the literal.

    It matches some other texts too, so the texts it lets through are still to be checked.
    """
    single_origins, expanding_origins = _origins()
    literal = fold(literal)[:QUICK]
    words = [
        "".join(
            f"[{re.escape(character + single_origins.get(character, ''))}]" for character in word
        )
        for word in literal.split()
    ]
    expanding = "".join(
        dict.fromkeys("".join(expanding_origins.get(character, "") for character in literal))
    )
    return r"\s+".join(words) + (f"|[{re.escape(expanding)}]" if expanding else "")


@lru_cache(maxsize=1)
def _origins() -> tuple[dict[str, str], dict[str, str]]:
    """
    Map each folded character to the characters that it may come from.

    The first result has the characters that fold to this character alone. The second has
    those that fold to several characters, this one among them (``.`` → ``…``). Only the basic
    plane is considered: the other planes have no signs that fold.
    """
    single: dict[str, str] = {}
    expanding: dict[str, str] = {}
    for code_point in (*range(0x80, 0xD800), *range(0xF900, 0x10000)):
        character = chr(code_point)
        folded = fold(character)
        if len(folded) == 1:
            if folded != character:
                single[folded] = single.get(folded, "") + character
        else:
            for part in dict.fromkeys(folded):
                expanding[part] = expanding.get(part, "") + character
    return single, expanding
