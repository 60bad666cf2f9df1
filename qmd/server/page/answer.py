"""The HTML of an answer: its Markdown, with its citations as links and marks of what has none."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import quote

from markupsafe import Markup, escape

from qmd.server.page.ask_turn import TurnView
from qmd.server.page.links import note_address

CitedLines = tuple[str, int, int, bool]
"""The document, first line and last line of a citation, and whether they support its sentence."""


class Words(Protocol):
    """Texts of the view in one language."""

    def __call__(self, name: str, /, **values: object) -> str: ...


def sources_of(citations: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """
    The citations of an answer, equal ones once, each with its ``number`` from 1, whether it is
    ``ok``, and the ``address`` that shows its lines.
    """
    sources: dict[CitedLines, dict[str, Any]] = {}
    for citation in citations:
        file, first, last, ok = cited = _cited_lines(citation)
        address = _address(file, first, last, citation.get("anchor"))
        shown = {"number": len(sources) + 1, "ok": ok, "address": address}
        sources.setdefault(cited, {"place": None, **citation, **shown})
    return list(sources.values())


def answer_html(turn: TurnView, markdown: Callable[[str], Markup], words: Words) -> Markup:
    """The answer of a turn as HTML; `TurnView.sources` are linked where they are cited."""
    marks = [*_citation_marks(turn, words), *_unsupported_marks(turn, words)]
    return render_with_marks(turn.answer, marks, markdown)


def _citation_marks(turn: TurnView, words: Words) -> Iterator[Mark]:
    sources = {_cited_lines(source): source for source in turn.sources}
    links: dict[tuple[int, int], list[Markup]] = {}
    for citation in turn.citations:
        # Several citations in one bracket share its place.
        links.setdefault((citation["start"], citation["end"]), []).append(
            _link(turn, sources[_cited_lines(citation)], words)
        )
    for (start, end), at_place in links.items():
        yield Mark(start, end, Markup("").join(at_place))


def _link(turn: TurnView, source: Mapping[str, Any], words: Words) -> Markup:
    label = words("ask.source_number", n=source["number"])
    text = str(source["number"])
    if not source["ok"]:
        missing = words("ask.not_in_source")
        text, label = f"{text} · {missing}", f"{label}: {missing}"
    return Markup('<a class="{}" href="{}" data-source="{}" aria-label="{}">{}</a>').format(
        "cite" if source["ok"] else "cite missing",
        source["address"],
        f"{turn.id}-source-{source['number']}",
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
        # In a row of a table the mark belongs into the last cell.
        end = start + len(sentence.rstrip(" \t\r\n|"))
        if any(start <= citation["start"] < position for citation in turn.citations):
            continue  # the link says so
        flag = Markup('<span class="unsupported" title="{}">{}</span>')
        yield Mark(end, end, flag.format(words("ask.unsupported_title"), words("ask.unsupported")))


def _cited_lines(citation: Mapping[str, Any]) -> CitedLines:
    is_ok = citation["status"] == "ok"
    return citation["file"], citation["from_line"], citation["to_line"], is_ok


def _address(file: str, first: int, last: int, anchor: str | None) -> str:
    """Where the cited lines are shown; a viewer knows the fragment, too."""
    lines = str(first) if first == last else f"{first}-{last}"
    fragment = f"#{quote(anchor, safe='=')}" if anchor else ""
    return f"{note_address(file)}?line={lines}{fragment}"


# --- marks in Markdown ----------------------------------------------------------------
# A mark's place is a position in the Markdown of a model, but only the rendered HTML can take it.
# So each mark stands in the Markdown as a random word, which no text can contain and which Markdown
# leaves as it is, and is put in its place in the sanitised HTML.


_TAG = re.compile(r"<(/?)([a-zA-Z][\w-]*)(?:[^<>\"']|\"[^\"]*\"|'[^']*')*>")


@dataclass(frozen=True, slots=True)
class Mark:
    """
    HTML that replaces ``text[start:end]``; nothing is replaced if both are the same.

    ``html`` may hold a link.
    """

    start: int
    end: int
    html: Markup


def render_with_marks(
    text: str, marks: Iterable[Mark], to_html: Callable[[str], str], *, nonce: str | None = None
) -> Markup:
    """
    Render Markdown, with ``marks`` in it; of marks that overlap the first counts.

    A mark that would stand in an attribute or within a link is left out; the text that it should
    have replaced stays.

    Args:
        to_html: Returns safe HTML for Markdown; double quotes enclose its attributes.
        nonce: The random word, for tests.
    """
    nonce = nonce or f"m{secrets.token_hex(12)}"
    pieces: list[str] = []
    placed: list[tuple[Mark, str]] = []
    position = 0
    for mark in sorted(marks, key=lambda mark: (mark.start, mark.end)):
        if mark.start < position:
            continue
        pieces += [text[position : mark.start], f"{nonce}x{len(placed)}x"]
        placed.append((mark, text[mark.start : mark.end]))
        position = mark.end
    pieces.append(text[position:])
    html = to_html("".join(pieces))
    token = re.compile(rf"{nonce}x(\d+)x")

    def mark_html(match: re.Match[str]) -> str:
        return str(placed[int(match[1])][0].html)

    def original(match: re.Match[str]) -> str:
        return str(escape(placed[int(match[1])][1]))

    result: list[str] = []
    position = links = 0
    for tag in _TAG.finditer(html):
        between = html[position : tag.start()]
        result += [token.sub(original if links else mark_html, between)]
        result += [token.sub(original, tag[0])]
        position = tag.end()
        if tag[2].lower() == "a":
            links += -1 if tag[1] else 1
    result.append(token.sub(mark_html, html[position:]))
    return Markup("".join(result))  # noqa: S704 - `to_html` has made it safe, and marks are ours
