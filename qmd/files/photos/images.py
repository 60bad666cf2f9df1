"""
Metadata of photos: what they say, and writing it without touching anything else.

Nothing is written into the photo itself. exiftool reads a copy in a private directory and makes a
changed one there, which must hold the new metadata, the same image data and be read again, before
it takes the photo's place.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import (
    ExifToolError,
    OutsideRootsError,
    PhotoError,
    WriteDeclinedError,
)
from qmd.files.photos import photo_errors, photo_plan
from qmd.files.photos.exiftool import ExifTool, Turn
from qmd.files.photos.photo_file import (
    image_digest,
    iptc_records,
    open_photo,
    photo_descriptor,
    photo_source,
    read_photo,
    require_writable_photo,
)
from qmd.files.photos.photo_plan import (
    FieldValues,
    MetadataPlan,
    differing_fields,
    iptc_in_utf8_file,
    is_foreign,
    read_fields,
    read_tags,
    with_translated_iptc,
)
from qmd.files.writing.locked_folder import state_of
from qmd.files.writing.policy import ResolvedPath
from qmd.parse.photo.iptc import read_iptc
from qmd.parse.photo.metadata import read_metadata
from qmd.parse.photo.source import PhotoKind
from qmd.system.beneath import READ
from qmd.values import PhotoChange, PhotoMetadata, PhotoWritten
from qmd.values.proposed import ProposedFields, require_consent

if TYPE_CHECKING:
    from qmd.files.writing.change_writer import Draft
    from qmd.files.writing.writer import FileWriter
    from qmd.values.proposed import Confirm

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
        with open_photo(Path(path), str(path)) as source:
            return read_photo(str(path), lambda: read_metadata(source, str(path)))

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
        kind, place = require_writable_photo(named_path, files)
        if change == PhotoChange():
            return PhotoWritten(named_path, kind, changed=False)
        try:
            request = _Request(named_path, kind, change, overwrite)
            agreed = None
            if files.confirm is not None:
                agreed = self._ask_for_consent(request, place, files.confirm)
            with files.draft(place, tool=TOOL) as draft:
                written = self._write(request, draft, agreed)
        except ExifToolError as error:
            if error.cause in ("refused", "ended") and photo_errors.is_full(named_path):
                raise photo_errors.disk_full(named_path) from error
            raise photo_errors.not_written(
                named_path, error.cause, error.reason, hint=error.hint
            ) from error
        except OutsideRootsError as error:
            raise photo_errors.outside(error) from error
        except WriteDeclinedError as error:
            raise photo_errors.not_written(named_path, "declined", error.with_hint) from error
        except OSError as error:
            raise photo_errors.disk_error(named_path, error) from error
        problem = None if draft.written is None else draft.written.problem
        return replace(written, problem=problem)

    def _ask_for_consent(
        self, request: _Request, place: ResolvedPath, confirm: Confirm
    ) -> _AgreedChange:
        """What somebody agreed to; no lock is held meanwhile. Raises WriteDeclinedError."""
        with (
            photo_descriptor(lambda: place.open(READ), request.named_path) as descriptor,
            self._plan_change(request, descriptor) as planned,
        ):
            changed = planned.changed
            before = {field: planned.present.get(field, ()) for field in changed}
        if changed:
            require_consent(confirm, ProposedFields(TOOL, place.target, before, changed))
        return _AgreedChange(planned.state, changed)

    @contextmanager
    def _plan_change(self, request: _Request, descriptor: int) -> Iterator[_PlannedChange]:
        """
        What a change means for an open photo, and exiftool to make it while the block lasts.

        exiftool gets a copy: a name could lead elsewhere by the time it looks.
        """
        named_path, kind = request.named_path, request.kind
        with photo_source(descriptor, named_path) as source:
            state = state_of(os.fstat(descriptor))
            records = iptc_records(source, named_path) if kind == "JPG" else b""
            image = image_digest(source, kind)
            if image is None:
                raise photo_errors.not_written(
                    named_path,
                    "truncated",
                    "the file ends in the middle of the image",
                    hint="Restore it from where it came from; a copy of it was cut short.",
                )
            iptc = read_iptc(records)
            # Records without an encoding are UTF-8 if they are valid UTF-8.
            encoding = ["-charset", "IPTC=UTF8"] if iptc.encoding == "utf-8" else []
            with (
                self._exiftool.turn() as turn,
                turn.private_copy(descriptor, kind) as (photo, new),
                iptc_in_utf8_file(turn, iptc, records) as translated,
            ):
                present = read_fields(turn, photo, kind, encoding, translated)
                plan = photo_plan.plan(present, request.change, kind, overwrite=request.overwrite)
                yield _PlannedChange(
                    turn, photo, new, translated, encoding, present, plan, image, state
                )

    def _write(self, request: _Request, draft: Draft, agreed: _AgreedChange | None) -> PhotoWritten:
        named_path, kind = request.named_path, request.kind
        with self._plan_change(request, draft.original) as planned:
            changed = planned.changed
            if agreed is not None and agreed != _AgreedChange(planned.state, changed):
                raise _changed_meanwhile(named_path)
            if not changed:
                return PhotoWritten(named_path, kind, changed=False, kept=planned.plan.kept)
            arguments = photo_plan.arguments(changed, planned.present, iptc_from=planned.translated)
            _make_copy(planned, kind, [*planned.encoding, *arguments])
            _verify_copy(planned, request)
            if planned.state != draft.state():
                raise _changed_meanwhile(named_path)
            draft.commit(planned.new, kept=_kept(planned.present, kind))
        return PhotoWritten(named_path, kind, changed=True, kept=planned.plan.kept)


@dataclass(frozen=True, slots=True)
class _Request:
    """A change of one photo, which the caller named with ``named_path``."""

    named_path: str
    kind: PhotoKind
    change: PhotoChange
    overwrite: bool


@dataclass(frozen=True, slots=True)
class _PlannedChange:
    """
    What is to change in a photo (``present`` → ``plan``), and what exiftool needs for it.

    ``photo`` is a copy of the photo, ``new`` the path of the changed copy. ``encoding`` are
    exiftool's arguments about the encoding of IPTC, ``translated`` is the file of
    `iptc_in_utf8_file`. ``image`` is the digest of the image data, ``state`` that of the file.
    """

    turn: Turn
    photo: Path
    new: Path
    translated: Path | None
    encoding: list[str]
    present: FieldValues
    plan: MetadataPlan
    image: bytes
    state: tuple[int, ...]

    @property
    def changed(self) -> dict[str, tuple[str, ...]]:
        return self.plan.changed(self.present)


@dataclass(frozen=True, slots=True)
class _AgreedChange:
    """The photo, as it was, and the change that somebody agreed to."""

    state: tuple[int, ...]
    changed: dict[str, tuple[str, ...]]


def _make_copy(planned: _PlannedChange, kind: PhotoKind, arguments: list[str]) -> None:
    """
    The changed copy.

    exiftool rather leaves a photo alone in which it finds something odd, such as the notes of a
    maker it does not know: then it is told to go on, and all tags of the copy are compared.

    Raises:
        ExifToolError.
    """
    turn, photo, new = planned.turn, planned.photo, planned.new
    try:
        turn.write(photo, kind, arguments, new)
    except ExifToolError as error:
        if error.cause != "refused" or "[minor]" not in error.reason:
            raise
        all_tags = ["-b", "-n", "-all", *_UNLISTED]
        before = read_tags(turn.read(photo, kind, all_tags))
        before = with_translated_iptc(before, turn, all_tags, planned.translated)
        turn.write(photo, kind, ["-m", *arguments], new)
        now = read_tags(turn.read(new, kind, all_tags))
        if any(now.get(tag) != values for tag, values in before.items() if is_foreign(tag)):
            raise


def _verify_copy(planned: _PlannedChange, request: _Request) -> None:
    """Raises PhotoError: The changed copy lacks a new value, or holds another image."""
    named_path, kind = request.named_path, request.kind
    try:
        now = read_fields(planned.turn, planned.new, kind, planned.encoding, None)
    except ExifToolError as error:
        if error.cause != "refused":
            raise
        raise photo_errors.not_verified(named_path, error.reason) from error
    different = differing_fields(planned.plan.target, planned.present, now)
    if different:
        raise photo_errors.not_verified(named_path, f"the copy does not hold the new {different}")
    with open_photo(planned.new, named_path) as copy:
        if image_digest(copy, kind) != planned.image:
            raise photo_errors.not_verified(named_path, "the copy does not hold the same image")


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


def _changed_meanwhile(named_path: str) -> PhotoError:
    return photo_errors.not_written(
        named_path, "changed", "another program changed the photo meanwhile", hint="Try again."
    )
