"""
Links as written: Markdown links and images, reference links, wikilinks and embeds.

One pass over brackets with a stack, as CommonMark does it; each bracket is met once.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from typing import NamedTuple

from qmd.parse.markdown import Outline
from qmd.values import Link, LinkKind

_MAX_TEXT = 300  # characters of a link's text that are kept
_MAX_DEPTH = 8  # nested parentheses in a target
_MAX_OPEN = 1000  # brackets open at the same time; more is no prose
#: Characters that links share and that are kept for each of them, or as many as the text has:
#: 15,000 short references to one long target would fill gigabytes. (cmark has the same limit.)
_MAX_COPIED = 100_000

_PLAIN = r"\[([^\[\]\\]*)\]\(([^\s()<>\\\0]+)\)"
_PLAIN_LINK = re.compile(_PLAIN)
# A plain link, an escape, a wikilink, a bracket.
_TOKEN = re.compile(
    _PLAIN + r"|\\.|\[\[([^\[\]\r\n\0]+)\]\](?!\(|\[(?!\[))|\[|\]",
    re.DOTALL,
)
_DESTINATION = re.compile(
    r"\([ \t]*(?:(?:\r\n|\r|\n)[ \t]*)?"
    r"(?:<([^<>\r\n]*)>|([^\s()<\\\0][^\s()\\\0]*(?:\([^\s()\\\0]*\)[^\s()\\\0]*)*))"
    r"(?=[\s)])(?:\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\)))?\s*\)"
)
_SLOW_DESTINATION = re.compile(r"\\.|[()]|[\s\0]", re.DOTALL)
_TITLE_END = re.compile(r"\s+(?:\"[^\"]*\"|'[^']*'|\([^()]*\))\s*\)|\s*\)")
_LABEL = re.compile(r"\[([^\[\]\0]{0,999})\]")
_DEFINITION = re.compile(
    r"\[([^\[\]]{1,999})\]:[ \t]*(?:(?:\r\n|\r|\n)[ \t]*)?(?:<([^<>\r\n]*)>|([^\s<]\S*))"
)
_TOO_MANY_REFERENCES = (
    "The text refers to long link targets too often; the rest of these links was left out."
)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]+:|//")
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")


class DocumentLinks(NamedTuple):
    """The links in order of their lines, and the character spans they take up, in order."""

    links: tuple[Link, ...]
    spans: list[tuple[int, int]]
    warnings: tuple[str, ...] = ()


class _Copies:
    """Counts the characters that several links share: targets in definitions, nested texts."""

    def __init__(self, text: str) -> None:
        self.left = max(_MAX_COPIED, len(text))

    def fit(self, copied: str) -> bool:
        self.left -= len(copied)
        return self.left >= 0


def may_have_links(text: str, outline: Outline) -> bool:
    """A quick look that saves most texts without links the search for them."""
    return "](" in text or "[[" in text or bool(outline.definitions)


def find_links(text: str, masked: str, outline: Outline) -> DocumentLinks:
    """
    Every link outside code.

    Args:
        masked: `inline.mask_code` of the text.
    """
    found: list[tuple[int, int, LinkKind, str, str | None]]
    special = ("[[", "\\[", "\\]")
    if not outline.definitions and not any(mark in masked for mark in special):
        plain = list(_PLAIN_LINK.finditer(masked))
        if len(plain) == masked.count("]("):
            # Nothing but plain links, as in most documents: no stack is needed.
            found = [_plain_link(text, masked, match) for match in plain]
            return _found(found, outline)
    definitions, defined_at = _definitions(masked, outline)
    found = []
    stack: list[tuple[int, int, bool]] = []  # start, start of its text, is an image
    skip_to = 0
    targets, labels = _Copies(masked), _Copies(masked)
    for match in _TOKEN.finditer(masked):
        begin, end = match.span()
        if begin < skip_to:
            continue
        character = masked[begin]
        if character == "]":
            if not stack:
                continue
            start, inner, image = stack.pop()
            following = masked[end : end + 1]
            target: str | None = None
            if following == "(":
                target, stop = _destination(masked, end)
            if target is None:
                if not definitions or start in defined_at:
                    continue
                target, stop = _reference(masked, inner, begin, end, definitions)
                if target is None or not targets.fit(target):
                    continue
            if target:
                label = _label(text, inner, begin)
                if label is not None and not labels.fit(label):
                    label = None
                found.append((start, stop, "image" if image else "link", target, label))
            skip_to = stop
        elif character == "[":
            marked = begin > 0 and masked[begin - 1] == "!"
            if match[2] is not None:
                found.append(_plain_link(text, masked, match))
                continue
            if match[3] is not None:
                found.append((begin, end, "embed" if marked else "wikilink", match[3], None))
                continue
            if len(stack) >= _MAX_OPEN:
                del stack[: _MAX_OPEN // 2]
            stack.append((begin, end, marked))
    found.sort(key=_by_start)
    links, spans = _found(found, outline)[:2]
    return DocumentLinks(links, spans, (_TOO_MANY_REFERENCES,) if targets.left < 0 else ())


def _plain_link(
    text: str, masked: str, match: re.Match[str]
) -> tuple[int, int, LinkKind, str, str | None]:
    begin, end = match.span()
    inner, stop = match.span(1)
    kind: LinkKind = "image" if begin and masked[begin - 1] == "!" else "link"
    return begin, end, kind, match[2], _label(text, inner, stop)


def _label(text: str, begin: int, end: int) -> str | None:
    return " ".join(text[begin : min(end, begin + _MAX_TEXT)].split()) or None


def _found(
    found: list[tuple[int, int, LinkKind, str, str | None]], outline: Outline
) -> DocumentLinks:
    starts = outline.starts
    return DocumentLinks(
        tuple(
            _link(kind, target, label, bisect_right(starts, begin))
            for begin, _, kind, target, label in found
        ),
        [(begin, end) for begin, end, *_ in found],
    )


def _by_start(found: tuple[int, int, LinkKind, str, str | None]) -> int:
    return found[0]


def _destination(masked: str, at: int) -> tuple[str | None, int]:
    """The target in the parentheses at ``at``, and where they end."""
    match = _DESTINATION.match(masked, at)
    if match is not None:
        return match[1] if match[1] is not None else match[2], match.end()
    if masked.startswith("()", at):
        return "", at + 2
    # Backslashes or nested parentheses: count them.
    depth = 0
    begin = at + 1
    for token in _SLOW_DESTINATION.finditer(masked, begin, begin + 2000):
        character = token.group()
        if character == "(":
            depth += 1
            if depth > _MAX_DEPTH:
                break
        elif character == ")":
            if depth == 0:
                return _ESCAPED.sub(r"\1", masked[begin : token.start()]), token.end()
            depth -= 1
        elif character[0] != "\\":
            end = _TITLE_END.match(masked, token.start()) if depth == 0 else None
            if end is None or token.start() == begin:
                break
            return _ESCAPED.sub(r"\1", masked[begin : token.start()]), end.end()
    return None, at


def _reference(
    masked: str, inner: int, begin: int, end: int, definitions: dict[str, str]
) -> tuple[str | None, int]:
    """``[text][label]``, ``[label][]`` or ``[label]``."""
    label = _LABEL.match(masked, end)
    if label is not None and label[1].strip():
        return definitions.get(_normal(label[1])), label.end()
    stop = end if label is None else label.end()
    if begin - inner > 999:
        return None, end
    return definitions.get(_normal(masked[inner:begin])), stop


def _definitions(masked: str, outline: Outline) -> tuple[dict[str, str], set[int]]:
    """The targets by normalised label (the first definition counts), and where they stand."""
    targets: dict[str, str] = {}
    places: set[int] = set()
    for line in outline.definitions:
        at = outline.starts[line]
        while masked[at] in " \t":
            at += 1
        match = _DEFINITION.match(masked, at)
        if match is None or match[1].startswith("^"):
            continue
        places.add(at)
        targets.setdefault(_normal(match[1]), match[2] if match[2] is not None else match[3])
    return targets, places


def _normal(label: str) -> str:
    return " ".join(label.split()).casefold()


def _link(kind: LinkKind, target: str, label: str | None, line: int) -> Link:
    heading: str | None = None
    block: str | None = None
    if kind in ("wikilink", "embed"):
        target, bar, alias = target.partition("|")
        if bar:
            target = target.removesuffix("\\")  # in a table the bar is escaped
            label = alias.strip() or None
        target, heading, block = _anchor(target.strip())
    elif "#" in target and not _SCHEME.match(target):
        # In a URL the part behind "#" may be what names the page: it stays.
        target, heading, block = _anchor(target)
    return Link(kind, target, label, heading, block, line)


def _anchor(target: str) -> tuple[str, str | None, str | None]:
    path, mark, anchor = target.partition("#")
    anchor = anchor.strip()
    if not mark or not anchor:
        return path.strip(), None, None
    if anchor.startswith("^"):
        return path.strip(), None, anchor[1:] or None
    heading, mark, block = anchor.partition("#^")
    return path.strip(), heading or None, block or None
