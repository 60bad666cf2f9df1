"""Counts the files that a new collection would hold, before it is added."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from time import monotonic

from qmd.ingest.new_collection import new_collection
from qmd.ingest.rules import Rules
from qmd.ingest.scan import Scan, ScannedFile
from qmd.system import cancellation
from qmd.values.reports import CollectionPreview

_EXAMPLES = 8


class _TimeUpError(Exception):
    """Ends the scan."""


def preview(
    path: str | Path,
    name: str | None,
    mask: str,
    ignore: Sequence[str],
    *,
    budget_s: float,
) -> CollectionPreview:
    """
    Scan a directory by the rules of a new collection, for at most ``budget_s`` seconds.

    Raises:
        NotFoundError, InputError: As `new_collection` says.
    """
    new = new_collection(path, name, mask, ignore)
    root = Path(new.path)
    deadline = monotonic() + budget_s

    def check_time() -> None:
        cancellation.check()
        if monotonic() > deadline:
            raise _TimeUpError

    scan = Scan(root, Rules(root, mask, ignore), at_folder=check_time)
    files = size = skipped = 0
    examples: list[str] = []
    is_complete = True
    try:
        for item in scan:
            if isinstance(item, ScannedFile):
                files += 1
                size += item.size
                if len(examples) < _EXAMPLES:
                    examples.append(item.path)
            else:
                skipped += 1
    except _TimeUpError:
        is_complete = False
    return CollectionPreview(
        name=new.name,
        path=new.path,
        files=files,
        bytes=size,
        examples=tuple(examples),
        excluded=dict(sorted(scan.excluded.items())),
        skipped=skipped,
        is_complete=is_complete,
    )
