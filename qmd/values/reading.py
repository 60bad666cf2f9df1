"""The results of `get` and `multi_get`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from qmd.values.facts import Inline, Name
from qmd.values.search import DocumentInfo

_Named = Annotated[DocumentInfo, Inline("docid", "file", "uri", "title", "collection", "path")]


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """Lines ``from_line`` onwards of a document; ``more_lines`` were cut off behind them."""

    document: _Named
    context: str | None
    from_line: int
    more_lines: int
    text: Annotated[str, Name("body")]


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that `multi_get` leaves out because it is over ``max_bytes``."""

    document: _Named


@dataclass(frozen=True, slots=True)
class MultiGetReply:
    """``errors`` are sentences, one for each name in the list that was not found."""

    errors: tuple[str, ...]
    items: tuple[DocumentSlice | SkippedDocument, ...]
