"""What is told of one document: few sentences, however much is wrong with it."""

from __future__ import annotations

from collections.abc import Iterable

MAX_WARNINGS = 20


def few(warnings: Iterable[str]) -> tuple[str, ...]:
    """
    Each warning once, at most `MAX_WARNINGS`; a last sentence counts the rest.

    Equal ones are one warning with their number: "… (3 times)".
    """
    counts: dict[str, int] = {}
    for warning in warnings:
        counts[warning] = counts.get(warning, 0) + 1
    told = [
        warning if count == 1 else f"{warning} ({count:,} times)"
        for warning, count in list(counts.items())[:MAX_WARNINGS]
    ]
    if len(counts) > MAX_WARNINGS:
        told.append(f"And {len(counts) - MAX_WARNINGS:,} more warnings.")
    return tuple(told)
