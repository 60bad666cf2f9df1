"""
Renders the Markdown of a document as HTML that is safe to show in a browser.

`render_note` parses a text with markdown-it and the rules of this package, asks its caller where
the links lead, and removes from the HTML whatever is not on a list (`clean`). It reads nothing.
"""

from qmd.render.rendering import end_within as end_within
from qmd.render.rendering import render_note as render_note
from qmd.render.values import Embedded as Embedded
from qmd.render.values import LinkResolver as LinkResolver
from qmd.render.values import NoLinks as NoLinks
from qmd.render.values import Options as Options
from qmd.render.values import Rendered as Rendered
from qmd.render.values import RenderedHeading as RenderedHeading
from qmd.render.values import Target as Target
from qmd.render.values import WrittenTarget as WrittenTarget
from qmd.render.values import link_id as link_id
from qmd.render.values import shown_target as shown_target
