"""Finds the line of a document that gives a property, for a query that asks for nothing else."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from qmd import lazy
from qmd.values.properties import MAX_KEY, fold_key

#: Only this many lines of a text are looked at, and for a key so many characters of each.
MAX_LINES, MAX_START = 20_000, 500
#: What may stand before the key: the sign of a list or a quote, quotation marks.
_BEFORE_KEY = " \t->*+\"'"
#: A key of YAML, TOML or ``key:: value``.
_KEY = lazy.pattern(rf"([^:=\"'\n]{{1,{MAX_KEY}}})[\"']?(::?|=)")
#: A field inside a line: ``[key:: value]`` or ``(key:: value)``.
_KEY_IN_LINE = lazy.pattern(rf"[\[(]([^:\[\]()\n]{{1,{MAX_KEY}}})::")


def property_line(lines: Sequence[str], first: int, keys: Collection[str]) -> int | None:
    """
    The index of the first line that gives one of the properties; None if no line does.

    Args:
        first: The index of the first line below the frontmatter. Below it only fields with ``::``
            are properties.
        keys: As `fold_key` gives them; of a nested key (``book.author``) the last part counts.
    """
    names = {*keys, *(key.rpartition(".")[2] for key in keys)}
    for index, line in enumerate(lines[:MAX_LINES]):
        match = _KEY.match(line[:MAX_START].lstrip(_BEFORE_KEY))
        if (
            match is not None
            and (index < first or match[2] == "::")
            and fold_key(match[1]) in names
        ):
            return index
        if "::" in line and any(fold_key(m[1]) in names for m in _KEY_IN_LINE.finditer(line)):
            return index
    return None
