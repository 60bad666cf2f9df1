"""Find the lines of a heading's section, or of a block, in a document."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import SectionNotFoundError
from qmd.parse.sections import block, block_ids, heading_path, outline_of, section
from qmd.search import lookup
from qmd.values import DocumentInfo

if TYPE_CHECKING:
    from qmd.store import Reader


#: Characters of a heading that an error repeats.
MAX_SHOWN = 200


class AnchoredLines(NamedTuple):
    """The lines ``[start, end)`` of a section or block, from 1; lines of others of its name."""

    start: int
    end: int
    same_name: tuple[int, ...] = ()


def anchored_lines(reader: Reader, document: DocumentInfo, anchor: str) -> AnchoredLines:
    """
    The lines of a section or block.

    Args:
        anchor: ``Heading``, ``Heading#Subheading``, ``^block`` or ``Heading#^block``.

    Raises:
        SectionNotFoundError: With the nearest headings or blocks.
    """
    text = reader.documents.text(document.id)
    headings, mark, block_id = anchor.rpartition("^")
    if mark and (not headings or headings.endswith("#")):
        span = block(text, block_id.strip())
        if span is None:
            blocks = (f"^{each}" for each, _ in block_ids(text))
            raise _not_found(document, f"^{block_id}", blocks)
        return AnchoredLines(span.start_line, span.end_line, span.others)
    path = heading_path(anchor)
    if not path:
        return AnchoredLines(1, len(text) + 1)
    named = section(text, path)
    if named is None:
        texts = (each.heading.text for each in outline_of(text))
        raise _not_found(document, f"#{'#'.join(path)}", (f"#{each}" for each in texts if each))
    return AnchoredLines(named.start_line, named.end_line, named.others)


def _not_found(document: DocumentInfo, anchor: str, anchors: Iterable[str]) -> SectionNotFoundError:
    last = anchor.rpartition("#")[2] if anchor.startswith("#") else anchor
    nearest = lookup.similar.similar_anchors(last, anchors)
    if len(anchor) > MAX_SHOWN:
        anchor = f"{anchor[:MAX_SHOWN]}…"
    return SectionNotFoundError(document.file, anchor, nearest)
