"""Documents as `get` and `multi_get` give them."""

from __future__ import annotations

from dataclasses import dataclass

from qmd.values.search import DocumentInfo


@dataclass(frozen=True, slots=True)
class DocumentSlice:
    """Lines ``from_line`` onwards of a document; ``more_lines`` were cut off behind them."""

    document: DocumentInfo
    context: str | None
    text: str
    from_line: int
    more_lines: int


@dataclass(frozen=True, slots=True)
class SkippedDocument:
    """A document that `multi_get` leaves out because it is over ``max_bytes``."""

    document: DocumentInfo


@dataclass(frozen=True, slots=True)
class MultiGetReply:
    """``errors`` are sentences, one for each name in the list that was not found."""

    errors: tuple[str, ...]
    items: tuple[DocumentSlice | SkippedDocument, ...]
