"""
Rewrites the links of a canvas of Obsidian: the files that its cards show, and the cards' text.

All other characters of the JSON stay as they are. Source: https://jsoncanvas.org/spec/1.0/
"""

from __future__ import annotations

import json
import re

from qmd.files.moves.move import Move
from qmd.files.moves.rewrite import (
    NO_SPELLING,
    OTHER_COLLECTION,
    ChangedLink,
    LeftLink,
    Rewritten,
    rewritten,
)
from qmd.values.names import fold

CANVAS_SUFFIX = ".canvas"
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_COLON = re.compile(r"\s*:\s*")


def rewritten_canvas(
    text: str, move: Move, source: str, source_after: str | None = None
) -> Rewritten:
    """As `qmd.files.moves.rewrite.rewritten`. What is no JSON has no links."""
    if not _is_json(text):
        return Rewritten(text)
    parts: list[str] = []
    changed: list[ChangedLink] = []
    left: list[LeftLink] = []
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
        left += [LeftLink(link.line, link.before, NO_SPELLING) for link in changed]
        return Rewritten(text, (), tuple(left))
    return Rewritten(new_text, tuple(changed), tuple(left))


def _card_of_file(path: str, move: Move) -> Rewritten:
    """A card that shows a file names it by its whole path."""
    if move.old is None or fold(path) != fold(move.old):
        return Rewritten(path)
    if move.before.find(f"/{path}", "", "embed") != move.old:
        return Rewritten(path)  # another file, whose path differs in case
    if move.new is None:
        return Rewritten(path, (), (LeftLink(0, path, OTHER_COLLECTION),))
    return Rewritten(move.new, (ChangedLink(0, path, move.new),))


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
