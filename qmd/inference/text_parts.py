"""Splits a text that is too long for a model into parts that fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

# No text of this many characters a token fits, and tokenizing megabytes at once is slow.
_MAX_CHARS_PER_TOKEN = 8


class TextPart(NamedTuple):
    """
    A part of a text.

    Attributes:
        tokens: How many tokens it has with the prefix; its characters, without a tokenizer.
        encoding: The `tokenizers.Encoding` of prefix and part; None without a tokenizer.
    """

    text: str
    tokens: int
    encoding: Any


def text_parts(text: str, prefix: str, tokenizer: Any, max_tokens: int) -> Iterator[TextPart]:
    """The parts of a text, in order. A part that does not fit is halved, at a space if possible."""
    if len(text) <= max_tokens * _MAX_CHARS_PER_TOKEN:
        encoding = tokenizer.encode(prefix + text) if tokenizer else None
        if encoding is None or not encoding.overflowing or len(text) < 2:
            yield TextPart(text, len(encoding.ids) if encoding else len(text), encoding)
            return
    parts = [half for half in halves(text) if half.strip()]
    for half in parts or [""]:
        yield from text_parts(half, prefix, tokenizer, max_tokens)


def halves(text: str) -> tuple[str, str]:
    """Two parts of a text of at least two characters; together they are the text."""
    middle = len(text) // 2
    window = len(text) // 8
    before = max(text.rfind(mark, middle - window, middle) for mark in "\n 。.，,")
    cut = before + 1 if before >= 0 else middle
    return text[:cut], text[cut:]
