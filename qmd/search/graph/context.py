"""A note with what stands around it, within a budget of tokens: what a model reads first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse.lines import split_lines
from qmd.search.graph.links import links_to, resolved
from qmd.values.memory import ContextNote, NoteContext
from qmd.values.tokens import estimate_tokens, fit

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentInfo

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
    shown_lines, _ = fit(
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
            shown, _ = fit(
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
    for link, target in resolved(reader, document.collection, links):
        if target.document_id is not None:
            yield target.document_id, f"{link.relation or ''} →".strip()
    for link in links_to(reader, document)[:MAX_LINKS]:
        yield link.document_id, f"← {link.relation or ''}".strip()


def _is_related(relations: Iterable[str]) -> bool:
    return any(len(each) > 1 for each in relations)


def _plain_last(relation: str) -> tuple[bool, str]:
    return len(relation) == 1, relation


def _lines(reader: Reader, document_id: int, today: str) -> Iterator[tuple[int, str]]:
    """The lines behind the frontmatter with their numbers, without facts that hold no more."""
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
