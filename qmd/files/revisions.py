"""Lists and restores the contents that files had before tools changed them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from qmd.engine_text import engine_text
from qmd.errors import ConflictError, NotFoundError
from qmd.files.writing.writer import FileWriter
from qmd.values import Revision

TOOL = "restore"


@dataclass(frozen=True, slots=True)
class Restored:
    """
    A file whose earlier content was restored.

    Attributes:
        revision: The revision that was restored.
        problem: A sentence that says why searches do not find the content yet; None if they do.
    """

    path: Path
    revision: Revision
    problem: str | None = None


@dataclass(eq=False)
class FileHistory:
    """
    The earlier contents that `FileWriter` keeps.

    ``_candidates`` returns the resolved files that a path may mean, the likeliest first.
    """

    _files: FileWriter
    _candidates: Callable[[str], Sequence[Path]]

    def history(self, path: str | Path) -> list[Revision]:
        """
        The revisions of a file, the newest first; empty if no tool has changed the file.

        Args:
            path: A path on the disk, ``collection/path`` or ``qmd://…``, of which the file need
                not exist; else any name of a document.

        Raises:
            OutsideRootsError: No file can have that name.
            AmbiguousNameError: Several documents have the name.
        """
        return self._find(path)[1]

    @staticmethod
    def before(revisions: Sequence[Revision], change: int) -> Revision | None:
        """
        The revision with what a file was before a change; None if there is none.

        A change may have done several things to the file, such as moving and rewriting it.

        Args:
            revisions: Those of the file, the newest first.
        """
        of_change = [each for each in reversed(revisions) if each.number == change]
        with_content = [each for each in of_change if each.kind != "none"]
        return next(iter(with_content or of_change), None)

    def content(self, path: str | Path, number: int) -> bytes:
        """
        The content of a file before a change.

        Args:
            number: That of the change.

        Raises:
            NotFoundError: No such change of the file is kept.
        """
        file, kept = self._find(path)
        return self._content(file, _revision_with_number(file, kept, number))

    def restore(self, path: str | Path, number: int | None = None) -> Restored:
        """
        Restore an earlier content of a file; the present content becomes a revision.

        Args:
            number: The change before which the file had the content; None for the newest content
                that differs from the present one. Of a file that is gone that is what the last
                change left, if it is kept.

        Raises:
            NotFoundError: No such change of the file is kept.
            ConflictError: The revision holds the metadata of a photo, not the photo; or no
                revision differs from the present content.
            The errors of `FileWriter.rewrite`.
        """
        file, kept = self._find(path)
        if number is None:
            revision = self._newest_different(file, kept)
        else:
            revision = _revision_with_number(file, kept, number)
        if revision.kind == "none":
            raise ConflictError(
                f"Change {revision.number} kept no content: {_without_content(revision)}.",
                hint=f"Take it back with 'qmd undo {revision.number}'.",
            )
        if revision.kind != "content":
            raise ConflictError(
                f"Change {revision.number} kept what the photo said of itself, not the photo.",
                hint=f"See it with 'qmd history {file} --show {revision.number}'"
                " and set it with 'qmd image tag'.",
            )
        place = self._files.policy.permitted(file)  # `_find` has followed its links
        content = self._content(file, revision)
        written = self._files.rewrite(place, lambda _: content, tool=TOOL)
        return Restored(written.path, revision, written.problem)

    def _newest_different(self, file: Path, kept: Sequence[Revision]) -> Revision:
        left = kept[0].hash_after if kept else None
        kept = [revision for revision in kept if revision.kind != "none"]
        if not kept:
            raise NotFoundError(
                engine_text("No earlier content of {file} is kept.", file=file),
                hint="Only what qmd's own tools replaced is; see 'qmd history PATH'.",
            )
        try:
            present = self._files.policy.permitted(file).read()
            present_hash = hashlib.sha256(present).hexdigest()
        except FileNotFoundError:
            # An undo keeps what it replaced, which is older than what it left.
            return next((each for each in kept if each.hash == left), kept[0])
        for revision in kept:
            if revision.hash != present_hash:
                return revision
        raise ConflictError(
            engine_text("{file} holds its last kept content already.", file=file),
            hint="See 'qmd history PATH'.",
        )

    def _content(self, file: Path, revision: Revision) -> bytes:
        if revision.kind == "none":
            raise NotFoundError(
                f"Change {revision.number} kept no content: {_without_content(revision)}.",
                hint="See 'qmd history PATH'.",
            )
        content = self._files.store.read(lambda reader: reader.revisions.content(revision.id))
        if content is None:  # another process has just replaced it with a newer one
            raise _no_such_revision(file, revision.number, ())
        return content

    def _find(self, path: str | Path) -> tuple[Path, list[Revision]]:
        """The first candidate that has revisions, and these; else the likeliest candidate."""
        candidates = self._candidates(str(path))
        with self._files.store.reading() as reader:
            for file in candidates:
                # Before its creation there was nothing to list or to restore.
                kept = [
                    revision
                    for revision in reader.revisions.history(str(file))
                    if revision.action != "create"
                ]
                if kept:
                    return file, kept
        return candidates[0], []


def _without_content(revision: Revision) -> str:
    """Why a revision of the kind "none" holds no content; no full stop."""
    if revision.action == "move":
        return f"the file was moved then, from {revision.moved_from}"
    return "it is too long to be kept"


def _revision_with_number(file: Path, kept: Sequence[Revision], number: int) -> Revision:
    revision = FileHistory.before(kept, number)
    if revision is None:
        raise _no_such_revision(file, number, kept)
    return revision


def _no_such_revision(file: Path, number: int, kept: Sequence[Revision]) -> NotFoundError:
    numbers = ", ".join(dict.fromkeys(str(revision.number) for revision in kept))
    return NotFoundError(
        engine_text("No change {number} of {name} is kept.", number=number, name=file),
        hint=f"There are: {numbers}" if numbers else "See 'qmd history PATH'.",
    )
