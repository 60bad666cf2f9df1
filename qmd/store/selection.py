"""A selection of documents: filters in the form of the store that applies them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import PurePath
from typing import NamedTuple, Protocol


class Selection(Protocol):
    """
    The documents that pass some filters, made by `Reader.select`.

    It is valid in the snapshot that made it only: collections may be removed meanwhile.
    """

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no document."""
        ...

    @property
    def collection_ids(self) -> tuple[int, ...] | None:
        """
        The collections that are selected, if only collections are filtered; empty for all.

        None if there are other filters.
        """
        ...


class Overlap(NamedTuple):
    """
    Two collections of which one holds files of the other, by their ids.

    Attributes:
        outer: The collection whose documents are left out where ``inner`` has them.
        inner: The collection whose folder lies deeper; of equal folders the one added first.
        prefix: Where the folder of ``inner`` lies in that of ``outer``: "" or ``folder/``.
    """

    outer: int
    inner: int
    prefix: str


def overlaps(folders: Iterable[tuple[int, str]]) -> list[Overlap]:
    """The overlaps of collections of this machine, of which ids and folders are given."""
    in_order = sorted(folders)
    if len(in_order) < 2:
        return []
    by_path: dict[str, list[int]] = {}
    for collection_id, path in in_order:
        by_path.setdefault(path.rstrip(os.sep) or os.sep, []).append(collection_id)
    pairs = [
        Overlap(outer, inner, "")
        for ids in by_path.values()
        for number, outer in enumerate(ids)
        for inner in ids[:number]
    ]
    for path, ids in by_path.items():
        for parent in map(str, PurePath(path).parents):
            prefix = PurePath(path).relative_to(parent).as_posix() + "/"
            pairs += [
                Overlap(outer, inner, prefix) for outer in by_path.get(parent, ()) for inner in ids
            ]
    return pairs


def outside_inner(overlap: Overlap, values: list[object], *, also: str = "") -> str:
    """
    The SQL condition that the inner collection of an overlap has no document of the file of ``d``.

    Args:
        values: Its values are appended; those of ``also`` must follow.
        also: A condition that the inner document ``i`` must meet.
    """
    length = len(overlap.prefix)
    values += [overlap.outer, length, overlap.prefix, overlap.inner, length + 1]
    return (
        f"NOT (d.collection_id = ? AND substr(d.path, 1, ?) = ? AND EXISTS"
        f" (SELECT 1 FROM documents i WHERE i.collection_id = ?"
        f" AND i.path = substr(d.path, ?){f' AND {also}' if also else ''}))"
    )
