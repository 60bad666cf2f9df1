"""Which files of a collection are no documents, so that notes can embed them and link to them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.ingest.rules import IGNORE_FILES

if TYPE_CHECKING:
    from qmd.store import Reader


class AttachmentChanges(NamedTuple):
    """The paths to store, and the stored paths to forget."""

    added: set[str]
    removed: set[str]


class SeenFiles(NamedTuple):
    """
    The files of a scan that are no documents.

    Attributes:
        others: As `qmd.ingest.scan.Scan.others`.
        skipped: Paths of files that the rules include and that are no documents.
        unreadable_folders: The files below them are unknown.
    """

    others: Iterable[str]
    skipped: Iterable[str]
    unreadable_folders: Sequence[str]


def attachment_changes(
    reader: Reader, collection_id: int, places: Iterable[str], seen: SeenFiles
) -> AttachmentChanges:
    """
    Compare the attachments that a scan has found with those that are stored.

    Args:
        places: The paths at and below which the scan has looked; "" is the root.
    """
    present = set(seen.others)
    present.update(
        path
        for path in seen.skipped
        if path not in seen.unreadable_folders and path.rpartition("/")[2] not in IGNORE_FILES
    )
    stored = reader.files.attachments_at_or_below(collection_id, places)
    if seen.unreadable_folders:  # what is stored below them stays
        unknown = tuple(f"{folder}/" for folder in seen.unreadable_folders)
        present.update(path for path in stored if path.startswith(unknown))
    return AttachmentChanges(present - stored, stored - present)
