"""
Makes a `Question` of a search request: what is searched for, and which documents may be hits.

`query` and `vsearch` also ask the expander for other wordings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from qmd import lazy, search
from qmd.engine_text import engine_text
from qmd.errors import InferenceError, InputError
from qmd.records import dataclass, replace
from qmd.search.query import ParsedQuery, parse_string, possible_keys
from qmd.search.words import Exclusions, exclusions, tells_nothing
from qmd.store.sql.documents import NAME_KINDS, NameKind
from qmd.values import Filters, SearchRequest

if TYPE_CHECKING:
    from qmd.inference.protocols import Embedder, Expander, Expansion, Reranker
    from qmd.search.meaning.vector_cache import VectorCache
    from qmd.store import Reader, Selection


#: Each run of `query` has at least this many documents, if so many match.
RUN_DEPTH = 100
#: An expander writes at most this many expansions of one query.
MAX_EXPANSIONS = 5

_LINE = lazy.pattern(r"\s*(lex|vec|hyde|intent)[:：](.*)", re.DOTALL | re.IGNORECASE)

_EXPAND = lazy.pattern(r"\s*expand[:：]\s*", re.IGNORECASE)
#: The most lines of one kind; further ones are ignored.
MAX_LINES = 12


@dataclass(frozen=True, slots=True)
class SearchModels:
    """
    The models for one search; None where there is none.

    Attributes:
        embedder: Opens the embedding model; called when a text has to be embedded. Raises
            ModelMissingError.
        timeout_s: Seconds that one call of the expander or the reranker may take.
        cache: Opens the vectors that stay in memory between searches.
        without_vectors: Why there are none, in a sentence, where 'qmd embed' would not help; else
            None.
    """

    embedder: Callable[[], Embedder]
    expander: Expander | None = None
    reranker: Reranker | None = None
    timeout_s: float = 5.0
    cache: Callable[[], VectorCache] | None = None
    without_vectors: Callable[[], str | None] = lambda: None


@dataclass(frozen=True, slots=True)
class Question:
    """
    A parsed query, and what each retriever searches for and may return.

    Attributes:
        query: The parsed query. Its words choose the lines of snippets.
        for_words: Texts for full text: the query first, as it was parsed (a link or a file name
            without its signs), then its expansions.
        for_meaning: Texts for the vectors: the query first, in plain words, then its expansions.
        selection: The documents that pass the filters and tags.
        most: A retriever returns at most this many; None for all.
        named: Document id → which of its names the query is.
        exclusions: What the query excludes, for retrieval by meaning. (Full text applies the
            exclusions of its query itself.)
        intent: What the query is about, in the caller's words.
        list_query: The query, if it only narrows and has nothing to search for; else None.
        problem: A sentence that says why there are no expansions; None if nothing failed.
    """

    query: ParsedQuery
    for_words: tuple[str, ...]
    for_meaning: tuple[str, ...]
    selection: Selection
    most: int | None
    named: Mapping[int, NameKind]
    exclusions: Exclusions | None = None
    intent: str | None = None
    list_query: str | None = None
    problem: str | None = None

    @property
    def text(self) -> str:
        """The query in plain words, without operators."""
        return self.query.text or next(iter(self.for_meaning), "")

    @property
    def prompt(self) -> str:
        """The query as a language model reads it: the intent, if there is one, and the text."""
        return f"{self.intent}\n{self.text}" if self.intent else self.text


def parse_request(reader: Reader, request: SearchRequest) -> Question:
    """
    Check a request, parse its query and select the documents.

    Raises:
        InputError: See `SearchRequest.check`; or a date filter is not a date, or a filter by a
            property no condition.
        CollectionNotFoundError: A filter names an unknown collection; with suggestions.
    """
    request.check()
    return _parse_text(reader, request, request.query, request.depth)


def parse_for_meaning(reader: Reader, request: SearchRequest) -> Question:
    """As `parse_request`, with what the query excludes."""
    return _with_exclusions(reader, parse_request(reader, request))


def parse_for_both(reader: Reader, request: SearchRequest, models: SearchModels) -> Question:
    """
    Parse a request for both retrievers, and add the expander's other wordings.

    A query of typed lines (see `parse_lines`) has texts for each retriever and is not
    expanded. What one of its lines excludes is excluded from the run of that line only.

    Raises:
        InputError, CollectionNotFoundError: As `parse_request`.
    """
    request.check()
    most = None if request.limit is None else max(RUN_DEPTH, request.limit)
    text = without_expand(request.query)
    lines = parse_lines(text)
    if lines is not None:
        return _for_ranking(reader, _parse_lines(reader, request, *lines, most))
    question = _with_exclusions(reader, _parse_text(reader, request, text, most))
    return _for_ranking(reader, expanded(question, models))


def expanded(question: Question, models: SearchModels) -> Question:
    """
    Ask the expander for other wordings of a question; there are none without an expander.

    A failing expander raises nothing: the search goes on with the query alone.
    """
    if models.expander is None or not question.query.text:
        return question
    try:
        expansions: Sequence[Expansion] = models.expander.expand(
            question.prompt, limit=MAX_EXPANSIONS, timeout_s=models.timeout_s
        )
    except InferenceError as error:
        return replace(question, problem=engine_text("Not expanded: {error}", error=error.message))
    for_words = [each.text for each in expansions if each.kind == "lex"]
    for_meaning = [each.text for each in expansions if each.kind != "lex"]
    return replace(
        question,
        for_words=(*question.for_words, *for_words),
        for_meaning=(*question.for_meaning, *for_meaning),
    )


def parse_query(reader: Reader, text: str) -> ParsedQuery:
    """Parse a query; conditions are on properties that documents of this snapshot have."""
    keys = possible_keys(text)
    return parse_string(text, reader.properties.existing_keys(keys) if keys else keys)


def _parse_text(reader: Reader, request: SearchRequest, text: str, most: int | None) -> Question:
    """As `parse_request`, for ``text`` instead of the request's query, and another ``most``."""
    filters = _with_collections(reader, _with_dates(request.filters))
    name = written_name(text)
    if name is not None and "/" not in name:
        bare = parse_string(name)
        selection = reader.select(filters)
        named = find_named(reader, [name], bare, selection)
        if named and not bare.narrowed:
            texts = (name,), (bare.text,)
            return Question(bare, *texts, selection, most, named, intent=request.intent)
    query = parse_query(reader, text)
    selection = reader.select(
        replace(filters, tags=(*filters.tags, *query.tags)),
        either=query.either,
        none_of=query.none_of,
    )
    named = find_named(reader, [text, query.text], query, selection)
    texts = (text,), (query.text,)
    return Question(query, *texts, selection, most, named, intent=request.intent)


