"""What the writer returns: a file that was written, or the draft of a new version."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from qmd.files.writing.locked_folder import LockedFolder


@dataclass(frozen=True, slots=True)
class Written:
    """
    A file that was written, moved or deleted.

    Attributes:
        path: The file, all links followed; of a moved file the new path.
        existed: Whether the file was there before.
        bytes: Its size now.
        problem: A sentence that says why the index does not have the new content; None if it has.
            The file itself was written. Inside a `FileWriter.change` it is always None.
    """

    path: Path
    existed: bool
    bytes: int
    problem: str | None = None


@dataclass(slots=True)
class Draft:
    """
    A new version of an existing file. Without a call of `commit` the file is not changed.

    Attributes:
        path: The file, all links followed.
        original: A descriptor of the file, for reading. A program that needs a path gets a copy in
            a private directory, where nobody can replace it by a link.
        temporary: A path beside the file at which the new version may be written.
        written: The result of `commit`; None before.
    """

    path: Path
    original: int
    temporary: Path
    _folder: LockedFolder
    _commit: Callable[[Draft, Path | None, bytes | None], None]
    written: Written | None = field(default=None)

    def state(self) -> tuple[int, ...] | None:
        """The `state_of` the file now; None if it is gone."""
        return self._folder.state(self.path.name)

    def commit(self, new: Path | None = None, *, kept: bytes | None) -> None:
        """
        Replace the file by its new version.

        Args:
            new: The path of the new version; None if it was written to ``temporary``.
            kept: The earlier metadata, for the revisions; None to keep nothing.

        Raises:
            OSError, QmdError: The file was not changed.
        """
        self._commit(self, new, kept)
