"""What files held before tools changed them, and how to get it back."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ConflictError, NotFoundError
from qmd.files.writing.writer import FileWriter
from qmd.system.beneath import READ
from qmd.values import Revision

if TYPE_CHECKING:
    from qmd.store import Store

TOOL = "restore"


@dataclass(frozen=True, slots=True)
class Restored:
    """
    The file that holds an earlier content again, and which one.

    ``problem``: why searches do not find it yet, in a sentence.
    """

    path: Path
    revision: Revision
    problem: str | None = None


class FileHistory:
    """The earlier contents that `FileWriter` keeps."""

    def __init__(
        self,
        store: Store,
        files: FileWriter,
        candidates: Callable[[str], Sequence[Path]],
    ) -> None:
        """``candidates``: the files that a path may mean, resolved, the likeliest first."""
        self._store = store
        self._files = files
        self._candidates = candidates

    def history(self, path: str | Path) -> list[Revision]:
        """
        What a file held before, the newest first; nothing for one that no tool has changed.

        Args:
            path: On the disk, ``collection/path`` or ``qmd://…``; the file may be gone.

        Raises:
            OutsideRootsError: No file can have that name.
        """
        return self._find(path)[1]

    def content(self, path: str | Path, number: int) -> bytes:
        """
        What a revision holds.

        Raises:
            NotFoundError: The file has no such revision.
        """
        file, kept = self._find(path)
        return self._content(file, _numbered(file, kept, number))

    def restore(self, path: str | Path, number: int | None = None) -> Restored:
        """
        Make an earlier content a file's content again; what it holds now becomes a revision.

        Args:
            number: Which; None for the newest one that differs from what the file holds now.

        Raises:
            NotFoundError: There is no such revision.
            ConflictError: It holds the metadata of a photo, not the photo.
            As `FileWriter.write`.
        """
        file, kept = self._find(path)
        if number is None:
            revision = self._newest_other(file, kept)
        else:
            revision = _numbered(file, kept, number)
        if revision.kind != "content":
            raise ConflictError(
                f"Revision {revision.number} holds what the photo said of itself, not the photo.",
                hint=f"See it with 'qmd history {file} --show {revision.number}'"
                " and set it with 'qmd image tag'.",
            )
        place = self._files.policy.permitted(file)  # its links have been followed
        written = self._files.write(place, self._content(file, revision), tool=TOOL)
        return Restored(written.path, revision, written.problem)

    def _newest_other(self, file: Path, kept: Sequence[Revision]) -> Revision:
        if not kept:
            raise NotFoundError(
                f"No earlier content of {file} is kept.",
                hint="Only what qmd's own tools replaced is; see 'qmd history PATH'.",
            )
        try:
            with os.fdopen(self._files.policy.permitted(file).open(READ), "rb") as stream:
                now = hashlib.sha256(stream.read()).hexdigest()
        except FileNotFoundError:
            now = ""
        for revision in kept:
            if revision.hash != now:
                return revision
        raise ConflictError(
            f"{file} holds its last kept content already.", hint="See 'qmd history PATH'."
        )

    def _content(self, file: Path, revision: Revision) -> bytes:
        with self._store.reading() as reader:
            content = reader.revisions.content(revision.number)
        if content is None:  # just now, another process kept a newer one
            raise _missing(file, revision.number, ())
        return content

    def _find(self, path: str | Path) -> tuple[Path, list[Revision]]:
        """The file that is meant: of several the one that has a history."""
        candidates = self._candidates(str(path))
        with self._store.reading() as reader:
            for file in candidates:
                kept = reader.revisions.history(str(file))
                if kept:
                    return file, kept
        return candidates[0], []


def _numbered(file: Path, kept: Sequence[Revision], number: int) -> Revision:
    for revision in kept:
        if revision.number == number:
            return revision
    raise _missing(file, number, kept)


def _missing(file: Path, number: int, kept: Sequence[Revision]) -> NotFoundError:
    numbers = ", ".join(str(revision.number) for revision in kept)
    return NotFoundError(
        f"There is no revision {number} of {file}.",
        hint=f"There are: {numbers}" if numbers else "See 'qmd history PATH'.",
    )
