"""The first step of a search by words and meaning: which texts each retriever is asked."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qmd.search.expand import expand
from qmd.search.models import SearchModels
from qmd.search.parse import Question, Scope, parse_text, with_exclusions
from qmd.search.query.language import ParsedQuery, parse
from qmd.search.query.lines import TypedLines, parse_lines
from qmd.values import SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader

#: Each list that `query` fuses is at least this deep.
DEPTH = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """
    Which texts each retriever is asked; the first of each counts as the original.

    Attributes:
        query: The original, for snippets and coverage.
        text: The original in plain words.
        list_query: A query that only narrows, where there is nothing to look for.
        intent: What the query is about.
        problem: A sentence, where the expander failed.
    """

    query: ParsedQuery
    text: str
    scope: Scope
    for_words: tuple[str, ...]
    for_meaning: tuple[str, ...]
    list_query: str | None = None
    intent: str | None = None
    problem: str | None = None

    @property
    def prompt(self) -> str:
        """The question as a reranker gets it."""
        return f"{self.intent}\n{self.text}" if self.intent else self.text


def plan_request(reader: Reader, request: SearchRequest, models: SearchModels) -> Plan:
    """
    As `parse_request`, for both retrievers, with an expander's other ways to ask.

    A query of typed lines (see `qmd.search.query.lines`) speaks to each retriever by itself and
    is not expanded; each line's exclusions are for its own retriever.
    """
    request.check()
    depth = None if request.limit is None else max(DEPTH, request.limit)
    lines = parse_lines(request.query)
    if lines is not None:
        return _plan_lines(reader, request, lines, depth)
    question = with_exclusions(reader, parse_text(reader, request, request.query, depth))
    expanded = expand(question.query.text, request.intent, models)
    plan = _plan(
        question,
        (request.query, *expanded.for_words),
        (question.query.text, *expanded.for_meaning),
    )
    return replace(plan, intent=request.intent, problem=expanded.problem)


def _plan_lines(
    reader: Reader, request: SearchRequest, lines: TypedLines, depth: int | None
) -> Plan:
    first = (*lines.lexical, *lines.semantic)[0]
    question = parse_text(reader, request, first, depth)
    plan = _plan(question, lines.lexical, lines.semantic)
    return replace(plan, intent=request.intent or lines.intent)


def _plan(question: Question, for_words: tuple[str, ...], for_meaning: tuple[str, ...]) -> Plan:
    text = question.query.text or next(iter(for_meaning), "")
    # Beside something to look for, a list by date says nothing.
    searching = tuple(each for each in for_words if not parse(each).only_narrows)
    only_narrows = bool(for_words) and not searching and not text
    list_query = for_words[0] if only_narrows else None
    return Plan(question.query, text, question.scope, searching, for_meaning, list_query)
