"""
Removes from HTML whatever could run, load from elsewhere, or pass for a part of the page.

`RawHtml` balances the tags that stand in a note, so that none reaches beyond its block. The tags
that a browser reads in a way of its own (``script``, ``textarea``, ``svg``) are shown as text.

`Marked.clean` is the last step of rendering, and the one that safety depends on. The ids, classes
and data of this package's own HTML carry a mark made by chance for one rendering; those of a note
do not, and are removed. So a note can neither style itself as a part of the page nor take an id of
it.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable

import nh3

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9-]*)((?:[^<>\"']|\"[^\"<>]*\"|'[^'<>]*')*)>")
_VOID = frozenset({"br", "hr", "img", "wbr"})
_BALANCED_NAMES = """
a abbr b bdi bdo blockquote caption center cite code dd del details dfn div dl dt em
figcaption figure h1 h2 h3 h4 h5 h6 i ins kbd li mark ol p pre q rp rt ruby s
samp section small span strike strong sub summary sup table tbody td tfoot th thead tr u
ul var
"""
_BALANCED = _VOID | frozenset(_BALANCED_NAMES.split())
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
        if name not in _BALANCED:
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


_MATHML_NAMES = """
math mrow mi mn mo ms mtext mspace mfrac msqrt mroot mstyle merror mpadded mphantom msub
msup msubsup munder mover munderover mmultiscripts mprescripts mtable mtr mtd menclose
semantics
"""
_MATHML = frozenset(_MATHML_NAMES.split())
_TAGS_NAMES = """
a abbr audio b bdi bdo blockquote br caption cite code col colgroup dd del details dfn div
dl dt em figcaption figure h1 h2 h3 h4 h5 h6 hr i img ins kbd li mark ol p pre q rp rt ruby
s samp section small source span strong sub summary sup table tbody td tfoot th thead time
tr u ul var video wbr
"""
_TAGS = _MATHML | frozenset(_TAGS_NAMES.split())
_REMOVED_NAMES = """
script style iframe object embed noscript template svg form
"""
#: These go with their content; of other tags that are not allowed the content stays.
_REMOVED = frozenset(_REMOVED_NAMES.split())

#: The attributes that only this package's own HTML may have.
_MARKED = frozenset(
    {
        "class",
        "id",
        "data-line",
        "data-task",
        "data-host",
        "src",
        "role",
        "aria-checked",
        "aria-label",
    }
)

_ATTRIBUTES = {
    "*": {"class", "id", "title", "lang", "dir", "data-line", "data-task", "data-host", "role",
          "aria-label", "aria-checked"},
    "a": {"href", "hreflang"},
    "img": {"src", "alt", "width", "height", "loading"},
    "audio": {"src", "controls", "preload"},
    "video": {"src", "controls", "preload", "width"},
    "ol": {"start", "type", "reversed"},
    "li": {"value"},
    "details": {"open"},
    "td": {"colspan", "rowspan"},
    "th": {"colspan", "rowspan", "scope"},
    "col": {"span"},
    "time": {"datetime"},
    "math": {"display", "xmlns"},
    "mo": {"stretchy", "fence", "separator", "lspace", "rspace", "minsize", "maxsize", "form"},
    "mi": {"mathvariant"},
    "mspace": {"width"},
    "mtable": {"columnalign"},
    "mfrac": {"linethickness"},
    "mover": {"accent"},
    "munder": {"accentunder"},
}  # fmt: skip

_SCHEMES = {"http", "https", "mailto", "obsidian"}

#: The page's address of an image that raw HTML names; None to leave it out.
ImageAddress = Callable[[str], "str | None"]


class Marked:
    """Marks the attributes that this package writes."""

    def __init__(self) -> None:
        self._mark = secrets.token_hex(8)

    def __call__(self, value: str | int) -> str:
        return f"{self._mark}{value}"

    def clean(self, html: str, image_address: ImageAddress) -> str:
        """The HTML without what is not allowed, and without the marks."""
        mark = self._mark

        def kept(tag: str, attribute: str, value: str) -> str | None:
            if value.startswith(mark):
                return value[len(mark) :]
            if tag == "img" and attribute == "src":
                return image_address(value)
            return None if attribute in _MARKED else value

        return nh3.clean(
            html,
            tags=set(_TAGS),
            clean_content_tags=set(_REMOVED),
            attributes=_ATTRIBUTES,
            attribute_filter=kept,
            url_schemes=_SCHEMES,
            link_rel="noopener noreferrer nofollow",
        )
