"""FTS5 expressions for the terms of a query."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache

from qmd.parse import segment
from qmd.search.query import prefix
from qmd.search.query.terms import Term
from qmd.store.full_text import CONTENT


@lru_cache(maxsize=256)
def expression(term: Term) -> str | None:
    """The expression for a term, or None where the index holds nothing of it."""
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


def group_expression(group: Sequence[Term]) -> str | None:
    """The expression for any of these terms, or None where the index lacks one of them."""
    expressions = [e for e in map(expression, group) if e is not None]
    return any_of(expressions) if len(expressions) == len(group) else None


def any_of(expressions: Sequence[str]) -> str:
    unique = dict.fromkeys(expressions)
    return "(" + " OR ".join(f"({e})" if ":" in e else e for e in unique) + ")"


def but_not(match: str, excluded: Sequence[Term]) -> str:
    """Excluded literals with signs are left to the check of the raw text."""
    phrases = list(excluded_expressions(excluded))
    return f"({match}) NOT {any_of(phrases)}" if phrases else match


def excluded_expressions(excluded: Sequence[Term]) -> Iterator[str]:
    """For the excluded terms that the index alone can tell."""
    for term in excluded:
        phrase = expression(term)
        if phrase is not None and not needs_check(term):
            yield phrase


def needs_check(term: Term) -> bool:
    """Whether the index matches more than the term: it lacks signs, spacing and endings."""
    return term.literal or (term.prefix and bool(prefix.stems(term.text)))
