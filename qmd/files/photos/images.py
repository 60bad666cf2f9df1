"""
Reads what the metadata of a photo say, and writes it without touching anything else.

Nothing is written into the photo itself. exiftool gets a copy in a private directory and makes a
changed one there, which must hold the new metadata, the same image data and be read again, before
it takes the photo's place.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from qmd import errors
from qmd.files.photos import photo_plan
from qmd.files.photos.exiftool import ExifTool, Turn
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
from qmd.files.writing.policy import ResolvedPath, WritePolicy
from qmd.files.writing.writer import FileWriter, NewMetadata
from qmd.parse.formats import is_photo
from qmd.parse.photo import containers, source
from qmd.parse.photo.metadata import read_kind, read_metadata
from qmd.parse.photo.standards import read_iptc
from qmd.system.beneath import READ
from qmd.values import PhotoChange, PhotoMetadata, PhotoWritten

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
                raise not_found(named_path)
            image = image_digest(present, kind)
            if image is None:
                raise not_written(
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
                raise not_verified(named_path, "the copy does not hold the same image")
            return new

        try:
            written = files.rewrite(place, content, tool=TOOL)
        except errors.ExifToolError as error:
            if error.cause in ("refused", "ended") and is_full(named_path):
                raise disk_full(named_path) from error
            raise not_written(named_path, error.cause, error.reason, hint=error.hint) from error
        except errors.OutsideRootsError as error:
            raise outside(error) from error
        except errors.WriteDeclinedError as error:
            raise not_written(named_path, "declined", error.with_hint) from error
        except errors.FileChangedError as error:
            raise not_written(
                named_path,
                "changed",
                "another program changed the photo meanwhile",
                hint="Try again.",
            ) from error
        except OSError as error:
            raise disk_error(named_path, error) from error
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

    def __init__(self, turn: Turn, named_path: str, kind: source.PhotoKind, data: bytes) -> None:
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
        except errors.ExifToolError as error:
            if error.cause != "refused":
                raise
            raise not_verified(self._named_path, error.reason) from error
        different = differing_fields(plan.target, self.fields, now)
        if different:
            raise not_verified(self._named_path, f"the copy does not hold the new {different}")
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
        except errors.ExifToolError as error:
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
    blocks = source.MetadataBlocks("JPG")
    try:
        containers.jpeg_blocks(source.MeteredSource(source.PhotoSource.of_bytes(data)), blocks)
    except source.TooMuchMetadataError as error:
        raise not_written(named_path, "refused", str(error).rstrip(".")) from error
    return blocks.iptc or b""


def _kept(present: FieldValues, kind: source.PhotoKind) -> bytes:
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


# ruff: noqa: PTH116


# --- a photo on the disk ----------------------------------------------------------------
# Whether it may be written, its bytes, its image data. Each error is a `PhotoError` that names the
# path as the caller wrote it, ``named_path``.

#: A larger photo is not written: its bytes and those of the new one are held in memory.
MAX_BYTES = 256 << 20
_IMAGE_DATA = {
    "JPG": containers.jpeg_image_data,
    "PNG": containers.png_image_data,
    "HEIC": containers.heic_image_data,
}


def require_writable_photo(
    named_path: str, policy: WritePolicy
) -> tuple[source.PhotoKind, ResolvedPath]:
    """
    The format of a photo that may be written, and where it lies. Raises PhotoError: what is
    wrong first.

    Where nothing may be written, the error says only that, and not whether the file exists.
    """
    try:
        policy.require_writable()
    except errors.OutsideRootsError as error:
        raise outside(error) from error
    _require_permissions(named_path)
    try:
        place = policy.resolve(named_path)
        str(place.target).encode()
    except errors.OutsideRootsError as error:
        raise outside(error) from error
    except UnicodeEncodeError as error:
        raise not_written(
            named_path,
            "name",
            "its name is not valid UTF-8, which the database needs",
            "Rename it.",
        ) from error
    if not os.access(place.target.parent, os.W_OK | os.X_OK):
        raise unwritable(named_path, "no file can be made in its folder")
    with open_photo(named_path, lambda: place.open(READ)) as photo:
        if photo.size > MAX_BYTES:
            reason = f"it has more than {MAX_BYTES >> 20} MB"
            raise not_written(named_path, "size", reason)
        return read_kind(photo, named_path), place


def _require_permissions(named_path: str) -> None:
    """Raises PhotoError: there is no such regular file, or its mode forbids to read or write it."""
    try:
        with reading(named_path):
            mode = os.stat(named_path).st_mode
    except ValueError as error:  # no file can have this name
        raise not_found(named_path) from error
    if not stat.S_ISREG(mode):
        raise unreadable(named_path, "it is no regular file")
    # The superuser may write any file; we respect a mode that forbids it.
    if not mode & 0o444 or not os.access(named_path, os.R_OK):
        raise unreadable(named_path, "its permissions forbid it")
    if not mode & 0o222 or not os.access(named_path, os.W_OK):
        raise unwritable(named_path, "its permissions forbid it")


@contextmanager
def open_photo(named_path: str, open_it: Callable[[], int]) -> Iterator[source.PhotoSource]:
    """
    The bytes of a photo; ``open_it`` gives a descriptor.

    Raises:
        PhotoError: It is not there, cannot be read, or the block finds that it is no photo.
    """
    try:
        with reading(named_path):
            descriptor = open_it()
    except ValueError as error:  # no file can have this name
        raise not_found(named_path) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise unreadable(named_path, "it is no regular file")
        with (
            reading(named_path),
            os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream,
        ):
            if not is_photo(named_path):
                raise errors.NotAPhotoError("its name does not end in .jpg, .jpeg, .png or .heic")
            yield source.PhotoSource(stream, status.st_size)
    finally:
        os.close(descriptor)


def image_digest(data: bytes, kind: source.PhotoKind) -> bytes | None:
    """A digest of the image data alone; None if the photo ends in the middle of it."""
    places = _IMAGE_DATA[kind](source.PhotoSource.of_bytes(data))
    if places is None:
        return None
    digest = hashlib.blake2b(digest_size=32)
    whole = memoryview(data)
    for offset, length in places:
        digest.update(length.to_bytes(8, "big"))
        digest.update(whole[offset : offset + length])
    return digest.digest()


_FULL = {errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC)}
_METADATA = 256 * 1024  # more than all that may be written

#: Problem → the sentence, and what to do unless something better is known.
_WORDS: dict[errors.PhotoProblem, tuple[str, str]] = {
    "not_found": ("There is no file {path}", "Check the path."),
    "not_readable": (
        "The file cannot be read: {path} ({reason}).",
        "Name a photo that you may read.",
    ),
    "not_writable": (
        "The file may not be written: {path} ({reason}).",
        "Check the permissions of the file and of its folder.",
    ),
    "unsupported": (
        "Not a JPG, PNG or HEIC photo: {path} ({reason}).",
        "Metadata is written into JPG, PNG and HEIC files.",
    ),
    "not_written": ("Nothing was written into {path}: {reason}.", "The photo is as it was."),
    "not_verified": (
        "Nothing was written into {path}: {reason}.",
        "The photo is as it was. Please report it, with the photo if you can.",
    ),
}


def photo_error(
    problem: errors.PhotoProblem,
    named_path: str,
    cause: str,
    reason: str = "",
    hint: str | None = None,
) -> errors.PhotoError:
    message, usual_hint = _WORDS[problem]
    return errors.PhotoError(
        problem,
        message.format(path=named_path, reason=reason.rstrip(".")),
        cause=cause,
        reason=reason,
        hint=hint or usual_hint,
    )


def not_found(named_path: str) -> errors.PhotoError:
    return photo_error("not_found", named_path, "not_found")


def unreadable(named_path: str, reason: str) -> errors.PhotoError:
    return photo_error("not_readable", named_path, "unreadable", reason)


def unwritable(named_path: str, reason: str) -> errors.PhotoError:
    return photo_error("not_writable", named_path, "permission", reason)


def not_written(
    named_path: str, cause: str, reason: str, hint: str | None = None
) -> errors.PhotoError:
    return photo_error("not_written", named_path, cause, reason, hint)


def not_verified(named_path: str, reason: str) -> errors.PhotoError:
    return photo_error("not_verified", named_path, "different", reason)


def disk_full(named_path: str) -> errors.PhotoError:
    return not_written(named_path, "disk_full", "the disk is full", "Free some space.")


def outside(error: errors.OutsideRootsError) -> errors.PhotoError:
    return errors.PhotoError(
        "not_writable", str(error), cause="outside", reason=error.with_hint, hint=error.hint
    )


@contextmanager
def reading(named_path: str) -> Iterator[None]:
    """Errors of the block, which reads a photo, as a `PhotoError`."""
    try:
        yield
    except errors.NotAPhotoError as error:
        raise photo_error("unsupported", named_path, "format", str(error), error.hint) from error
    except OSError as error:
        gone = isinstance(error, (FileNotFoundError, NotADirectoryError))
        if gone or error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise not_found(named_path) from error
        raise unreadable(named_path, error.strerror or str(error)) from error


def disk_error(named_path: str, error: OSError) -> errors.PhotoError:
    """An error of the disk or of permissions, while the photo was written."""
    reason = error.strerror or str(error)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return unwritable(named_path, reason)
    if error.errno == errno.ENOENT:
        return not_found(named_path)
    if error.errno in _FULL:
        return disk_full(named_path)
    return not_written(named_path, "disk", reason, "Check the disk, then try again.")


def is_full(named_path: str) -> bool:
    """Whether the disk has no room for a copy; exiftool has many messages for that."""
    try:
        photo = Path(named_path).resolve()
        return shutil.disk_usage(photo.parent).free < photo.stat().st_size + _METADATA
    except OSError:
        return False
