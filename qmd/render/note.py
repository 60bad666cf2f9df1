"""
Renders a text of Markdown.

The libraries that parse, colour and clean are loaded with the first text: a server that shows no
note needs none of them.
"""

from __future__ import annotations

from qmd.render.values import LinkResolver, Options, Rendered

MAX_CHARACTERS = 300_000
"""The most characters of a text that are rendered; the rest is left out, and `Rendered` says so."""


def render_note(text: str, links: LinkResolver, options: Options = Options()) -> Rendered:
    """
    Render a text of Markdown; its frontmatter is left out.

    The time grows linearly with the text, up to `MAX_CHARACTERS`.
    """
    from qmd.render.rendering import Rendering

    run = Rendering()
    left_out = max(0, len(text) - MAX_CHARACTERS)
    html, headings = run.render(text[:MAX_CHARACTERS], links, options, ())
    return Rendered(run.clean(html, links), headings, left_out)
