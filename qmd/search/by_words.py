"""
Retrieval by words: rank the documents that hold all of the query, then looser matches.

Scores are 0..1. An ``exact`` candidate holds all that the query asks for and scores at least 0.5;
a ``relaxed`` one holds a part of it and scores less. Each half is ordered by bm25
(`qmd.search.words`), mapped to 0..0.5 by 0.5 · x / (x + 10).

Relaxed ones are ordered by bm25 alone. Counting how much of the query a document covers as well
lowered nDCG@10 on five of six test collections (cranfield from .528 to .478).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from qmd.search.candidates import Candidate
from qmd.search.query import LEAD, ParsedQuery, Term
from qmd.search.question import MOST_LEADING
from qmd.search.words import (
    POOL,
    QueryWords,
    RawCheck,
    excluded_ids,
    exclusions,
    group_expression,
    loose_expression,
    name_checks,
    passes,
    phrase,
    rank_again,
    raw_checks,
    scan_documents,
    without,
)
from qmd.store.full_text import Expression, all_of
from qmd.values import Match

if TYPE_CHECKING:
    from qmd.store import Reader, Selection


#: The lowest score of each kind of match; bm25 adds less than 0.5.
BASE: dict[Match, float] = {"exact": 0.5, "relaxed": 0.0}
#: A bm25 of this value adds 0.25, half of what bm25 can add.
HALF = 10.0
#: So many of the best documents are checked in the raw text before all others are.
CHECKED = 1000


def retrieve_by_words(
    reader: Reader,
    words: QueryWords,
    selection: Selection,
    limit: int | None,
    named_ids: Collection[int] = (),
) -> list[Candidate]:
    """
    Rank documents by full text: the exact ones, then relaxed ones until there are ``limit``.

    A query without text, such as ``tag:work``, returns all documents that pass it, latest first.

    Args:
        words: The words of the query and their weights; it has the parsed query too.
        selection: The documents that may be hits.
        limit: Return at most this many; None for all.
        named_ids: Documents of the selection of which the query is a name. They are returned even
            if ``limit`` others are better. (Of many such documents, only those that are found.)

    Returns:
        Best first; ties by document id.
    """
    query = words.query
    if not query.groups and not query.only_narrows:
        return []
    candidates = _exact(reader, words, selection, limit, named_ids)
    if limit is None or len(candidates) < limit:
        exact_ids = {each.document_id for each in candidates}
        candidates += _relaxed(reader, words, selection, limit, exact_ids, named_ids)
    return _with_named(reader, words, candidates, named_ids) if named_ids else candidates


def _with_named(
    reader: Reader, words: QueryWords, candidates: list[Candidate], named_ids: Collection[int]
) -> list[Candidate]:
    """The candidates, and those of a few named documents that were not found."""
    missing = set(named_ids) - {each.document_id for each in candidates}
    if not missing or len(named_ids) > MOST_LEADING:
        return candidates
    excluded = exclusions(reader, words.query)
    admitted = sorted(each for each in missing if not excluded or excluded.admit(reader, each))
    named = _rank(reader, [(document_id, 0.0) for document_id in admitted], words, "exact")
    return sorted(candidates + named, key=lambda each: -each.blend)


def all_matches(reader: Reader, words: QueryWords, selection: Selection) -> list[Candidate]:
    """All exact candidates; all relaxed ones if there are none. Arguments: `retrieve_by_words`."""
    candidates = retrieve_by_words(reader, words, selection, None)
    exact = [each for each in candidates if each.match == "exact"]
    return exact or candidates


def _exact(
    reader: Reader,
    words: QueryWords,
    selection: Selection,
    limit: int | None,
    named_ids: Collection[int],
) -> list[Candidate]:
    query = words.query
    expressions = [group_expression(group) for group in query.groups]
    indexed = [expression for expression in expressions if expression is not None]
    checks = raw_checks(reader, query)
    if not indexed:
        unranked = ((document_id, 0.0) for document_id in _scan(reader, query, selection))
        return _accept(reader, unranked, checks, limit, named_ids)
    expression = without(all_of(*indexed), query.excluded)
    if not checks and all(map(_is_bare_word, query.terms)):
        rows = reader.full_text.search(expression, selection, _pool(limit))
        return _first(_rank(reader, rows, words, "exact"), limit, named_ids)
    if checks and limit is not None and not named_ids:
        best = reader.full_text.search(expression, selection, max(limit, CHECKED))
        candidates = _accept(reader, best, checks, limit, ())
        if len(candidates) == limit or len(best) < CHECKED or reader.full_text.is_incomplete:
            return candidates
    # A check in Python may refuse any of the rows, so no limit would be sure to suffice.
    rows = reader.full_text.search(expression, selection, None if checks else _pool(limit))
    return _accept(reader, rows, checks, limit, named_ids)


def _first(
    candidates: list[Candidate], limit: int | None, named_ids: Collection[int]
) -> list[Candidate]:
    """The first ``limit`` candidates, and the named ones after them."""
    if limit is None:
        return candidates
    return candidates[:limit] + [
        each for each in candidates[limit:] if each.document_id in named_ids
    ]


def _is_bare_word(term: Term) -> bool:
    """Whether the term asks for nothing but its words."""
    return not (term.literal or term.prefix or term.field)


def _scan(reader: Reader, query: ParsedQuery, selection: Selection) -> Iterable[int]:
    """
    The ids of the documents that pass a query of which the index holds nothing.

    If the query has signs, their texts are scanned; if it has nothing to search for, all documents
    of the selection pass, latest first. What the query excludes is left out.
    """
    signs = [[term.text for term in group] for group in query.groups]
    passing = (
        scan_documents(reader, signs, selection)
        if signs
        else reader.documents.latest_ids(selection)
    )
    excluded = set(excluded_ids(reader, query))
    return (document_id for document_id in passing if document_id not in excluded)


def _accept(
    reader: Reader,
    rows: Iterable[tuple[int, float]],
    checks: Sequence[RawCheck],
    limit: int | None,
    named_ids: Collection[int],
) -> list[Candidate]:
    """Exact candidates of the first rows that pass all checks, with the bm25 of FTS5."""
    remaining = iter(rows)
    accepted = (row for row in remaining if passes(reader, row[0], checks))
    first = list(islice(accepted, limit))
    if named_ids:
        first += [
            row for row in remaining if row[0] in named_ids and passes(reader, row[0], checks)
        ]
    return [_scored(Candidate(document_id, "exact", score)) for document_id, score in first]


def _relaxed(
    reader: Reader,
    words: QueryWords,
    selection: Selection,
    limit: int | None,
    exact_ids: Collection[int],
    named_ids: Collection[int],
) -> list[Candidate]:
    """Documents that hold a part of the query; ``limit`` counts the exact candidates too."""
    loose, is_strict = _loose_expression(words)
    if loose is None:
        return []
    checks = raw_checks(reader, _quoted_part(words.query))
    if not is_strict:
        checks += name_checks(reader, words)
    missing = None if limit is None else limit - len(exact_ids)
    pool = _pool(limit)
    depth = None if pool is None or checks else pool + len(exact_ids)
    expression = without(loose, words.query.excluded)
    accepted = (
        row
        for row in reader.full_text.search(expression, selection, depth)
        if row[0] not in exact_ids and passes(reader, row[0], checks)
    )
    rows = list(islice(accepted, missing if is_strict else pool))
    if is_strict:
        return [_scored(Candidate(document_id, "relaxed", score)) for document_id, score in rows]
    return _first(_rank(reader, rows, words, "relaxed"), missing, named_ids)


def _loose_expression(words: QueryWords) -> tuple[Expression | None, bool]:
    """
    The expression for relaxed candidates; None if the query has no loose part, or none is indexed.

    The second value says whether it requires phrases or fields of the query.
    """
    groups = words.query.groups
    strict_groups = [group for group in groups if any(t.quoted or t.field for t in group)]
    if len(strict_groups) == len(groups):
        return None, True
    # A strict group that the index cannot express is checked in the raw text instead.
    strict = [e for e in map(group_expression, strict_groups) if e is not None]
    held = [word for word, weighed in words.weights.items() if weighed.documents]
    phrases = [each for each in map(phrase, held) if each is not None]
    return loose_expression(strict, phrases), bool(strict)


def _quoted_part(query: ParsedQuery) -> ParsedQuery:
    groups = tuple(group for group in query.groups if any(term.quoted for term in group))
    return ParsedQuery(groups, query.excluded, (), "")


def _pool(limit: int | None) -> int | None:
    """How many rows FTS5 returns, so that enough of them are ranked again; None for all."""
    return None if limit is None else max(limit, POOL)


def _rank(
    reader: Reader, rows: Sequence[tuple[int, float]], words: QueryWords, match: Match
) -> list[Candidate]:
    ranked = rank_again(reader, rows, words, match)
    return [_scored(candidate) for candidate in ranked]


def _scored(candidate: Candidate) -> Candidate:
    """The candidate with its blend by words."""
    score = max(candidate.bm25, 0.0)
    candidate.blend = BASE[candidate.match] + 0.5 * score / (score + HALF)
    return candidate


def explain(candidate: Candidate, words: QueryWords) -> dict[str, Any]:
    """
    The parts of a blend by words, as `--explain` shows them.

    bm25 is the sum of the words' scores, or that of FTS5 if the query has phrases, fields or signs;
    blend = base + 0.5 * bm25 / (bm25 + half).
    """
    return {
        "terms": [
            term.text if len(term.text) <= LEAD else f"{term.lead}…" for term in words.query.terms
        ],
        "words": [
            {
                "word": word,
                "documents": weighed.documents,
                "idf": weighed.idf,
                "score": candidate.words[word],
            }
            for word, weighed in words.weights.items()
            if word in candidate.words
        ],
        "bm25": candidate.bm25,
        "match": candidate.match,
        "base": BASE[candidate.match],
        "half": HALF,
    }
