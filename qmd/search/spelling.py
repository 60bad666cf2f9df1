"""
Suggests what was meant where a search finds little: words that are spelled like those of the query.

The suggestions are words of documents that the filters let through, so each finds something, and a
client with a scope sees no word of other documents. Nearer words come first, then those that more
documents hold.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from rapidfuzz import fuzz, process
from rapidfuzz.distance import OSA

from qmd.engine_text import engine_text, sentences
from qmd.parse import segment
from qmd.parse.segment import cjk_runs, is_cjk
from qmd.search import graph
from qmd.search.words import QueryWords, phrase, stem, tells_nothing
from qmd.values import Filters, SearchReply, SearchRequest
from qmd.values.properties import PropertyCondition, parse_filter
from qmd.values.search import SHOWING
from qmd.values.text import fold, one_line

if TYPE_CHECKING:
    from qmd.search.query import ParsedQuery
    from qmd.store import Reader, Selection
    from qmd.store.sql.documents import FullDocument

#: Words of fewer letters have too many neighbours.
SHORTEST = 4
LONGEST = 40
#: At most this many words of a query are looked up.
MOST_WORDS = 4
#: At most this many words of the index are compared with each: 30 ms.
MOST_TERMS = 50_000
#: Folders of each collection that a folder is compared with.
MOST_FOLDERS = 1_000
#: Values of a property that a value is compared with.
MOST_VALUES = 1_000
#: A longer query, in characters, is no word that was typed wrong.
LONGEST_QUERY = 500
#: Characters of a document in which the spelling of a stem is looked for.
MOST_TEXT = 200_000
#: A run of more Chinese characters is a sentence, whose pairs need not stand in any document.
LONGEST_RUN = 8
_NEAREST = 8  # stems whose spelling is looked up
_HOLDING = 3  # documents in which it is looked for: one may have only "invoices"
_SHORT = 6  # letters of a word in which two mistakes make another one: "back" is not "backup"
_WORD = re.compile(r"[^\W\d_]+")
_QUOTED = re.compile(r'"[^"]*"|“[^”]*”|「[^」]*」')


def with_spelling(
    reader: Reader,
    request: SearchRequest,
    words: QueryWords,
    selection: Selection,
    reply: SearchReply,
    again: Callable[[SearchRequest], SearchReply],
) -> SearchReply:
    """
    The reply, with a suggestion in `SearchReply.suggestion` and in the notice.

    If nothing else seems to answer, the hits are those of the suggestion, and the notice says so.

    Args:
        words: Those of the query; there is no suggestion unless no document holds one of them.
        selection: The documents that may be hits.
        again: The same search, for another request.
    """
    if any(hit.match == "exact" for hit in reply.hits) or tells_nothing(words.query):
        return reply
    held = any(hit.match == "relaxed" for hit in reply.hits)
    # Beside words that documents hold, a word with two mistakes is more likely one they lack.
    suggestion = suggest(reader, request.query, words, selection, mistakes=1 if held else 2)
    if suggestion is None:
        return reply
    if not held and (reply.notice or not reply.hits):
        other = again(replace(request, query=suggestion, spelling=False))
        if other.hits:
            notice = _joined(f"{SHOWING} {suggestion}", other.notice)
            return replace(other, query=request.query, suggestion=suggestion, notice=notice)
    if not reply.hits:
        return reply
    notice = _joined(engine_text("Did you mean: {names}", names=suggestion), reply.notice)
    return replace(reply, suggestion=suggestion, notice=notice)


def with_empty_filter(
    reader: Reader,
    request: SearchRequest,
    query: ParsedQuery,
    reply: SearchReply,
    again: Callable[[SearchRequest], SearchReply],
) -> SearchReply:
    """A reply without hits, with a notice that names the filter that leaves nothing."""
    notice = missing(reader, request.filters, query)
    if not (notice or reply.notice) and request.filters != Filters():
        notice = _too_narrow(request, again)
    return replace(reply, notice=_joined(notice, reply.notice)) if notice else reply


def missing(reader: Reader, filters: Filters, query: ParsedQuery | None = None) -> str:
    """
    Sentences that name tags, folders and values of properties that no document has; "" for none.

    Args:
        query: What it asks for counts, too.
    """
    conditions = [parse_filter(each) for each in filters.properties]
    narrowings = [each for each, is_excluded in conditions if not is_excluded]
    folders = [filters.path] if filters.path else []
    tags = list(filters.tags)
    if query is not None:
        tags += query.tags
        folders += [term.text for term in query.terms if term.field == "path"]
        alone = [group[0] for group in query.either if len(group) == 1]
        narrowings += [each for each in alone if not isinstance(each, str)]
    return sentences(
        *(_missing_tag(reader, tag) for tag in dict.fromkeys(tags)),
        *(_missing_folder(reader, folder) for folder in dict.fromkeys(folders)),
        *(_missing_value(reader, condition) for condition in dict.fromkeys(narrowings)),
    )


def _too_narrow(request: SearchRequest, again: Callable[[SearchRequest], SearchReply]) -> str:
    """A sentence that names the filters without which there are hits; "" if there are none."""
    request = replace(request, spelling=False, limit=1, max_tokens=None)
    filters = request.filters
    if not again(replace(request, filters=Filters())).hits:
        return ""
    # One filter may be enough to leave nothing; if it takes several, all are named.
    named = _named(filters)
    alone = [
        text
        for name, text in named.items()
        if again(
            replace(request, filters=replace(filters, **{name: getattr(Filters(), name)}))
        ).hits
    ]
    return engine_text(
        "There are hits, but none with {filters}.", filters=", ".join(alone or named.values())
    )


def _named(filters: Filters) -> dict[str, str]:
    """Field of the filters → what it asks for, in the words of a query where these have it."""
    texts = {
        "collections": [f"collection:{name}" for name in filters.collections],
        "path": [f"path:{filters.path}"] if filters.path else [],
        "tags": [f"tag:{tag}" for tag in filters.tags],
        "properties": filters.properties,
        "after": [f"after:{filters.after}"] if filters.after else [],
        "before": [f"before:{filters.before}"] if filters.before else [],
    }
    return {name: ", ".join(each) for name, each in texts.items() if each}


def _missing_tag(reader: Reader, tag: str) -> str:
    """A sentence that says that no document has a tag; "" if one has."""
    tree = graph.tags.tag_tree(reader, tag, limit=1)
    return (
        ""
        if tree.tags
        else _with_nearest(
            engine_text("No document has the tag '{tag}'.", tag=one_line(tag)), tree.nearest
        )
    )


def _missing_folder(reader: Reader, path: str) -> str:
    """A sentence that says that no document lies below a folder; "" if one does."""
    inside = reader.select(Filters(path=path))
    if reader.documents.below(None, selection=inside, limit=1):
        return ""
    folders: dict[str, None] = {}
    for each in reader.collections.all():
        inside_it = reader.documents.entries(each.name, "", MOST_FOLDERS)
        lead = f"{each.name}/" if "/" in path else ""
        names = [f"{lead}{name[:-1]}" for name in inside_it if name.endswith("/")]
        folders |= dict.fromkeys([*names, each.name])
    nearest = process.extract(path, list(folders), scorer=fuzz.WRatio, score_cutoff=70, limit=3)
    sentence = engine_text("No document lies below '{folder}'.", folder=one_line(path))
    return _with_nearest(sentence, [name for name, _, _ in nearest])


def _missing_value(reader: Reader, condition: PropertyCondition) -> str:
    """
    A sentence that says that no document has a value of a property; "" if one has.

    It is "" for a property that no document has, too, which has a notice of its own.
    """
    if not reader.properties.existing_keys([condition.key]):
        return ""
    selection = reader.select(Filters(), either=[[condition]])
    if reader.documents.below(None, selection=selection, limit=1):
        return ""
    value = condition.ranges[0].low if len(condition.ranges) == 1 else None
    if not isinstance(value, str):  # a number, a date or one of several
        return engine_text("No document has such a value of '{key}'.", key=one_line(condition.key))
    listed = reader.properties.values(reader.all_documents, condition.key, limit=MOST_VALUES)
    values = [each.value for each in listed]
    nearest = process.extract(
        value, values, scorer=fuzz.WRatio, processor=fold, score_cutoff=70, limit=3
    )
    sentence = engine_text(
        "No document has the value '{value}' of '{key}'.",
        value=one_line(value),
        key=one_line(condition.key),
    )
    return _with_nearest(sentence, [name for name, _, _ in nearest])


def _with_nearest(sentence: str, nearest: Sequence[str]) -> str:
    if not nearest:
        return sentence
    names = ", ".join(map(one_line, nearest))
    return sentences(sentence, engine_text("Did you mean: {names}", names=names))


def _joined(sentence: str, notice: str | None) -> str:
    return engine_text("{first}\n{others}", first=sentence, others=notice) if notice else sentence


def suggest(
    reader: Reader, query: str, words: QueryWords, selection: Selection, *, mistakes: int = 2
) -> str | None:
    """
    The query with words of the index in place of those that no document holds.

    None if no word is spelled like any of them. What stands in quotes stays.

    Args:
        mistakes: A long word may have so many; a short one may have one.
    """
    absent = [word for word, weighed in words.weights.items() if not weighed.documents]
    if not absent or len(query) > LONGEST_QUERY:
        return None
    corrected = query
    for typed, near in _near(reader, query, absent, selection, mistakes):
        if near is not None:
            corrected = _replaced(corrected, typed, near)
    return None if corrected == query else corrected


def _near(
    reader: Reader, query: str, absent: Sequence[str], selection: Selection, mistakes: int
) -> Iterator[tuple[str, str | None]]:
    """Words and runs of Chinese of a query, each with what is spelled like it, if anything is."""
    for word in [word for word in absent if _is_word(word)][:MOST_WORDS]:
        allowed = 1 if len(word) <= _SHORT else mistakes
        yield word, _nearest_word(reader, word, selection, allowed)
    for run in [match[0] for match in cjk_runs(query)][:MOST_WORDS]:
        if len(run) <= LONGEST_RUN and any(pair in run for pair in absent):
            yield run, _nearest_run(reader, run, selection)


def _is_word(word: str) -> bool:
    return SHORTEST <= len(word) <= LONGEST and word.isalpha() and not is_cjk(word)


def _replaced(query: str, word: str, other: str) -> str:
    """The query with a word replaced outside of quotes."""
    border = "" if is_cjk(word) else r"\b"
    pattern = re.compile(rf"{border}{re.escape(word)}{border}", re.IGNORECASE)
    parts, end = [], 0
    for quoted in _QUOTED.finditer(query):
        parts += [pattern.sub(other, query[end : quoted.start()]), quoted[0]]
        end = quoted.end()
    return "".join([*parts, pattern.sub(other, query[end:])])


def _nearest_word(reader: Reader, word: str, selection: Selection, allowed: int) -> str | None:
    """
    The word of the selected documents that is spelled most like ``word``; None if none is.

    Args:
        allowed: In how many letters it may differ; two that are swapped count as one.
    """
    word = segment.fold(word)
    terms: dict[str, int] = {}
    for first in dict.fromkeys(word[:2]):  # the first letters may be swapped
        terms |= reader.full_text.terms(first, MOST_TERMS)
    # The index has stems: "vacat" of "vacation". So they are a little further away.
    nearest: dict[str, int] = {}
    for form in dict.fromkeys((word, stem(word), word[:-3] if len(word) > 6 else word)):
        for term, distance, _ in process.extract(
            form, list(terms), scorer=OSA.distance, score_cutoff=allowed + 1, limit=3 * _NEAREST
        ):
            nearest[term] = min(int(distance), nearest.get(term, allowed + 1))
    best: tuple[int, int, str] | None = None
    for term in sorted(nearest, key=lambda term: (nearest[term], -terms[term], term))[:_NEAREST]:
        for spelled in _spellings(reader, term, selection):
            near = int(OSA.distance(word, spelled)), -terms[term], spelled
            if 0 < near[0] <= allowed and (best is None or near < best):
                best = near
    return None if best is None else best[2]


def _spellings(reader: Reader, term: str, selection: Selection) -> Iterator[str]:
    """The words with a stem in a selected document that holds it."""
    for page in _holding(reader, term, selection, _HOLDING):
        text = " ".join([*page.names, page.text[:MOST_TEXT]])
        for word in dict.fromkeys(_WORD.findall(segment.fold(text))):
            if word[: SHORTEST - 1] == term[: SHORTEST - 1]:
                yield word


def _holding(
    reader: Reader, literal: str, selection: Selection, limit: int = 1
) -> list[FullDocument]:
    """The selected documents that hold a literal best; none without one."""
    expression = phrase(literal)
    if expression is None:
        return []
    matches = reader.full_text.search(expression, selection, limit)
    if not matches:  # a stem may have a stem: "refriger" of "refrigerator" has "refrig"
        matches = reader.full_text.search(expression._replace(prefix=True), selection, limit)
    return reader.documents.full([each for each, _ in matches])


def _nearest_run(reader: Reader, run: str, selection: Selection) -> str | None:
    """A run of Chinese characters with one replaced, so that all its pairs stand in documents."""

    def count(pair: str) -> int:
        expression = phrase(pair)
        return 0 if expression is None else reader.full_text.count(expression, 1_000)

    absent = [not count(first + second) for first, second in pairwise(run)]
    for position in range(1, len(run)):
        # A wrong character makes the pair before it wrong, and the pair after it.
        if not all(absent[position - 1 : position + 1]) or sum(absent) > 2:
            continue
        before, after = run[position - 1], run[position + 1 : position + 2]
        pairs = reader.full_text.terms(before, MOST_TERMS)
        likely = sorted((-documents, pair) for pair, documents in pairs.items() if len(pair) == 2)
        for _, pair in likely[: _NEAREST * 4]:
            corrected = run[:position] + pair[1] + run[position + 1 :]
            if (not after or count(pair[1] + after)) and _holding(reader, corrected, selection):
                return corrected
    return None
