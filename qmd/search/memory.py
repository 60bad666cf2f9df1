"""Recalls the facts that notes state, and what stands around a note."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse.lines import split_lines
from qmd.parse.segment import fold, segment
from qmd.search import lookup, query
from qmd.search.graph.links import links_to, resolved_links
from qmd.store.sql.documents import NAME_KINDS
from qmd.store.sql.properties import DatedObservation, ObservationFilter
from qmd.values import Filters
from qmd.values.documents import ContextNote, NoteContext, RecalledFact, RecalledFacts
from qmd.values.text import estimate_tokens, fitting_items

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.filters import Selection
    from qmd.values import DocumentInfo


#: Documents whose facts are compared with a query.
MAX_DOCUMENTS = 20
#: Facts that are compared; of more, the newest.
MAX_COMPARED = 5000
#: The part of a query's words, by their weight, that a fact has if its note is not near.
LEAST_SHARE = 0.3
#: The chance to answer the query that a document has whose facts are near it without its words.
LEAST_RELEVANCE = 0.05
#: Words of a query that count.
MAX_TERMS = 64
#: Facts of one subject and category that stand together though only one of them fits the query.
MAX_TOGETHER = 5
#: Notes of the same name.
_MAX_SUBJECTS = 50
_LEAST_STEM = 4  # letters that a word shares with another form of it


class FactRequest(NamedTuple):
    """
    Which facts are recalled.

    Attributes:
        about: The name or the title of the notes that state them; None for any.
        category, tags: As they are written; a tag stands for those below it.
        since: A span such as ``7d`` or a date; None for any time.
        expired: Whether facts that hold no more are recalled, too.
        collection: None for all.
        today: ISO 8601.
    """

    about: str | None
    category: str | None
    tags: Sequence[str]
    since: str | None
    expired: bool
    collection: str | None
    today: str


def recalled(
    reader: Reader,
    which_facts: FactRequest,
    *,
    query: str | None,
    files: Sequence[str],
    limit: int,
) -> RecalledFacts:
    """
    The facts that fit a query best, or without one the newest.

    Args:
        files: ``collection/path`` of the documents with facts that fit the query best, best first;
            not needed with ``about``.

    Raises:
        CollectionNotFoundError: There is no such collection.
        DocumentNotFoundError: No note has the name ``about``.
        InputError: ``since`` is no time.
    """
    filters = Filters(collections=(which_facts.collection,) if which_facts.collection else ())
    selection = reader.select(filters)
    which = _observation_filter(reader, which_facts, selection)
    if query is None or not query.strip():
        newest = reader.observations.listed(selection, which, limit=limit)
        return RecalledFacts(
            _facts(reader, _together(newest), which_facts.today),
            reader.observations.count(selection, which),
        )
    candidates = reader.observations.listed(selection, which, limit=MAX_COMPARED)
    near: Sequence[int] = ()
    if which.documents is None:
        near = _documents(reader, files)
        if len(candidates) == MAX_COMPARED:  # there are more, and some of those may fit better
            listed = {(each.document_id, each.observation.line) for each in candidates}
            more = reader.observations.listed(
                selection, which._replace(documents=near), limit=MAX_COMPARED
            )
            candidates += [
                each for each in more if (each.document_id, each.observation.line) not in listed
            ]
    ranked = _ranked(candidates, query, near, _titles(reader, candidates))
    return RecalledFacts(_facts(reader, ranked[:limit], which_facts.today), len(ranked))


def _observation_filter(
    reader: Reader, which_facts: FactRequest, selection: Selection
) -> ObservationFilter:
    return ObservationFilter(
        None if which_facts.expired else which_facts.today,
        folded_category(which_facts.category) if which_facts.category else None,
        [tag.strip().lstrip("#").strip("/").lower() for tag in which_facts.tags],
        None if not which_facts.since else query.filter_date(which_facts.since)[:10],
        None if which_facts.about is None else _subject(reader, which_facts.about, selection),
    )


def ids_named(reader: Reader, about: str, selection: Selection) -> list[int]:
    """
    The ids of the documents that a subject means: those with this title, alias or file name.

    A path or a docid means one document, as everywhere.

    Raises:
        AmbiguousNameError: It is the end of several paths.
    """
    name = about.strip().removeprefix("[[").removesuffix("]]").strip()
    ids = {
        document_id
        for kind in NAME_KINDS
        for document_id in reader.documents.named(kind, name, selection, _MAX_SUBJECTS)
    }
    if not ids and (document := lookup.resolve.find_document(reader, about)) is not None:
        ids = {document.id}
    return sorted(ids)


def others(
    reader: Reader, document: DocumentInfo, *, category: str, but: int, today: str
) -> tuple[RecalledFact, ...]:
    """The other facts of a document and category that hold, the newest first, but for one line."""
    which = ObservationFilter(today, category, documents=[document.id])
    observations = reader.observations.listed(reader.all_documents, which, limit=MAX_TOGETHER + 1)
    rest = [each for each in observations if each.observation.line != but][:MAX_TOGETHER]
    return _facts(reader, rest, today)


def folded_category(category: str) -> str:
    """A category as the store has it."""
    return " ".join(category.strip().strip("[]").lower().split())


def _titles(reader: Reader, facts: Sequence[DatedObservation]) -> dict[int, str]:
    """The titles of the documents that state some facts, by their ids."""
    ids = sorted({each.document_id for each in facts})
    return {each.id: each.title for each in reader.documents.by_ids(ids)}


def _subject(reader: Reader, about: str, selection: Selection) -> list[int]:
    """As `ids_named`. Raises DocumentNotFoundError: There is none."""
    ids = ids_named(reader, about, selection)
    return ids or [lookup.resolve.resolve(reader, about).document.id]


def _documents(reader: Reader, files: Sequence[str]) -> list[int]:
    """The ids of documents, in this order."""
    places = (file.partition("/") for file in files)
    infos = (reader.documents.by_path(collection, path) for collection, _, path in places)
    return [each.id for each in infos if each is not None]


def _ranked(
    candidates: Sequence[DatedObservation],
    query: str,
    near: Sequence[int],
    titles: Mapping[int, str],
) -> list[DatedObservation]:
    """
    Facts by how many words of the query they have, rare ones counting more, and by their document.

    The title of the document is what a fact is about, so its words are words of the fact.

    Args:
        near: The documents that fit the query, the best first. Facts of others are left out unless
            they have `LEAST_SHARE` of its words.
    """
    terms = set(_words(query)[:MAX_TERMS])
    has = []
    for each in candidates:
        fact = each.observation
        title = titles.get(each.document_id, "")
        words = set(_words(f"{title} {fact.category} {fact.text} {fact.context}"))
        has.append({term for term in terms if _has(term, words)})
    counts = Counter(term for each in has for term in each)
    weights = {term: math.log(1 + len(candidates) / counts[term]) for term in counts}
    full = sum(weights.values()) or 1.0
    place = {document_id: number for number, document_id in enumerate(near)}
    scores: dict[int, float] = {}
    for number, (each, shared) in enumerate(zip(candidates, has, strict=True)):
        share = sum(weights[term] for term in shared) / full
        if each.document_id in place:
            scores[number] = share + 0.5 / (1 + place[each.document_id] / 5)
        elif share >= LEAST_SHARE:
            scores[number] = share
    order = sorted(scores, key=lambda number: -scores[number])
    return _together([candidates[number] for number in order])


def _together(facts: Sequence[DatedObservation]) -> list[DatedObservation]:
    """
    Facts in their order, but those of a subject and category follow the first, the newest first.

    Of many, `MAX_TOGETHER` do, and the others stay where they are.
    """
    groups: dict[tuple[int, str], list[DatedObservation]] = {}
    for each in facts:
        group = groups.setdefault((each.document_id, each.observation.category), [])
        if len(group) < MAX_TOGETHER:
            group.append(each)
    ordered: dict[tuple[int, int], DatedObservation] = {}
    for each in facts:
        group = groups[each.document_id, each.observation.category]
        if each is group[0]:
            group = sorted(group, key=lambda one: (one.day, one.observation.line), reverse=True)
        else:
            group = [each]
        for one in group:
            ordered.setdefault((one.document_id, one.observation.line), one)
    return list(ordered.values())


def _facts(
    reader: Reader, observations: Sequence[DatedObservation], today: str
) -> tuple[RecalledFact, ...]:
    ids = list(dict.fromkeys(each.document_id for each in observations))
    infos = {each.id: each for each in reader.documents.by_ids(ids)}
    newest = dict(_newest(reader, observations, today))
    facts = []
    for each in observations:
        fact, info = each.observation, infos[each.document_id]
        first = newest.get((each.document_id, fact.category))
        is_older = first is not None and first.observation.line != fact.line
        expired = fact.expires is not None and fact.expires < today
        newer = None
        if is_older and first is not None and not expired and first.observation.text != fact.text:
            newer = f"{info.file}:{first.observation.line}"
        facts.append(
            RecalledFact(
                info,
                fact.line,
                fact.category,
                fact.text,
                each.day,
                until=fact.expires,
                expired=expired,
                newer=newer,
                context=fact.context,
                tags=fact.tags,
            )
        )
    return tuple(facts)


def _newest(
    reader: Reader, observations: Iterable[DatedObservation], today: str
) -> Iterator[tuple[tuple[int, str], DatedObservation]]:
    """The newest fact that holds of each subject and category among some facts."""
    for document_id, category in dict.fromkeys(
        (each.document_id, each.observation.category) for each in observations
    ):
        which = ObservationFilter(today, category, documents=[document_id])
        for first in reader.observations.listed(reader.all_documents, which, limit=1):
            yield (document_id, category), first


def _words(text: str) -> list[str]:
    return segment(fold(text)).split()


def _has(term: str, words: set[str]) -> bool:
    """Whether one of the words is the term, or another form of it, such as its plural."""
    if term in words:
        return True
    if len(term) < _LEAST_STEM or not term.isascii():
        return False
    stem = term[: max(_LEAST_STEM, len(term) - 2)]
    return any(word.startswith(stem) and len(word) <= len(term) + 3 for word in words)


#: Most notes near the note that are looked at, and most links of one note.
MAX_NOTES = 200
MAX_LINKS = 2000
#: The part of the budget for the note itself; what it does not take is for the others.
_OWN_SHARE = 0.6
#: The names of a near note and of its relations take about this many tokens beside its text.
_NAMES = 30
#: A near note gets as many tokens for its text, or none if fewer are left.
_MOST_TEXT, _LEAST_TEXT = 400, 40


class _Near(NamedTuple):
    """A document near the note, how both are linked, and over how many links."""

    document_id: int
    relations: tuple[str, ...]
    steps: int


def context_of(
    reader: Reader, document: DocumentInfo, *, max_tokens: int, steps: int, today: str
) -> NoteContext:
    """
    The text of a note, and the beginnings of the notes that it links to or that link to it.

    Args:
        steps: How many links away a note may be.
        today: ISO 8601; facts that have expired by then are left out.
    """
    lines = list(_lines(reader, document.id, today))
    shown_lines, _ = fitting_items(
        lines, lambda line: estimate_tokens(f"{line[1]}\n"), max_tokens * _OWN_SHARE
    )
    text = _joined(shown_lines)
    near = list(_near(reader, document, steps))
    infos = reader.documents.by_ids([each.document_id for each in near])
    room = max_tokens - estimate_tokens(text) - _NAMES
    notes: list[ContextNote] = []
    for number, (each, info) in enumerate(zip(near, infos, strict=True)):
        names = _NAMES + estimate_tokens(f"{info.title} {info.file}")
        if names > room:
            break
        # An equal part of what is left, but not so little that it says nothing.
        part = min(_MOST_TEXT, max(_LEAST_TEXT, room / (len(near) - number)))
        beginning = ""
        if names + part <= room:
            shown, _ = fitting_items(
                _lines(reader, info.id, today),
                lambda line: estimate_tokens(f"{line[1]}\n"),
                part,
            )
            beginning = _joined(shown)
        notes.append(ContextNote(info.file, info.title, each.relations, each.steps, beginning))
        room -= names + estimate_tokens(beginning)
    return NoteContext(
        document.file,
        document.title,
        document.docid,
        text,
        tuple(notes),
        next_line=lines[len(shown_lines)][0] if len(shown_lines) < len(lines) else None,
        left_out=len(near) - len(notes),
    )


def _near(reader: Reader, document: DocumentInfo, steps: int) -> Iterator[_Near]:
    """At most `MAX_NOTES`, the nearest first."""
    seen = {document.id}
    border = [document]
    for step in range(1, steps + 1):
        linked: dict[int, Counter[str]] = {}
        for each in border:
            for document_id, relation in _linked(reader, each):
                if document_id not in seen:
                    linked.setdefault(document_id, Counter())[relation] += 1
        # Those with a relation first, then those with most links.
        ordered = sorted(
            linked, key=lambda one: (not _is_related(linked[one]), -linked[one].total(), one)
        )
        ordered = ordered[: MAX_NOTES - len(seen) + 1]
        seen.update(ordered)
        for document_id in ordered:
            yield _Near(document_id, tuple(sorted(linked[document_id], key=_plain_last)), step)
        border = reader.documents.by_ids(ordered)


def _linked(reader: Reader, document: DocumentInfo) -> Iterator[tuple[int, str]]:
    """The documents that a note links to, and those that link to it, with what relates them."""
    links = reader.links.of_documents([document.id])[:MAX_LINKS]
    for link, target in resolved_links(reader, document.collection, links):
        if target.document_id is not None:
            yield target.document_id, f"{link.relation or ''} →".strip()
    for link in links_to(reader, document)[:MAX_LINKS]:
        yield link.document_id, f"← {link.relation or ''}".strip()


def _is_related(relations: Iterable[str]) -> bool:
    return any(len(each) > 1 for each in relations)


def _plain_last(relation: str) -> tuple[bool, str]:
    return len(relation) == 1, relation


def _lines(reader: Reader, document_id: int, today: str) -> Iterator[tuple[int, str]]:
    """The lines after the frontmatter with their numbers, without facts that hold no more."""
    [full] = reader.documents.full([document_id])
    expired = reader.observations.expired_lines(document_id, today)
    first = full.text.count("\n", 0, full.body_start) + 1
    begun = False
    for number, line in enumerate(split_lines(full.text[full.body_start :]), start=first):
        begun = begun or bool(line.strip())
        if begun and number not in expired:
            yield number, line


def _joined(lines: Iterable[tuple[int, str]]) -> str:
    return "\n".join(line for _, line in lines).rstrip()
