"""
Removes from HTML whatever could run, load from elsewhere, or pass for a part of the page.

`clean` is the last step of rendering, and the one that safety depends on. The ids, classes and
data of this package's own HTML carry a mark made by chance for one rendering (`Marked`); those
of a note do not, and are removed. So a note can neither style itself as a part of the page nor
take an id of it.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable

import nh3

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
_REMOVED = frozenset(_REMOVED_NAMES.split())
"""These go with their content; of other tags that are not allowed the content stays."""

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
"""The attributes that only this package's own HTML may have."""

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

ImageAddress = Callable[[str], "str | None"]
"""The page's address of an image that raw HTML names; None to leave it out."""


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
