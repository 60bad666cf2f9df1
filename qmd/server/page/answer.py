"""The HTML of an answer: its Markdown, with its citations as links and marks of what has none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from markupsafe import Markup

from qmd.server.page.ask_turn import Source, TurnView
from qmd.server.page.links import note_address
from qmd.server.page.marked_text import Mark, render_with_marks

_CITATION = re.compile(r"\[([^\[\]\n]{1,1000}):L?(\d{1,9})(?:\s?[-–—]\s?L?(\d{1,9}))?\]")


class Words(Protocol):
    """Texts of the view in one language."""

    def __call__(self, name: str, **values: object) -> str: ...


def sources_of(citations: Sequence[Mapping[str, Any]]) -> list[Source]:
    """The citations of an answer, numbered from 1 in their order; equal ones once."""
    sources: dict[tuple[str, int, int], Source] = {}
    for citation in citations:
        file, first, last = citation["file"], citation["from_line"], citation["to_line"]
        sources.setdefault(
            (file, first, last),
            Source(
                number=len(sources) + 1,
                file=file,
                first=first,
                last=last,
                quote=citation.get("quote") or "",
                ok=citation["status"] == "ok",
                reason=citation.get("reason") or "",
                address=_note_address(file, first, last),
            ),
        )
    return list(sources.values())


def answer_html(turn: TurnView, markdown: Callable[[str], Markup], words: Words) -> Markup:
    """The answer of a turn as HTML; `TurnView.sources` are linked where they are cited."""
    marks = [*_citation_marks(turn, words), *_unsupported_marks(turn, words)]
    return render_with_marks(turn.answer, marks, markdown)


def _citation_marks(turn: TurnView, words: Words) -> Iterator[Mark]:
    for match in _CITATION.finditer(turn.answer):
        first = int(match[2])
        last = int(match[3] or first)
        source = next(
            (
                source
                for source in turn.sources
                if (source.first, source.last) == (first, last)
                and f"/{source.file}".endswith(f"/{match[1].strip()}")
            ),
            None,
        )
        if source is not None:
            yield Mark(match.start(), match.end(), _link(turn, source, words))


def _link(turn: TurnView, source: Source, words: Words) -> Markup:
    label = words("ask.source_number", n=source.number)
    text = str(source.number)
    if not source.ok:
        missing = words("ask.not_in_source")
        text, label = f"{text} · {missing}", f"{label}: {missing}"
    return Markup('<a class="{}" href="{}" data-source="{}" aria-label="{}">{}</a>').format(
        "cite" if source.ok else "cite missing",
        source.address,
        f"{turn.id}-source-{source.number}",
        label,
        text,
    )


def _unsupported_marks(turn: TurnView, words: Words) -> Iterator[Mark]:
    position = 0
    for sentence in turn.unsupported:
        start = turn.answer.find(sentence, position)
        if start < 0:
            continue
        position = start + len(sentence)
        end = start + len(sentence.rstrip())
        flag = Markup('<span class="unsupported" title="{}">{}</span>')
        yield Mark(end, end, flag.format(words("ask.unsupported_title"), words("ask.unsupported")))


def _note_address(file: str, first: int, last: int) -> str:
    lines = str(first) if first == last else f"{first}-{last}"
    return f"{note_address(file)}?line={lines}"
