"""
Renders the Markdown of a document as HTML that is safe to show in a browser.

`render_note` parses a text with markdown-it and the rules of this package, asks its caller where
the links lead, and removes from the HTML whatever is not on a list (`clean`). It reads nothing.
"""

from qmd.render.rendering import end_within, render_note
from qmd.render.values import (
    Embedded,
    LinkResolver,
    NoLinks,
    Options,
    Rendered,
    RenderedHeading,
    Target,
    WrittenTarget,
    heading_id,
    link_id,
    shown_target,
)

__all__ = [
    "Embedded",
    "LinkResolver",
    "NoLinks",
    "Options",
    "Rendered",
    "RenderedHeading",
    "Target",
    "WrittenTarget",
    "end_within",
    "heading_id",
    "link_id",
    "render_note",
    "shown_target",
]
