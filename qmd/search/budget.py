"""
Fits the hits and the documents of a reply into its budget, by `qmd.values.text.fitting_items`.

Snippets are shortened before the last hits are left out; a document is cut after a line.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

from qmd.parse.lines import line_starts
from qmd.values import DocumentSlice, Hit, LeftOut, SearchReply
from qmd.values.search import shown_relevance
from qmd.values.text import estimate_tokens, fitting_items
from qmd.values.wire import to_wire

#: The tokens of what servers send beside the hits: the heading, freshness and a notice.
FRAME_TOKENS = 120
_CROPPED_CHARACTERS = 150
#: The least characters of a snippet that show something.
_LEAST_CHARACTERS = 20
#: What a reply needs for the sentence that says what was left out.
_NOTICE_TOKENS = 60
_NOTICE_BYTES = 1000
#: What a document needs beside its text and names: the fields of a reply, or the lines shown.
_FRAME_TOKENS = 10
_FRAME_BYTES = 300
#: A document that does not fit is cut if at least this much of its text can be shown.
_WORTH_TOKENS = 100
_WORTH_BYTES = 1000


def fit_hits(
    reply: SearchReply, max_tokens: int, size: Callable[[Hit], float], *, frame_tokens: float = 0
) -> SearchReply:
    """
    Fit a reply into a budget, best first.

    Snippets are cut to their best line, from the last hit upwards. If that does not save enough,
    the last hits are left out, and ``left_out`` of the reply counts them. The best line of the
    first hit is cut to what fits.

    Args:
        size: The estimated tokens of a hit.
        frame_tokens: The estimated tokens of what stands around the hits.
    """
    sentences = f"{reply.notice or ''}{reply.degraded or ''}"
    budget = max_tokens - frame_tokens - estimate_tokens(sentences)
    hits = shorten_snippets(reply.hits, sum(map(size, reply.hits)) - budget, estimate_tokens)
    if hits:
        hits = [_cropped(hits[0], size(hits[0]) - budget), *hits[1:]]
    fitting, _ = fitting_items(hits, size, budget)
    return replace(reply, hits=tuple(fitting), left_out=len(hits) - len(fitting))


def hit_tokens(hit: Hit) -> float:
    """The estimated tokens of a hit: its JSON object, and its line in the summary."""
    fields = json.dumps(to_wire(hit), ensure_ascii=False, separators=(",", ":"))
    summary = f"{hit.docid} {shown_relevance(hit.relevance)} {hit.file_and_place} - {hit.title}\n"
    return estimate_tokens(fields) + estimate_tokens(summary)


def shorten_snippets(
    hits: Sequence[Hit], excess: float, size: Callable[[str], float]
) -> Sequence[Hit]:
    """
    Cut snippets to their best line, from the last hit upwards, until enough is saved.

    Args:
        excess: How much to save, in the unit of ``size``.
        size: The size of a snippet.
    """
    if excess <= 0:
        return hits
    shortened: list[Hit] = []
    for hit in reversed(hits):
        keep = excess <= 0 or hit.explain is not None
        snippet = hit.snippet if keep else _best_line(hit)
        if snippet == hit.snippet:
            shortened.append(hit)
        else:
            excess -= size(hit.snippet) - size(snippet)
            shortened.append(replace(hit, snippet=snippet))
    return shortened[::-1]


def _cropped(hit: Hit, excess: float) -> Hit:
    """Cut ``excess`` tokens off the end of a snippet, if something worth showing remains."""
    if excess <= 0 or hit.explain is not None:
        return hit
    share = 1 - (excess + 1) / max(1.0, estimate_tokens(hit.snippet))
    length = int(share * len(hit.snippet))
    if length < _LEAST_CHARACTERS:
        return hit
    return replace(hit, snippet=hit.snippet[:length].rstrip("…") + "…")


def _best_line(hit: Hit) -> str:
    """
    The best line of a snippet, shortened to `_CROPPED_CHARACTERS` if it was cropped before.

    A cropped line ends in an ellipsis and has its match in the first third, which stays.
    """
    start = f"{hit.line}: "
    lines = hit.snippet.split("\n")
    line = next((line for line in lines if line.startswith(start)), hit.snippet)
    return line[:_CROPPED_CHARACTERS].rstrip("…") + "…" if line.endswith("…") else line


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
        Use room for a document, cut after the last line that fits.

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
        by_tokens, _ = fitting_items(self._lines(document, starts), attrgetter("tokens"), tokens)
        by_bytes, _ = fitting_items(self._lines(document, starts), attrgetter("bytes"), room_bytes)
        count = min(len(by_tokens), len(by_bytes))
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
