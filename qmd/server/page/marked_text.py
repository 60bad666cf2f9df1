"""
Puts HTML of the page into Markdown of a model: marks at places of its text.

A mark's place is a position in the Markdown, but only the rendered HTML can take it. So each mark
stands in the Markdown as a random word, which no text can contain and which Markdown leaves as it
is, and is put in its place in the sanitised HTML.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from markupsafe import Markup, escape

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
