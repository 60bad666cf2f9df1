"""Limits the warnings about one document to a few sentences."""

from __future__ import annotations

from collections.abc import Iterable

MAX_WARNINGS = 20
#: Characters of a warning; those of plugins may be any.
MAX_WARNING = 500
#: A sentence about so many documents is told once.
_MANY = 3


def limit_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """
    The warnings, at most `MAX_WARNINGS`; a last sentence counts the rest.

    Equal warnings become one, with a count: "… (3 times)".
    """
    counts: dict[str, int] = {}
    for each in warnings:
        warning = each if len(each) <= MAX_WARNING else f"{each[: MAX_WARNING - 1]}…"
        counts[warning] = counts.get(warning, 0) + 1
    sentences = [
        warning if count == 1 else f"{warning} ({count:,} times)"
        for warning, count in list(counts.items())[:MAX_WARNINGS]
    ]
    if len(counts) > MAX_WARNINGS:
        sentences.append(f"And {len(counts) - MAX_WARNINGS:,} more warnings.")
    return tuple(sentences)


def group_warnings(warnings: Iterable[tuple[str, str]]) -> list[str]:
    """
    Sentences about documents; one that is about many documents is told once, with their number.

    Args:
        warnings: ``collection/path`` of a document, and a sentence about it.
    """
    documents: dict[str, list[str]] = {}
    for document, sentence in warnings:
        documents.setdefault(sentence, []).append(document)
    sentences: list[str] = []
    for sentence, names in documents.items():
        if len(names) < _MANY:
            sentences += [f"{name}: {sentence}" for name in names]
        else:
            sentences.append(f"{len(names):,} documents, such as {names[0]}: {sentence}")
    return sentences
