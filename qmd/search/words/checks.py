"""
Check literals and exclusions in the raw text of a document.

The index holds no signs, spacing or word endings, so it matches more than such terms ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from qmd.search.query.language import ParsedQuery
from qmd.search.query.terms import Field, Term
from qmd.search.words import literals
from qmd.search.words.expressions import (
    any_distinct,
    excluded_expressions,
    expression,
    needs_check,
)

if TYPE_CHECKING:
    from qmd.store import Reader


class RawCheck(NamedTuple):
    """
    A condition on the raw text of a document: it must hold one of the patterns.

    Attributes:
        patterns: Pairs of the field to look in (None: title and text) and the pattern.
        indexed_ids: The documents that pass without a look at their text, because the index is
            sure of them. If ``negated``: the only documents that can hold a pattern.
        negated: The document must hold none of the patterns instead.
    """

    patterns: tuple[tuple[Field | None, literals.Pattern], ...]
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


def _patterns(terms: Sequence[Term]) -> tuple[tuple[Field | None, literals.Pattern], ...]:
    patterns = [(term.field, literals.pattern(term.text)) for term in terms]
    patterns += [  # a plain word may also be in the path
        ("path", literals.pattern(term.text))
        for term in terms
        if term.prefix and not (term.field or term.literal or term.chinese)
    ]
    return tuple(patterns)


def passes(reader: Reader, document_id: int, checks: Sequence[RawCheck]) -> bool:
    """Whether a document passes all checks. Each field of the document is read at most once."""
    if not checks:
        return True

    @cache
    def field_text(field: Field | None) -> literals.RawText:
        return literals.raw_text(reader.documents.searched_text(document_id, field))

    def passes_one(check: RawCheck) -> bool:
        if (document_id in check.indexed_ids) is not check.negated:
            return True
        holds = any(literals.holds(field_text(field), pattern) for field, pattern in check.patterns)
        return holds is not check.negated

    return all(map(passes_one, checks))
