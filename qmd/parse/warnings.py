"""Limits the warnings about one document to a few sentences."""

from __future__ import annotations

from collections.abc import Iterable

MAX_WARNINGS = 20


def limit_warnings(warnings: Iterable[str]) -> tuple[str, ...]:
    """
    The warnings, at most `MAX_WARNINGS`; a last sentence counts the rest.

    Equal warnings become one, with a count: "… (3 times)".
    """
    counts: dict[str, int] = {}
    for warning in warnings:
        counts[warning] = counts.get(warning, 0) + 1
    sentences = [
        warning if count == 1 else f"{warning} ({count:,} times)"
        for warning, count in list(counts.items())[:MAX_WARNINGS]
    ]
    if len(counts) > MAX_WARNINGS:
        sentences.append(f"And {len(counts) - MAX_WARNINGS:,} more warnings.")
    return tuple(sentences)
