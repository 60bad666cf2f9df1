"""Fits documents into the budget of a reply: as many lines of each as there is room for."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from qmd.parse.lines import line_starts
from qmd.values import DocumentSlice, LeftOut
from qmd.values.tokens import count_fitting, estimate_tokens

#: What a reply needs for the sentence that says what was left out.
_NOTICE_TOKENS = 60
_NOTICE_BYTES = 1000
#: What a document needs beside its text and names: the fields of a reply, or the lines shown.
_FRAME_TOKENS = 10
_FRAME_BYTES = 300
#: A document that does not fit is cut if at least this much of its text can be shown.
_WORTH_TOKENS = 100
_WORTH_BYTES = 1000


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of a text in a reply: its estimated tokens, and its bytes as a JSON string."""

    tokens: float
    bytes: float


class ReadingBudget:
    """
    The room that a reply has left.

    Attributes:
        tokens: The estimated tokens.
        bytes: The bytes of the reply as JSON in UTF-8.
    """

    def __init__(
        self,
        *,
        max_tokens: int | None = None,
        max_bytes: int | None = None,
        line_numbers: bool = False,
    ) -> None:
        """
        Args:
            max_tokens, max_bytes: The room of the whole reply; None for no bound.
            line_numbers: Whether the caller numbers the lines, which takes tokens, too.
        """
        self._has_tokens = max_tokens is not None
        self.tokens = math.inf if max_tokens is None else max_tokens - _NOTICE_TOKENS
        self.bytes = math.inf if max_bytes is None else max(0, max_bytes - _NOTICE_BYTES)
        self._line_numbers = line_numbers

    def take_text(self, text: str) -> bool:
        """Use room for a text; False, and no room is used, if it does not fit."""
        size = self._size(text)
        if size.tokens > self.tokens or size.bytes > self.bytes:
            return False
        self._use(size)
        return True

    def take_document(self, document: DocumentSlice, *, is_first: bool) -> DocumentSlice | None:
        """
        Use room for a document, cut behind the last line that fits.

        Args:
            is_first: Show the beginning of the document even if there is hardly any room for it.

        Returns:
            The document, whose `left_out` says what was cut off; None, and no room is used, if
            too little of it fits.
        """
        head = self._head(document)
        least = _Size(_WORTH_TOKENS, _WORTH_BYTES) if is_first else _Size(0, 0)
        tokens = max(least.tokens, self.tokens - head.tokens)
        room_bytes = max(least.bytes, self.bytes - head.bytes)
        starts = line_starts(document.text, document.lines)
        count = count_fitting((size.tokens for size in self._lines(document, starts)), tokens)
        count = min(
            count, count_fitting((size.bytes for size in self._lines(document, starts)), room_bytes)
        )
        if count < len(starts):
            if tokens < _WORTH_TOKENS or room_bytes < _WORTH_BYTES:
                return None
            document = _cut(document, starts, count) or self._cut_line(
                document, starts, tokens, room_bytes
            )
        text = self._text_size(document)
        self._use(_Size(head.tokens + text.tokens, head.bytes + text.bytes))
        return document

    def _head(self, document: DocumentSlice) -> _Size:
        info = document.document
        comments = f"<!-- File: {info.file}, docid {info.docid} -->\n"
        if document.context is not None:
            comments += f"<!-- Context: {document.context} -->\n"
        size = self._size(f"{comments}\n{info.title}")
        return _Size(size.tokens + _FRAME_TOKENS, size.bytes + len(info.uri) + _FRAME_BYTES)

    def _lines(self, document: DocumentSlice, starts: list[int]) -> Iterator[_Size]:
        ends = (*starts[1:], len(document.text))
        spans = zip(starts, ends)  # noqa: B905 (an empty text has no start)
        for number, (start, end) in enumerate(spans, document.from_line):
            line = document.text[start:end]
            yield self._size(f"{number}: {line}" if self._line_numbers else line)

    def _text_size(self, document: DocumentSlice) -> _Size:
        lines = list(self._lines(document, line_starts(document.text, document.lines)))
        return _Size(sum(line.tokens for line in lines), sum(line.bytes for line in lines))

    def _cut_line(
        self, document: DocumentSlice, starts: list[int], tokens: float, room_bytes: float
    ) -> DocumentSlice:
        """The beginning of the first line, which does not fit."""
        end = starts[1] if len(starts) > 1 else len(document.text)
        # More characters than this fit into no room, and a line may have millions.
        line = document.text[: min(end, int(min(100 * tokens, room_bytes)))].rstrip("\r\n")
        size = self._size(line)
        share = min(1.0, tokens / max(1.0, size.tokens), room_bytes / max(1.0, size.bytes))
        length = max(1, int(0.9 * share * len(line)))
        return replace(
            document,
            text=line[:length] + "…",
            lines=1,
            more_lines=document.more_lines + len(starts) - 1,
            left_out=LeftOut(document.from_line, document.last_line, is_begun=True),
        )

    def _size(self, text: str) -> _Size:
        tokens = estimate_tokens(text) if self._has_tokens else 0.0
        data = json.dumps(text, ensure_ascii=False).encode("utf-8", "surrogatepass")
        return _Size(tokens, len(data) - 2)

    def _use(self, size: _Size) -> None:
        self.tokens -= size.tokens
        self.bytes -= size.bytes


def _cut(document: DocumentSlice, starts: list[int], count: int) -> DocumentSlice | None:
    """The first ``count`` lines of a document; None for none."""
    if not count:
        return None
    text = document.text[: starts[count]]
    text = text.removesuffix("\n").removesuffix("\r")
    more_lines = document.more_lines + len(starts) - count
    left_out = LeftOut(document.from_line + count, document.last_line)
    return replace(document, text=text, lines=count, more_lines=more_lines, left_out=left_out)
