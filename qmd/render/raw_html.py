"""
HTML that stands in a note: its tags are balanced here, so that none reaches beyond its block.

What the tags and attributes may be is decided by `qmd.render.clean` at the end. The tags that a
browser reads in a way of its own (``script``, ``textarea``, ``svg``) are shown as text.
"""

from __future__ import annotations

import re

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:[^<>\"']|\"[^\"<>]*\"|'[^'<>]*')*)>")
_VOID = frozenset({"br", "hr", "img", "wbr"})
_TAG_NAMES = """
a abbr b bdi bdo blockquote caption center cite code dd del details dfn div dl dt em
figcaption figure h1 h2 h3 h4 h5 h6 i ins kbd li mark ol p pre q rp rt ruby s
samp section small span strike strong sub summary sup table tbody td tfoot th thead tr u
ul var
"""
_TAGS = _VOID | frozenset(_TAG_NAMES.split())
_MAX_OPEN = 30
_UNSHOWN = re.compile(r"\s*<(?:script|style)", re.IGNORECASE)


class RawHtml:
    """The tags of a note's own HTML that are open, in the blocks that Markdown has open."""

    def __init__(self) -> None:
        self._open: list[str] = []
        self._floor = 0

    def enter(self) -> int:
        """Begin a block of Markdown: tags in it close in it. `leave` takes what this returns."""
        floor, self._floor = self._floor, len(self._open)
        return floor

    def leave(self, floor: int) -> str:
        """End a block; the end tags of what is open in it."""
        closing = self._close(self._floor)
        self._floor = floor
        return closing

    def write(self, html: str) -> str:
        """Text with tags, as it is put out: balanced, and escaped where it is no listed tag."""
        if _UNSHOWN.match(html):
            return ""
        parts: list[str] = []
        end = 0
        html = _without_comments(html)
        for match in _TAG.finditer(html):
            parts.append(_text(html[end : match.start()]))
            end = match.end()
            parts.append(self._tag(match[2].lower(), bool(match[1]), match[3], match.group()))
        parts.append(_text(html[end:]))
        return "".join(parts)

    def _tag(self, name: str, is_end: bool, attributes: str, tag: str) -> str:
        if name not in _TAGS:
            return _text(tag)
        if name in _VOID:
            return "" if is_end else f"<{name}{attributes.rstrip('/')}>"
        if is_end:
            return self._end(name)
        if len(self._open) >= self._floor + _MAX_OPEN:
            return ""
        if attributes.endswith("/"):
            return ""  # for HTML it opens the element, but its author closed it
        self._open.append(name)
        return f"<{name}{attributes}>"

    def _end(self, name: str) -> str:
        for number in range(len(self._open) - 1, self._floor - 1, -1):
            if self._open[number] == name:
                return self._close(number)
        return ""

    def _close(self, number: int) -> str:
        names = self._open[number:]
        del self._open[number:]
        return "".join(f"</{name}>" for name in reversed(names))


def _without_comments(html: str) -> str:
    parts: list[str] = []
    end = 0
    while (start := html.find("<!--", end)) >= 0 and (stop := html.find("-->", start)) >= 0:
        parts.append(html[end:start])
        end = stop + 3
    return "".join((*parts, html[end:]))


def _text(html: str) -> str:
    """Characters between tags: references such as ``&nbsp;`` stay."""
    return html.replace("<", "&lt;").replace(">", "&gt;")