def _parse_lines(
    reader: Reader,
    request: SearchRequest,
    for_words: tuple[str, ...],
    for_meaning: tuple[str, ...],
    intent: str | None,
    most: int | None,
) -> Question:
    texts = (*for_words, *for_meaning)
    telling = (text for text in texts if not tells_nothing(parse_query(reader, text)))
    question = _parse_text(reader, request, next(telling, texts[0]), most)
    return replace(
        question,
        for_words=for_words,
        for_meaning=for_meaning,
        named=question.named if for_words else {},
        intent=request.intent or intent,
    )


def _with_exclusions(reader: Reader, question: Question) -> Question:
    """Look up the documents that the query excludes, as retrieval by meaning needs them."""
    return replace(question, exclusions=exclusions(reader, question.query))


def _for_ranking(reader: Reader, question: Question) -> Question:
    """
    Leave out the texts for full text that only narrow.

    Such a text ranks by date, and its run must not be fused with ranked ones.
    """
    for_words = question.for_words
    ranked = tuple(text for text in for_words if not parse_query(reader, text).only_narrows)
    only_narrows = bool(for_words) and not ranked and not question.text
    list_query = for_words[0] if only_narrows else None
    return replace(question, for_words=ranked, list_query=list_query)


def _with_collections(reader: Reader, filters: Filters) -> Filters:
    """
    The filters; without a collection or a path, those that a person left out are left out.

    Raises InputError if all are.
    """
    if filters.collections or filters.path:
        return filters
    names = reader.collections.included_names()
    if names == []:
        raise InputError(
            "All collections are left out of searches that name none.",
            hint="Name one (collection, in the shell -c NAME), or let"
            " 'qmd collection include NAME' have it searched always.",
        )
    return filters if names is None else replace(filters, collections=tuple(names))


