"""
Renders one text of Markdown: parses it, asks where its links lead, and writes the HTML.

The libraries that parse, colour and clean are loaded with the first text: a server that shows no
note needs none of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from markdown_it.token import Token

from qmd.parse.frontmatter import Frontmatter, split
from qmd.render import values
from qmd.render.clean import Marked
from qmd.render.syntax import parser, parser_of_blocks
from qmd.render.writer import HtmlWriter

MAX_EMBEDS = 30
MAX_VIEWS = 10
MAX_EMBED_DEPTH = 3
MAX_EMBEDDED_CHARACTERS = 200_000  # of all embedded texts of a note
#: A line takes as long as so many characters do, however short it is.
_LINE = 15
_LINE_END = re.compile(r"\r\n?|\n")
_MAX_RAW_IMAGES = 200  # images in raw HTML whose address is asked for

_ENTITY_LINES = ("paragraph_open", "heading_open", "tr_open", "fence", "code_block", "math_block")


@dataclass(slots=True)
class Rendering:
    """One rendering, with what is left of its budgets."""

    marked: Marked = field(default_factory=Marked)
    embeds_left: int = MAX_EMBEDS
    views_left: int = MAX_VIEWS
    characters_left: int = MAX_EMBEDDED_CHARACTERS

    def render(
        self,
        text: str,
        links: values.LinkResolver,
        options: values.Options,
        inside: tuple[str, ...],
    ) -> tuple[str, tuple[values.RenderedHeading, ...]]:
        """
        The HTML of a text, not cleaned yet.

        Args:
            inside: The identities of the documents that embed this one.
        """
        front = split(text) if options.is_note else Frontmatter()
        body_start = front.body_start
        before = text.count("\n", 0, body_start)
        environment: dict[str, Any] = {}
        markdown = parser() if options.is_note else parser_of_blocks()
        tokens = markdown.parse(text[body_start:], environment)
        if front.is_damaged:  # it may hold more than properties, even the text up to a rule
            written = Token("fence", "code", 0, content=text[:body_start], map=[-before, 0])
            tokens.insert(0, written)
        first_line = options.first_line + before
        headings = _number_headings(tokens, first_line, is_outer=not inside)
        embedded_options = values.Options(breaks_lines=options.breaks_lines)
        writer = HtmlWriter(
            self.marked,
            _targets(tokens, links),
            first_line=None if inside else first_line,
            may_tick=options.may_tick,
            breaks_lines=options.breaks_lines,
            embed=lambda target: self._embed(target, links, embedded_options, inside),
            view=lambda language, code: self._view(language, code, links, inside),
        )
        _mark_lines(tokens, options.lines, first_line)
        return writer.html(tokens), headings

    def _embed(
        self,
        target: str,
        links: values.LinkResolver,
        options: values.Options,
        inside: tuple[str, ...],
    ) -> str | None:
        """The HTML of an embedded document; None to show a link instead."""
        if len(inside) >= MAX_EMBED_DEPTH or not self.embeds_left:
            return None
        self.embeds_left -= 1
        embedded = links.embedded(target)
        if embedded is None or embedded.identity in inside:
            return None
        return self._inner(embedded, options, inside)

    def _view(
        self, language: str, code: str, links: values.LinkResolver, inside: tuple[str, ...]
    ) -> str | None:
        """The HTML of the tables that a block of code describes; None to show the code."""
        if len(inside) >= MAX_EMBED_DEPTH or not self.views_left:
            return None
        self.views_left -= 1
        tables = links.view(language, code)
        return None if tables is None else self._inner(tables, values.Options(), inside)

    def _inner(
        self, embedded: values.Embedded, options: values.Options, inside: tuple[str, ...]
    ) -> str | None:
        size = max(len(embedded.text), _LINE * len(_LINE_END.findall(embedded.text)))
        if size > self.characters_left:
            return None
        self.characters_left -= size
        html, _ = self.render(embedded.text, embedded.links, options, (*inside, embedded.identity))
        return html

    def clean(self, html: str, links: values.LinkResolver) -> str:
        left = _MAX_RAW_IMAGES

        def image_address(source: str) -> str | None:
            nonlocal left
            left -= 1
            if left < 0 or not source or len(source) > 2_000:
                return None
            (target,) = links.resolve([values.WrittenTarget("image", source)])
            return target.address if target.kind == "image" else None

        return self.marked.clean(html, image_address)


def _each(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        if token.children:
            yield from _each(token.children)


def _targets(tokens: Sequence[Token], links: values.LinkResolver) -> dict[int, values.Target]:
    """What the links among some tokens lead to: id of the token → target."""
    written: list[tuple[int, values.WrittenTarget]] = []
    for token in _each(tokens):
        if token.type in ("wikilink", "embed"):
            written.append((id(token), values.WrittenTarget(token.type, token.content)))  # type: ignore[arg-type]
        elif token.type == "link_open":
            written.append(
                (id(token), values.WrittenTarget("link", str(token.attrs.get("href", ""))))
            )
        elif token.type == "image":
            written.append(
                (id(token), values.WrittenTarget("image", str(token.attrs.get("src", ""))))
            )
    if not written:
        return {}
    targets = links.resolve([link for _, link in written])
    return {key: target for (key, _), target in zip(written, targets, strict=True)}


def _number_headings(
    tokens: Sequence[Token], first_line: int, *, is_outer: bool
) -> tuple[values.RenderedHeading, ...]:
    """Give the headings ids; those of embedded documents get none."""
    headings = []
    counts: dict[str, int] = {}
    for at, token in enumerate(tokens):
        if token.type != "heading_open" or not is_outer:
            continue
        text = _plain_text(tokens[at + 1])
        name = values.heading_id(text)
        number = counts.get(name, 0)
        counts[name] = number + 1
        if number:
            name = f"{name}-{number}"
        token.meta = {**token.meta, "id": name}
        line = first_line + (token.map[0] if token.map else 0)
        headings.append(values.RenderedHeading(int(token.tag[1]), text, name, line))
    return tuple(headings)


def _plain_text(inline: Token) -> str:
    parts = []
    for token in inline.children or ():
        if token.type in ("text", "code_inline"):
            parts.append(token.content)
        elif token.type in ("wikilink", "embed"):
            parts.append(token.meta["shown"] or token.content)
        elif token.type == "tag":
            parts.append(f"#{token.content}")
        elif token.type == "softbreak":
            parts.append(" ")
    return "".join(parts).strip()


def _mark_lines(tokens: Sequence[Token], lines: tuple[int, int] | None, first_line: int) -> None:
    """Note in the meta of the smallest blocks that they hold one of the lines to mark."""
    if lines is None:
        return
    first, last = lines
    is_first = True
    for at, token in enumerate(tokens):
        if token.type not in _ENTITY_LINES or token.map is None:
            continue
        begin, end = token.map[0] + first_line, token.map[1] + first_line
        if begin <= last and first < end:
            if token.hidden and at:  # the paragraph of a tight list has no element of its own
                token = tokens[at - 1]  # noqa: PLW2901
            token.meta = {**token.meta, "at": "first" if is_first else "next"}
            is_first = False


#: The most characters of a text that are rendered; the rest is left out, and `Rendered` says so.
MAX_CHARACTERS = 300_000


def end_within(text: str, start: int, characters: int) -> int:
    """
    Where a text from ``start`` on ends that takes no longer than so many characters usually do.

    Many short lines take longer than their characters: of these there are fewer in it.
    """
    end = min(len(text), start + characters)
    most = characters // _LINE
    line_end = next(islice(_LINE_END.finditer(text, start, end), most - 1, None), None)
    return end if line_end is None else line_end.end()


def render_note(
    text: str, links: values.LinkResolver, options: values.Options = values.Options()
) -> values.Rendered:
    """
    Render a text of Markdown; its frontmatter is left out.

    The time grows linearly with the text, up to `MAX_CHARACTERS`.
    """
    run = Rendering()
    end = end_within(text, 0, MAX_CHARACTERS)
    html, headings = run.render(text[:end], links, options, ())
    return values.Rendered(run.clean(html, links), headings, len(text) - end)
