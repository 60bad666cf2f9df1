"""The first step of `query`: which texts full text and the vectors are searched for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from qmd.errors import InferenceError
from qmd.search.models import SearchModels
from qmd.search.parse import Question, Scope, parse_query, parse_text, with_exclusions
from qmd.search.query.language import ParsedQuery
from qmd.search.query.lines import TypedLines, parse_lines, without_expand
from qmd.values import SearchRequest

if TYPE_CHECKING:
    from qmd.inference.protocols import Expansion
    from qmd.store import Reader
    from qmd.store.sql.documents import NameKind

#: Each run of `query` has at least this many documents, if so many match.
RUN_DEPTH = 100
#: An expander writes at most this many expansions of one query.
EXPANSIONS = 5


@dataclass(frozen=True, slots=True)
class Plan:
    """
    The texts that each retriever searches for.

    Attributes:
        query: The parsed query. Its words choose the lines of snippets.
        text: The query in plain words, without operators.
        scope: Which documents may be candidates.
        for_words: Texts for full text: the query first, then its expansions.
        for_meaning: Texts for the vectors: the query first, then its expansions.
        named: Document id → which of its names the query is.
        list_query: The query, if it only narrows and has nothing to search for; else None.
        intent: What the query is about, in the caller's words.
        problem: A sentence that says why there are no expansions; None if nothing failed.
    """

    query: ParsedQuery
    text: str
    scope: Scope
    for_words: tuple[str, ...]
    for_meaning: tuple[str, ...]
    named: Mapping[int, NameKind]
    list_query: str | None = None
    intent: str | None = None
    problem: str | None = None

    @property
    def prompt(self) -> str:
        """The query as a reranker reads it: the intent, if there is one, and the text."""
        return f"{self.intent}\n{self.text}" if self.intent else self.text


def plan_request(reader: Reader, request: SearchRequest, models: SearchModels) -> Plan:
    """
    Parse a request for both retrievers, and add the expander's other wordings.

    A query of typed lines (see `qmd.search.query.lines`) has texts for each retriever and is not
    expanded. What one of its lines excludes is excluded from the run of that line only.

    Raises:
        InputError, CollectionNotFoundError: As `parse_request`.
    """
    request.check()
    depth = None if request.limit is None else max(RUN_DEPTH, request.limit)
    request = replace(request, query=without_expand(request.query))
    lines = parse_lines(request.query)
    if lines is not None:
        return _plan_lines(reader, request, lines, depth)
    question = with_exclusions(reader, parse_text(reader, request, request.query, depth))
    expanded = expand(question.query.text, request.intent, models)
    plan = _plan(
        reader,
        question,
        (question.text, *expanded.for_words),
        (question.query.text, *expanded.for_meaning),
    )
    return replace(plan, intent=request.intent, problem=expanded.problem)


def _plan_lines(
    reader: Reader, request: SearchRequest, lines: TypedLines, depth: int | None
) -> Plan:
    first = (*lines.lexical, *lines.semantic)[0]
    question = parse_text(reader, request, first, depth)
    named = question.named if lines.lexical else {}
    plan = _plan(reader, question._replace(named=named), lines.lexical, lines.semantic)
    return replace(plan, intent=request.intent or lines.intent)


def _plan(
    reader: Reader,
    question: Question,
    for_words: tuple[str, ...],
    for_meaning: tuple[str, ...],
) -> Plan:
    text = question.query.text or next(iter(for_meaning), "")
    # A text that only narrows ranks by date. Such a run must not be fused with ranked ones.
    ranked_texts = tuple(
        wording for wording in for_words if not parse_query(reader, wording).only_narrows
    )
    only_narrows = bool(for_words) and not ranked_texts and not text
    list_query = for_words[0] if only_narrows else None
    return Plan(
        question.query, text, question.scope, ranked_texts, for_meaning, question.named, list_query
    )


# --- expansion -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Expanded:
    """
    A model's other wordings of a query.

    ``problem`` is a sentence that says how the expander failed; None if it did not.
    """

    expansions: Sequence[Expansion] = ()
    problem: str | None = None

    @property
    def for_words(self) -> list[str]:
        """The texts to search full text for."""
        return [expansion.text for expansion in self.expansions if expansion.kind == "lex"]

    @property
    def for_meaning(self) -> list[str]:
        """The texts to search the vectors for."""
        return [expansion.text for expansion in self.expansions if expansion.kind != "lex"]


def expand(text: str, intent: str | None, models: SearchModels) -> Expanded:
    """
    Ask the expander for other wordings of ``text``; none if there is no expander.

    A failing expander raises nothing: the search goes on with the query alone.
    """
    if models.expander is None or not text:
        return Expanded()
    prompt = f"{intent}\n{text}" if intent else text
    try:
        return Expanded(
            models.expander.expand(prompt, limit=EXPANSIONS, timeout_s=models.timeout_s)
        )
    except InferenceError as error:
        return Expanded(problem=f"Not expanded: {error}")
