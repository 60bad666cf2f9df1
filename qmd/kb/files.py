"""Files on the disk: notes, posts, photos, and writing them with what was there before kept."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmd.kb.parts import Parts

if TYPE_CHECKING:
    from qmd.files.notes.notes import Notes
    from qmd.files.photos.images import Images
    from qmd.files.posts.archive import PostArchive
    from qmd.files.revisions import FileHistory
    from qmd.files.summary import Summary
    from qmd.files.writing.policy import WritePolicy
    from qmd.files.writing.writer import FileWriter
    from qmd.values import PhotoMetadata


class FileMethods(Parts):
    @property
    def policy(self) -> WritePolicy:
        """
        Where tools may change files: in the write roots of the settings; else in the collections,
        the vault, the working directory, and what is not hidden in the home and temporary
        directories. Where writes are confirmed: in the write roots; else in collections and vault.
        """
        return self._file_tools.policy()

    @property
    def confirms_writes(self) -> bool:
        """Whether the settings have ``confirm_writes``, as for a language model."""
        return self._settings.confirm_writes is not None

    @property
    def files(self) -> FileWriter:
        """Changes files on the disk, where `policy` allows it."""
        return self._file_tools.files()

    @property
    def revisions(self) -> FileHistory:
        """What files held before tools changed them."""
        return self._file_tools.revisions()

    @property
    def summary(self) -> Summary:
        """Writes texts that AI clients want kept, as the toolset ``summary`` does."""
        return self._file_tools.summary()

    @property
    def images(self) -> Images:
        """What photos say about themselves, and writing it."""
        return self._file_tools.images()

    @staticmethod
    def photo_metadata(path: str | Path) -> PhotoMetadata:
        """What a photo says about itself. Raises PhotoError."""
        from qmd.files.photos.images import Images

        return Images.show(path)

    @property
    def notes(self) -> Notes:
        """Read, create and list notes, in the vault or across the collections."""
        return self._file_tools.notes()

    @property
    def posts(self) -> PostArchive:
        """The archive of posts: its authors, their posts, and literals in them."""
        return self._file_tools.posts()