def _with_dates(filters: Filters) -> Filters:
    if not (filters.after or filters.before):
        return filters
    return replace(
        filters,
        after=search.query.filter_date(filters.after) if filters.after else None,
        before=search.query.filter_date(filters.before) if filters.before else None,
    )


# --- typed lines ---------------------------------------------------------------------------


def without_expand(query: str) -> str:
    """
    The query without the word ``expand:`` that it begins with, if something stands after it.

    As tobi/qmd writes a query that the expander words in other ways. That is what happens to every
    query without typed lines.
    """
    match = _EXPAND.match(query)
    return query[match.end() :] if match and query[match.end() :].strip() else query


def parse_lines(query: str) -> tuple[tuple[str, ...], tuple[str, ...], str | None] | None:
    """
    Parse a query that has one line for each retriever::

        lex: wal checkpoint -vacuum
        vec: how are readers kept from blocking
        hyde: In WAL mode readers see a snapshot …
        intent: SQLite internals

    A query has this form if its first non-blank line begins with one of these words, in upper or
    lower case. A line that begins with none of them continues the line before it. If there is only
    an intent, it is searched for itself.

    Returns:
        The texts for full text, those for the vectors, and the subject of the query if a line gives
        it. None if the query has another form, or all its lines are blank.
    """
    if _LINE.match(query) is None:
        return None
    texts = _texts_by_kind(query)
    lexical, vector, hypothetical, intent = (
        tuple(dict.fromkeys(filter(None, texts[kind])))[:MAX_LINES]
        for kind in ("lex", "vec", "hyde", "intent")
    )
    if not (lexical or vector or hypothetical):
        return (intent, intent, None) if intent else None
    return lexical, vector + hypothetical, " ".join(intent) or None


def _texts_by_kind(query: str) -> dict[str, list[str]]:
    texts: dict[str, list[str]] = {"lex": [], "vec": [], "hyde": [], "intent": []}
    current: list[str] = []
    for line in query.splitlines():
        typed = _LINE.match(line)
        if typed is not None:
            current = texts[typed[1].lower()]
            current.append(typed[2].strip())
        elif line.strip():
            current[-1] = f"{current[-1]} {line.strip()}".strip()
    return texts


# --- documents that the query names -----------------------------------------------------
# They lead the hits of `search` and `query`: a person who types the exact name of a note wants this
# note, however often others mention the name. The names are looked up in indexes, by
# `qmd.values.text`: in any letter case and Unicode form.

#: At most this many documents lead: hundreds may share a title such as "Notes", and then the name
#: does not tell which is meant.
MOST_LEADING = 10
#: At most this many documents of a name are looked at.
MOST_NAMED = 1000
#: No name of a file is longer, and a longer title is no name that people type.
MAX_NAME = 300

_WIKILINK = lazy.pattern(r"!?\[\[([^\[\]|#^]+)(?:[|#^][^\[\]]*)?\]\]")
_NOTE_FILE = lazy.pattern(r"(.*\S)\.(?:md|markdown)", re.IGNORECASE | re.DOTALL)


def written_name(text: str) -> str | None:
    """
    The name in a query that is a link or a file name: ``[[MOC|shown]]`` and ``MOC.md`` → ``MOC``.

    None for any other query.
    """
    text = text.strip()
    if len(text) > MAX_NAME:
        return None
    link = _WIKILINK.fullmatch(text) if "[[" in text else None
    name = link[1].strip() if link else text
    file = _NOTE_FILE.fullmatch(name) if "." in name else None
    name = file[1] if file else name
    return None if name == text else name


def find_named(
    reader: Reader, texts: Sequence[str], query: ParsedQuery, selection: Selection
) -> dict[int, NameKind]:
    """
    Document id → which of its names one of the texts is.

    Nothing for a query of alternatives, prefixes, or fields other than the title.

    Args:
        query: The query that the texts are of.
        selection: The documents that may be hits.
    """
    if any(len(group) > 1 for group in query.groups) or query.only_narrows:
        return {}
    if any(term.field not in (None, "title") or term.prefix for term in query.terms):
        return {}
    named: dict[int, NameKind] = {}
    for name in dict.fromkeys(" ".join(text.split()) for text in texts):
        if 0 < len(name) <= MAX_NAME:
            for kind in NAME_KINDS:
                for document_id in reader.documents.named(kind, name, selection, MOST_NAMED):
                    named.setdefault(document_id, kind)
    return named
