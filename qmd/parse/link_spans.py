"""Says at which characters of a text the path of each link stands, for what rewrites links."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from qmd.parse import frontmatter
from qmd.parse.code_mask import mask_code, mask_comments
from qmd.parse.links import SCHEME, WrittenLink, find_links, may_have_links
from qmd.parse.markdown import outline
from qmd.values import Link

#: Where a link's path stands: in ``[[…]]``, in ``(…)``, in ``(<…>)``, or in the definition
#: ``[label]: …`` or ``[label]: <…>`` that the link refers to.
PathForm = Literal["wikilink", "inline", "angle", "definition", "angle definition"]


@dataclass(frozen=True, slots=True)
class LinkSpan:
    """
    A link and where it stands; offsets count characters of the text.

    Several links have the same path span if they refer to one definition.

    Attributes:
        start, end: The whole link, without the ``!`` of an image or an embed.
        path_start, path_end: The path: ``link.target`` as written, with percent signs and
            backslashes, without ``#heading`` and ``|text``. Empty for a link into its own note.
    """

    link: Link
    start: int
    end: int
    path_start: int
    path_end: int
    form: PathForm


def link_spans(text: str) -> tuple[LinkSpan, ...]:
    """The links of a Markdown text in order, those of its properties first; time is linear."""
    body_start = frontmatter.split(text).body_start
    structure = outline(text, body_start)
    if not may_have_links(text, structure):
        return ()
    masked = mask_comments(mask_code(text, body_start, structure))
    links = find_links(text, masked, structure, body_start)
    return tuple(
        _span(text, link, written) for link, written in zip(links.links, links.written, strict=True)
    )


def _span(text: str, link: Link, written: WrittenLink) -> LinkSpan:
    start, end, _, _, _, begin, stop = written
    return LinkSpan(
        link,
        start,
        end,
        *_path_span(text, link, begin, stop),
        _form(text, link, is_inline=start <= begin < end, begin=begin),
    )


def _path_span(text: str, link: Link, begin: int, end: int) -> tuple[int, int]:
    """The characters of a target without heading, block and text, and without blanks around."""
    if link.kind in ("wikilink", "embed"):
        bar = text.find("|", begin, end)
        if bar >= 0:
            end = bar - 1 if bar > begin and text[bar - 1] == "\\" else bar
        mark = text.find("#", begin, end)
    else:
        mark = -1 if SCHEME.match(text, begin, end) else text.find("#", begin, end)
    if mark >= 0:
        end = mark - 1 if mark > begin and text[mark - 1] == "\\" else mark
    while begin < end and text[begin].isspace():
        begin += 1
    while begin < end and text[end - 1].isspace():
        end -= 1
    return begin, end


def _form(text: str, link: Link, *, is_inline: bool, begin: int) -> PathForm:
    if link.kind in ("wikilink", "embed"):
        return "wikilink"
    if text[begin - 1] == "<":
        return "angle" if is_inline else "angle definition"
    return "inline" if is_inline else "definition"
