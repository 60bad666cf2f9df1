"""
Match expressions for the terms of a query.

Porter stems ``university`` to ``univers``, so no token of an index of stems begins with
``universi``. A search for ``universi*`` therefore also asks for the stems that such words may have,
and then checks the texts themselves.

Full text stems the beginning too: ``copy`` becomes ``copi``, and ``copyable`` does not begin with
that. Porter removes a final ``e`` before it looks for endings, so a search for ``copye`` matches
exactly the tokens that begin with ``copy``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from qmd.parse import segment
from qmd.search.query.terms import Term
from qmd.store.full_text import (
    CONTENT_FIELDS,
    Expression,
    Phrase,
    TextField,
    all_of,
    any_of,
    but_not,
)

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


def phrase(literal: str, fields: tuple[TextField, ...] = ()) -> Phrase | None:
    """The phrase for a literal; None if the literal has no letter or digit."""
    tokens = segment.phrase_tokens(literal)
    return None if tokens is None else Phrase(*tokens, fields)


@lru_cache(maxsize=256)
def expression(term: Term) -> Expression | None:
    """The expression for a term; None if the term has no letter or digit."""
    fields: tuple[TextField, ...] = ()
    if term.field:
        fields = (term.field,)
    elif term.literal or term.chinese:
        # A folder that is named after a Chinese word must not make all files in it hits.
        fields = CONTENT_FIELDS
    lead = phrase(term.lead, fields)
    if lead is None or not term.prefix or lead.prefix:
        return lead
    begun = lead._replace(prefix=True)
    stems = word_stems(term.text)
    if not stems:
        return begun
    with_e = Phrase(segment.fold(term.text) + "e", True, fields)
    return any_of(begun, with_e, *(Phrase(stem, False, fields) for stem in stems))


def group_expression(group: Sequence[Term]) -> Expression | None:
    """The expression for any of these terms; None if one of them has no expression."""
    expressions = [e for e in map(expression, group) if e is not None]
    return any_distinct(expressions) if len(expressions) == len(group) else None


def any_distinct(expressions: Sequence[Expression]) -> Expression:
    """Match any of these expressions; a repeated one counts once in bm25."""
    return any_of(*dict.fromkeys(expressions))


def without(match: Expression, excluded: Sequence[Term]) -> Expression:
    """Exclude terms from a match, except those that must be checked in the raw text."""
    return but_not(match, *dict.fromkeys(excluded_expressions(excluded)))


def loose_expression(strict: Sequence[Expression], words: Sequence[Phrase]) -> Expression | None:
    """
    Match documents with all strict expressions; the words only raise their rank.

    Without strict expressions, match documents with any of the words. None if there is nothing.
    """
    if not words:
        return all_of(*strict) if strict else None
    any_word = any_of(*words)
    if not strict:
        return any_word
    return any_of(all_of(*strict, any_word), all_of(*strict))


def excluded_expressions(excluded: Sequence[Term]) -> Iterator[Expression]:
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
