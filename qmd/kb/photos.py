"""Listing photos, showing them small, and changing their metadata."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from qmd import inference, search, values
from qmd.errors import ConfigError, PhotoError
from qmd.files import photos
from qmd.kb.documents import DocumentMethods
from qmd.kb.files import FileMethods
from qmd.kb.parts import open_to_scopes

if TYPE_CHECKING:
    from qmd.values import PhotoChange, PhotoMetadata, PhotoWritten
    from qmd.values.photos import PhotoFilter, PhotoList, PhotoProposal


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
            return search.photos.list_photos(
                reader, chosen or values.PhotoFilter(), limit=limit, offset=offset
            )

    @open_to_scopes
    def has_photos(self) -> bool:
        """Whether any document is a photo."""
        with self._store.reading() as reader:
            return search.photos.has_photos(reader)

    @open_to_scopes
    def photos_beside(self, file: str, chosen: PhotoFilter | None = None) -> tuple[str, str]:
        """The photos before and behind ``file`` in `photos`; "" where there is none."""
        with self._store.reading() as reader:
            return search.photos.photos_beside(reader, file, chosen or values.PhotoFilter())

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
        return photos.thumbnail.thumbnail(self._root(collection), path, side), version

    def metadata_of_photo(self, file: str) -> PhotoMetadata:
        """
        The metadata of the photo ``collection/path``, as its file has it now.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
            PhotoError: It cannot be read as a photo.
        """
        return self.photo_metadata(self._disk_path(file))

    def change_photo(self, file: str, change: PhotoChange) -> PhotoWritten:
        """
        Change the metadata of the photo ``collection/path``; `undo` takes it back.

        Raises:
            DocumentNotFoundError, CollectionNotFoundError: As `open_file`.
            PhotoError: It cannot be written; it is as it was then.
        """
        return self.images.write(self._disk_path(file), change)

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
        picture = photos.thumbnail.thumbnail(
            str(file.parent), file.name, max(photos.thumbnail.SIDES)
        )
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
        self.open_file(file).close()  # only files that the index lists
        collection, _, path = file.partition("/")
        return Path(self._root(collection), path)
