"""
The files that tools read and write: notes, posts, photos, summaries, and earlier contents.

Each property makes a new object from the settings and the collections as they are now.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, inference, ingest, search, values
from qmd.errors import ConfigError, PhotoError, QmdError
from qmd.files import photos, writing
from qmd.kb.documents import DocumentMethods
from qmd.kb.parts import Parts, open_to_scopes
from qmd.records import replace
from qmd.search import lookup
from qmd.settings import POSTS_DIR
from qmd.system.session import current_confirm

if TYPE_CHECKING:
    from qmd.files.notes import Notes, Summary
    from qmd.files.photos.exiftool import ExifTool
    from qmd.files.photos.images import Images
    from qmd.files.posts import PostArchive
    from qmd.files.revisions import FileHistory
    from qmd.files.undo import Undo
    from qmd.files.vault import Vault
    from qmd.files.writing.policy import WritePolicy
    from qmd.files.writing.writer import FileWriter
    from qmd.store import Reader, Store
    from qmd.values import Collection, DocumentInfo, PhotoChange, PhotoMetadata, PhotoWritten
    from qmd.values.photos import PhotoFilter, PhotoList, PhotoProposal
    from qmd.values.proposed import Confirm


class FileMethods(Parts):
    @property
    @open_to_scopes
    def policy(self) -> WritePolicy:
        """
        Where tools may change files.

        If the settings have write roots: below these. If not: in the collections, the vault and the
        working directory, and in what is not hidden of the home and temporary directories; but if
        each write is confirmed, in the collections and the vault alone.
        """
        return self._policy(self._store)

    @property
    @open_to_scopes
    def confirms_writes(self) -> bool:
        """
        Whether a person confirms each write of this thread's work (``Settings.confirm_writes``,
        or `qmd.system.session`).
        """
        return self._confirm is not None

    @property
    def _confirm(self) -> Confirm | None:
        return current_confirm() or self._settings.confirm_writes

    @property
    @open_to_scopes
    def files(self) -> FileWriter:
        """Writes files where `policy` allows it."""
        return self._writer(self._store)

    @property
    @open_to_scopes
    def revisions(self) -> FileHistory:
        """The contents that files had before tools changed them."""
        store = self._store

        def candidates(name: str) -> list[Path]:
            return store.read(lambda reader: files_with_history(reader, name))

        return files.revisions.FileHistory(self._writer(store), candidates)

    @property
    @open_to_scopes
    def undo(self) -> Undo:
        """Lists and undoes the changes that tools have written."""
        store = self._store
        collections = _collections(store)
        return files.undo.Undo(self._writer(store), lambda path: _name(path, collections))

    @open_to_scopes
    def file_name(self, path: Path) -> str:
        """``collection/path`` of a file; its absolute path if it is in no collection."""
        return _name(path, _collections(self._store))

    @property
    def summary(self) -> Summary:
        """Writes the texts that AI clients keep with the toolset ``summary``."""
        return files.notes.Summary(self.files)

    @property
    def images(self) -> Images:
        """Reads and writes the metadata of photos."""
        return self._images()

    def _images(self) -> Images:
        store = self._store
        return photos.images.Images(lambda: self._writer(store), self._exiftool())

    @staticmethod
    def photo_metadata(path: str | Path) -> PhotoMetadata:
        """Read the metadata of a photo. Raises PhotoError."""
        return photos.images.Images.show(path)

    @property
    @open_to_scopes
    def notes(self) -> Notes:
        """Reads, creates and lists notes, in the vault or in the collections."""
        store = self._store
        directory = self._settings.vault

        def vault() -> Vault:
            if directory is not None:
                return files.vault.Vault.of_directory(Path(directory).expanduser())
            return store.read(vault_of)

        return files.notes.Notes(vault, lambda: self._writer(store))

    @property
    def posts(self) -> PostArchive:
        """Lists, reads and searches the archive of posts."""
        return files.posts.PostArchive(self._store, Path(self._settings.posts_dir))

    def has_posts(self) -> bool:
        """
        Whether there is an archive of posts. The default directory, ``data``, may hold anything, so
        it counts only if it looks like one.
        """
        directory = Path(self._settings.posts_dir)
        is_default = directory == Path(POSTS_DIR)
        return self.posts.looks_like_one() if is_default else self.posts.exists()

    def _policy(self, store: Store) -> WritePolicy:
        policy = self._policy_of_roots(store)
        pushed = self._settings.push_folder
        if pushed is None:
            return policy
        return replace(policy, pushed=Path(pushed).expanduser().resolve())

    def _policy_of_roots(self, store: Store) -> WritePolicy:
        settings = self._settings
        if settings.read_only_files:
            return writing.policy.WritePolicy.read_only()
        directories: list[str | Path] = [collection.path for collection in _collections(store)]
        if settings.vault is not None:
            directories.append(settings.vault)
        if self.confirms_writes:
            return writing.policy.WritePolicy.for_agent(directories, settings.write_roots)
        if settings.write_roots:
            return writing.policy.WritePolicy.explicit(settings.write_roots)
        return writing.policy.WritePolicy.default(directories)

    def _writer(self, store: Store) -> FileWriter:
        return writing.writer.FileWriter(
            store,
            self._policy(store),
            lambda files: ingest.index.index_files(store, files, _collections(store), self._events),
            confirm=self._confirm,
        )

    def _exiftool(self) -> ExifTool:
        """The program that writes into photos; one for each open database file."""
        opened = self._current()
        with self._lock:
            if opened.exiftool is None:
                opened.exiftool = photos.exiftool.ExifTool(self._settings.exiftool)
            return opened.exiftool


def _collections(store: Store) -> list[Collection]:
    return store.read(lambda reader: reader.collections.all())


def vault_of(reader: Reader) -> Vault:
    """The collections, as the vault in which notes are edited."""
    return files.vault.Vault.of_collections(reader.collections.all())


def _name(path: Path, collections: Sequence[Collection]) -> str:
    """``collection/path`` of a file; its path if it is in no collection."""
    for collection in collections:
        root = Path(os.path.realpath(collection.path))
        if path.is_relative_to(root):
            return f"{collection.name}/{path.relative_to(root).as_posix()}"
    return str(path)


def document_without_file(reader: Reader, name: str) -> DocumentInfo | None:
    """
    The document with a name that is not the path of an existing file; None without one.

    Raises:
        AmbiguousNameError: Several documents have the name.
    """
    try:
        files = ingest.collection_paths.candidate_files(name, reader.collections.all())
    except QmdError:  # no collection is called so, or no file can be
        files = []
    return None if any(map(os.path.lexists, files)) else lookup.resolve.find_document(reader, name)


def files_with_history(reader: Reader, name: str) -> list[Path]:
    """
    The files, existing or not, that a name may mean, the likeliest first, all links followed.

    A path of a file that exists, or that has revisions, is never taken for another name.

    Raises:
        CollectionNotFoundError: A ``qmd://`` path names no collection.
        InputError: No file can have that name.
        AmbiguousNameError: Several documents have the name, and no file has this path.
    """
    files = ingest.collection_paths.candidate_files(name, reader.collections.all())
    if any(os.path.lexists(file) or reader.revisions.history(str(file)) for file in files):
        return files
    document = lookup.resolve.find_document(reader, name)
    if document is None:
        return files
    root = reader.collections.by_name(document.collection).path
    return [Path(os.path.realpath(Path(root, document.path))), *files]


class PhotoMethods(DocumentMethods, FileMethods):
    @open_to_scopes
    def photos(
        self, chosen: PhotoFilter | None = None, *, limit: int = 60, offset: int = 0
    ) -> PhotoList:
        """
        The photos of all collections, the latest first, and what they can be filtered by.

        Raises:
            InputError: A filter is none.
        """
        with self._store.reading() as reader:
            return search.listing.list_photos(
                reader, chosen or values.PhotoFilter(), limit=limit, offset=offset
            )

    @open_to_scopes
    def has_photos(self) -> bool:
        """Whether any document is a photo."""
        return self._store.read(search.listing.has_photos)

    @open_to_scopes
    def photos_beside(self, file: str, chosen: PhotoFilter | None = None) -> tuple[str, str]:
        """The photos before and after ``file`` in `photos`; "" where there is none."""
        with self._store.reading() as reader:
            return search.listing.photos_beside(reader, file, chosen or values.PhotoFilter())

    @open_to_scopes
    def thumbnail(self, file: str, *, side: int) -> tuple[bytes | None, str]:
        """
        A small JPEG of a photo, ``collection/path``, and a text that changes with its file.

        Args:
            side: The longest side in pixels.

        Returns:
            None for a photo that cannot be decoded, or not within the limits for one.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
        """
        version = self.file_version(file)
        collection, _, path = file.partition("/")
        return files.pictures.thumbnail(self._root(collection), path, side), version

    @open_to_scopes
    def metadata_of_photo(self, file: str) -> PhotoMetadata:
        """
        The metadata of the photo ``collection/path``, as its file has it now.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
            PhotoError: It cannot be read as a photo.
        """
        return photos.images.Images.show(self._disk_path(file))

    @open_to_scopes
    def change_photo(self, file: str, change: PhotoChange) -> PhotoWritten:
        """
        Change the metadata of the photo ``collection/path``; `undo` takes it back.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
            PhotoError: It cannot be written; it is as it was then.
        """
        return self._images().write(self._disk_path(file), change)

    def describe_photo(self, path: str | Path, *, language: str = "English") -> PhotoProposal:
        """
        Ask the language model of the settings what a photo shows; nothing is written.

        The model gets a picture of at most 1,600 pixels, without the metadata of the photo.

        Args:
            path: A JPEG or PNG file.
            language: Of the description and the tags.

        Raises:
            ConfigError: The settings name no model.
            PhotoError: It cannot be decoded.
            InferenceError: The server cannot be reached or refuses, or its answer is of no use.
        """
        backends = self._settings.backends
        if not backends.llm_model:
            raise ConfigError(
                "No model is named that could look at the photo.",
                hint="Name one that takes pictures: --llm-model NAME, with --llm-url its server.",
            )
        file = Path(path).absolute()
        self.photo_metadata(file)  # what is no photo is told as such
        picture = files.pictures.thumbnail(str(file.parent), file.name, max(files.pictures.SIDES))
        if picture is None:
            reason = "it cannot be decoded, or not within the limits for one"
            raise PhotoError(
                "unsupported", f"{file.name} cannot be shown to a model: {reason}.", reason=reason
            )
        server = backends.server()
        chat = inference.assistant.ChatEndpoint(
            inference.llm.endpoint.ModelEndpoint(server), server.model
        )
        return inference.assistant.describe(
            chat, picture, language=language, timeout_s=server.timeout_s
        )

    def _disk_path(self, file: str) -> Path:
        return Path(*self._root_and_path(file))
