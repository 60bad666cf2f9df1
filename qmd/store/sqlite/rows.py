"""Checks that the values of a row have the types that the schema names."""

from __future__ import annotations

from collections.abc import Sequence
from types import UnionType


def require_types(row: Sequence[object], *types: type | UnionType) -> None:
    """
    SQLite keeps a value of any type in any column, and damage makes use of that.

    Raises:
        TypeError: A value has another type; `Store` looks for damage then.
    """
    for value, expected in zip(row, types, strict=True):
        if not isinstance(value, expected):
            raise TypeError(f"{type(value).__name__} where {expected} is stored")
