"""
Metadata of photos: what they say, and writing it without touching anything else.

Nothing is written into the photo itself. exiftool gets a copy in a private directory and makes a
changed one there, which must hold the new metadata, the same image data and be read again, before
it takes the photo's place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ExifToolError, FileChangedError, OutsideRootsError, WriteDeclinedError
from qmd.files.photos import photo_file, photo_plan
from qmd.files.photos.exiftool import ExifTool, Turn
from qmd.files.photos.photo_file import image_digest, open_photo, require_writable_photo
from qmd.files.photos.photo_plan import (
    FieldValues,
    MetadataPlan,
    differing_fields,
    is_foreign,
    put_iptc_in_utf8,
    read_fields,
    read_tags,
    with_translated_iptc,
)
from qmd.files.writing.writer import NewMetadata
from qmd.parse.photo import jpeg
from qmd.parse.photo.iptc import read_iptc
from qmd.parse.photo.metadata import read_metadata
from qmd.parse.photo.source import (
    MetadataBlocks,
    MeteredSource,
    PhotoKind,
    PhotoSource,
    TooMuchMetadataError,
)
from qmd.system.beneath import READ
from qmd.values import PhotoChange, PhotoMetadata, PhotoWritten

if TYPE_CHECKING:
    from qmd.files.writing.writer import FileWriter

TOOL = "writeImageMetadata"
#: Tags that exiftool leaves out of "all".
_UNLISTED = ("-ExifIFD:MakerNoteUnknown", "-ThumbnailImage", "-PreviewImage", "-ICC_Profile")


class Images:
    """Photos on the disk, whether they are documents or not. Thread-safe."""

    def __init__(self, files: Callable[[], FileWriter], exiftool: ExifTool) -> None:
        self._files = files
        self._exiftool = exiftool

    @staticmethod
    def show(path: str | Path) -> PhotoMetadata:
        """
        What a photo says about itself; needs no exiftool.

        Raises:
            PhotoError: It is not there, cannot be read, or is no JPEG, PNG or HEIC image.
        """
        with open_photo(str(path), lambda: os.open(path, READ)) as photo:
            return read_metadata(photo, str(path))

    def write(
        self, path: str | Path, change: PhotoChange, *, overwrite: bool = True
    ) -> PhotoWritten:
        """
        Write metadata into a photo; when it returns, the index holds it as well.

        A change without any field touches nothing.

        Args:
            overwrite: See `photo_plan.plan`.

        Raises:
            PhotoError: With ``problem`` in the order of its checks; the photo is as it was.
            StoreError: The database cannot note what was there before.
        """
        named_path = str(path)
        photo_plan.check(change)
        files = self._files()
        kind, place = require_writable_photo(named_path, files.policy)
        if change == PhotoChange():
            return PhotoWritten(named_path, kind, changed=False)
        plan = MetadataPlan({})

        def content(present: bytes | None) -> bytes | NewMetadata:
            nonlocal plan
            if present is None:
                raise photo_file.not_found(named_path)
            image = image_digest(present, kind)
            if image is None:
                raise photo_file.not_written(
                    named_path,
                    "truncated",
                    "the file ends in the middle of the image",
                    hint="Restore it from where it came from; a copy of it was cut short.",
                )
            with self._exiftool.turn() as turn:
                copy = _Copy(turn, named_path, kind, present)
                plan = photo_plan.plan(copy.fields, change, kind, overwrite=overwrite)
                if not plan.changed(copy.fields):
                    return present
                new = copy.changed(plan)
            if image_digest(new.data, kind) != image:
                raise photo_file.not_verified(named_path, "the copy does not hold the same image")
            return new

        try:
            written = files.rewrite(place, content, tool=TOOL)
        except ExifToolError as error:
            if error.cause in ("refused", "ended") and photo_file.is_full(named_path):
                raise photo_file.disk_full(named_path) from error
            raise photo_file.not_written(
                named_path, error.cause, error.reason, hint=error.hint
            ) from error
        except OutsideRootsError as error:
            raise photo_file.outside(error) from error
        except WriteDeclinedError as error:
            raise photo_file.not_written(named_path, "declined", error.with_hint) from error
        except FileChangedError as error:
            raise photo_file.not_written(
                named_path,
                "changed",
                "another program changed the photo meanwhile",
                hint="Try again.",
            ) from error
        except OSError as error:
            raise photo_file.disk_error(named_path, error) from error
        return PhotoWritten(
            named_path,
            kind,
            changed=written.change is not None,
            kept=plan.kept,
            problem=written.problem,
        )


class _Copy:
    """
    The copy of a photo that exiftool reads in one turn, and changes.

    Attributes:
        fields: What the photo says.
    """

    def __init__(self, turn: Turn, named_path: str, kind: PhotoKind, data: bytes) -> None:
        self._turn = turn
        self._named_path = named_path
        self._kind = kind
        self._photo, self._new = f"photo.{kind.lower()}", f"changed.{kind.lower()}"
        turn.put(self._photo, data)
        records = _iptc_records(data, named_path) if kind == "JPG" else b""
        iptc = read_iptc(records)
        # Records without an encoding are UTF-8 if they are valid UTF-8.
        self._encoding = ["-charset", "IPTC=UTF8"] if iptc.encoding == "utf-8" else []
        self._translated = put_iptc_in_utf8(turn, iptc, records)
        self.fields = read_fields(turn, self._photo, self._encoding, self._translated)

    def changed(self, plan: MetadataPlan) -> NewMetadata:
        """
        The photo with other metadata.

        Raises:
            PhotoError: The changed copy lacks a new value.
            ExifToolError: There is no changed copy.
        """
        changed = plan.changed(self.fields)
        arguments = photo_plan.arguments(changed, self.fields, iptc_from=self._translated)
        self._write([*self._encoding, *arguments])
        try:
            now = read_fields(self._turn, self._new, self._encoding, None)
        except ExifToolError as error:
            if error.cause != "refused":
                raise
            raise photo_file.not_verified(self._named_path, error.reason) from error
        different = differing_fields(plan.target, self.fields, now)
        if different:
            raise photo_file.not_verified(
                self._named_path, f"the copy does not hold the new {different}"
            )
        before = {field: self.fields.get(field, ()) for field in changed}
        kept = _kept(self.fields, self._kind)
        return NewMetadata(self._turn.get(self._new), kept, before, changed)

    def _write(self, arguments: list[str]) -> None:
        """
        Make the changed copy.

        exiftool rather leaves a photo alone in which it finds something odd, such as the notes of a
        maker it does not know: then it is told to go on, and all tags of the copy are compared.

        Raises:
            ExifToolError.
        """
        turn = self._turn
        try:
            turn.write(self._photo, arguments, self._new)
        except ExifToolError as error:
            if error.cause != "refused" or "[minor]" not in error.reason:
                raise
            all_tags = ["-b", "-n", "-all", *_UNLISTED]
            before = read_tags(turn.read(self._photo, all_tags))
            before = with_translated_iptc(before, turn, all_tags, self._translated)
            turn.write(self._photo, ["-m", *arguments], self._new)
            now = read_tags(turn.read(self._new, all_tags))
            if any(now.get(tag) != values for tag, values in before.items() if is_foreign(tag)):
                raise


def _iptc_records(data: bytes, named_path: str) -> bytes:
    """All IPTC records, since all are written anew. Raises PhotoError: There are too many."""
    blocks = MetadataBlocks("JPG")
    try:
        jpeg.read_blocks(MeteredSource(PhotoSource.of_bytes(data)), blocks)
    except TooMuchMetadataError as error:
        raise photo_file.not_written(named_path, "refused", str(error).rstrip(".")) from error
    return blocks.iptc or b""


def _kept(present: FieldValues, kind: PhotoKind) -> bytes:
    """The metadata that the photo had, in JSON, for the revisions."""
    people = present.get(photo_plan.PEOPLE, ())
    tags = [name for name in photo_plan.keywords(present, kind) if name not in people]

    def text(fields: tuple[str, ...]) -> str | None:
        return next((present[field][0] for field in fields if present.get(field)), None)

    metadata = {
        "tags": tags,
        "people": list(people),
        "description": text(photo_plan.DESCRIPTIONS),
        "location": text(photo_plan.LOCATIONS),
    }
    return (json.dumps(metadata, ensure_ascii=False, indent=2) + "\n").encode()
