"""
Rewrites the links of one note or canvas for a move, so that each means the file that it meant.

Only links that would lose their target are changed, and of these only the path: the kind, the
shown text, the heading and the block stay. Of a canvas of Obsidian these are the files that its
cards show, and the cards' text; all other characters of the JSON stay as they are. Source:
https://jsoncanvas.org/spec/1.0/
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from qmd.files.moves.move import Move, is_relative, written_path
from qmd.parse import frontmatter
from qmd.parse.formats import CANVAS, MARKDOWN, FileFormat
from qmd.parse.links import LinkSpan, link_spans
from qmd.values.names import fold, link_path

NOT_IN_THIS_FORMAT = "links in files of this format are not rewritten"
NO_SPELLING = "its new name cannot stand in such a link"
OTHER_COLLECTION = "links do not lead into another collection"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")


class LinkInText(NamedTuple):
    """
    A link that loses its target.

    Attributes:
        line: From 1.
        link: The whole link as written before.
        reason: Why it could not be rewritten; "" if it was.
    """

    line: int
    link: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Rewritten:
    """
    The new text of a note.

    Attributes:
        changed: The links that were rewritten, in the order of the text.
        left: Those that lose their target all the same.
    """

    text: str
    changed: tuple[LinkInText, ...] = ()
    left: tuple[LinkInText, ...] = ()


class _NewPath(NamedTuple):
    """A new text for the characters ``[start, end)``; None if there is none, with the reason."""

    span: LinkSpan
    text: str | None
    reason: str = ""


def rewritten(text: str, move: Move, source: str, source_after: str | None = None) -> Rewritten:
    """
    The text of a note after a move; the time is linear.

    Args:
        source: The note's path before the move.
        source_after: Its path after the move, if the note is the one that is moved.
    """
    after = source if source_after is None else source_after
    plan = [
        new
        for span in link_spans(text)
        if (new := _new_path(text, span, move, source, after)) is not None
    ]
    if not plan:
        return Rewritten(text)
    new_text = _replaced(text, plan)
    if not _is_intact(text, new_text, plan, move, source, after):
        # A name can hold what ends the link where it stands, such as a quote in a property.
        body_start = frontmatter.split(text).body_start
        plan = [new if _fits_quotes(text, new, body_start) else _left(new) for new in plan]
        new_text = _replaced(text, plan)
        if not _is_intact(text, new_text, plan, move, source, after):
            plan, new_text = [_left(new) for new in plan], text
    return Rewritten(
        new_text,
        tuple(_changed(text, plan)),
        tuple(
            LinkInText(new.span.link.line, text[new.span.start : new.span.end], new.reason)
            for new in plan
            if new.text is None
        ),
    )


def _new_path(text: str, span: LinkSpan, move: Move, source: str, after: str) -> _NewPath | None:
    """None if the link stays as it is."""
    kind = span.link.kind
    written = text[span.path_start : span.path_end]
    target = move.meaning_before(kind, span.link.target, source)
    if target is None:
        return None
    goal = move.place_after(target)
    was_relative = kind in ("link", "image") and is_relative(
        link_path(kind, span.link.target) or "", source, target
    )
    present = move.meaning_after(kind, span.link.target, after)
    if goal is not None and present == goal:
        stays_relative = is_relative(link_path(kind, span.link.target) or "", after, goal)
        if move.link_format is not None or not was_relative or stays_relative:
            return None
    if goal is None:
        return _NewPath(span, None, OTHER_COLLECTION)
    path = written_path(move, kind, written, after, goal, span.form, was_relative=was_relative)
    if path == written:
        return None
    return _NewPath(span, path, NO_SPELLING if path is None else "")


def _replaced(text: str, plan: list[_NewPath]) -> str:
    """Links that refer to one definition have one path, which is replaced once."""
    parts: list[str] = []
    position = 0
    places = {
        (new.span.path_start, new.span.path_end): new.text for new in plan if new.text is not None
    }
    for (start, end), path in sorted(places.items()):
        parts += [text[position:start], path]
        position = end
    return "".join([*parts, text[position:]])


def _is_intact(
    text: str, new_text: str, plan: list[_NewPath], move: Move, source: str, after: str
) -> bool:
    """Whether the new text has the same links as before, and each leads where it should."""
    spans, new_spans = link_spans(text), link_spans(new_text)
    if len(spans) != len(new_spans):
        return False
    planned = {new.span for new in plan if new.text is not None}
    for span, new in zip(spans, new_spans, strict=True):
        one, other = span.link, new.link
        if (one.kind, one.heading, one.block) != (other.kind, other.heading, other.block):
            return False
        if span not in planned:
            if one.target != other.target:
                return False
            continue
        target = move.meaning_before(one.kind, one.target, source)
        goal = None if target is None else move.place_after(target)
        if move.meaning_after(other.kind, other.target, after) != goal:
            return False
    return True


def _fits_quotes(text: str, new: _NewPath, body_start: int) -> bool:
    """Whether a new path holds no quote like those around it, if it stands in a property."""
    position = new.span.start - 1
    if new.text is None or position >= body_start:
        return True
    while position > 0 and text[position] in " \t!":
        position -= 1
    return text[position] not in new.text


def _left(new: _NewPath) -> _NewPath:
    return _NewPath(new.span, None, new.reason or NO_SPELLING)


def _changed(text: str, plan: list[_NewPath]) -> Iterator[LinkInText]:
    for new in plan:
        if new.text is None:
            continue
        span = new.span
        whole = text[span.start : span.end]
        if not span.start <= span.path_start <= span.path_end <= span.end:
            whole = text[span.path_start : span.path_end]  # it stands in a definition
        yield LinkInText(span.link.line, whole)


def rewritten_canvas(
    text: str, move: Move, source: str, source_after: str | None = None
) -> Rewritten:
    """As `rewritten`. What is no JSON has no links."""
    if not _is_json(text):
        return Rewritten(text)
    parts: list[str] = []
    changed: list[LinkInText] = []
    left: list[LinkInText] = []
    position, line, key = 0, 1, ""
    for match in _STRING.finditer(text):
        if _COLON.match(text, match.end()):
            key = match.group()
            continue
        if key in ('"file"', '"text"'):
            line += text.count("\n", position, match.start())
            value = _value(match.group())
            if key == '"file"':
                card = _card_of_file(value, move)
            else:
                card = rewritten(value, move, source, source_after)
            changed += [link._replace(line=line) for link in card.changed]
            left += [link._replace(line=line) for link in card.left]
            new = match.group() if card.text == value else _json(card.text, match.group())
            parts += [text[position : match.start()], new]
            line += match.group().count("\n")
            position = match.end()
        key = ""
    new_text = "".join([*parts, text[position:]])
    if not _is_json(new_text):
        left += [link._replace(reason=NO_SPELLING) for link in changed]
        return Rewritten(text, (), tuple(left))
    return Rewritten(new_text, tuple(changed), tuple(left))


def _card_of_file(path: str, move: Move) -> Rewritten:
    """A card that shows a file names it by its whole path."""
    if move.old is None or fold(path) != fold(move.old):
        return Rewritten(path)
    if move.before.find(f"/{path}", "", "embed") != move.old:
        return Rewritten(path)  # another file, whose path differs in case
    if move.new is None:
        return Rewritten(path, (), (LinkInText(0, path, OTHER_COLLECTION),))
    return Rewritten(move.new, (LinkInText(0, path),))


def _value(string: str) -> str:
    value = json.loads(string, strict=False)
    assert isinstance(value, str)
    return value


def _json(value: str, before: str) -> str:
    """The value as JSON; other scripts are escaped if they were before."""
    return json.dumps(value, ensure_ascii=before.isascii() and "\\u" in before)


def _is_json(text: str) -> bool:
    try:
        json.loads(text, strict=False)
    except (ValueError, RecursionError):
        return False
    return True


#: What rewrites the links of a file. Of a format without a rewriter, a move lists the links that
#: lose their target.
REWRITERS: Mapping[FileFormat, Callable[[str, Move, str, str | None], Rewritten]] = {
    MARKDOWN: rewritten,
    CANVAS: rewritten_canvas,
}
