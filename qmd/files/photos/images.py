"""
Metadata of photos: what they say, and writing it without touching anything else.

Nothing is written into the photo itself. exiftool reads a copy in a private directory and makes a
changed one there, which must hold the new metadata, the same image data and be read again, before
it takes the photo's place.
"""

# ruff: noqa: PTH116

from __future__ import annotations

import binascii
import errno
import hashlib
import json
import os
import stat
import struct
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from xml.etree import ElementTree

from qmd.errors import (
    ExifToolError,
    NotAPhotoError,
    OutsideRootsError,
    PhotoError,
    WriteDeclinedError,
)
from qmd.files.photos import photo_errors, photo_plan
from qmd.files.photos.exiftool import ExifTool, Turn
from qmd.files.photos.photo_plan import FIELDS, FieldValues, MetadataPlan
from qmd.files.writing.consent import require_consent
from qmd.files.writing.locked_folder import state_of
from qmd.files.writing.resolved_path import ResolvedPath
from qmd.parse.photo import heic, is_photo, jpeg, png
from qmd.parse.photo.iptc import Iptc, iptc_in_utf8, read_iptc
from qmd.parse.photo.metadata import read_kind, read_metadata
from qmd.parse.photo.source import (
    MetadataBlocks,
    MeteredSource,
    PhotoKind,
    PhotoSource,
    PhotoStream,
    TooMuchMetadataError,
)
from qmd.system.beneath import READ
from qmd.values import PhotoChange, PhotoMetadata, PhotoWritten
from qmd.values.proposed import ProposedFields

if TYPE_CHECKING:
    from qmd.files.writing.writer import Draft, FileWriter
    from qmd.values.proposed import Confirm

TOOL = "writeImageMetadata"
_IMAGE_DATA = {"JPG": jpeg.image_data, "PNG": png.image_data, "HEIC": heic.image_data}
#: Tags that exiftool leaves out of "all".
_UNLISTED = ("-ExifIFD:MakerNoteUnknown", "-ThumbnailImage", "-PreviewImage", "-ICC_Profile")
_RDF = "{http://www.w3.org/1999/02/22-rdf-syntax-ns#}"
_BLOCK = 1 << 20

ResultT = TypeVar("ResultT")


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
        with _open(Path(path), str(path)) as source:
            return _read(str(path), lambda: read_metadata(source, str(path)))

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
        kind, place = _examine(named_path, files)
        if change == PhotoChange():
            return PhotoWritten(named_path, kind, changed=False)
        try:
            agreed = None
            if files.confirm is not None:
                agreed = self._ask_for_consent(
                    place, named_path, change, kind, overwrite, files.confirm
                )
            with files.draft(place, tool=TOOL) as draft:
                written = self._write(draft, named_path, change, kind, overwrite, agreed)
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
        self,
        place: ResolvedPath,
        named_path: str,
        change: PhotoChange,
        kind: PhotoKind,
        overwrite: bool,
        confirm: Confirm,
    ) -> _AgreedChange:
        """What somebody agreed to; no lock is held meanwhile. Raises WriteDeclinedError."""
        with (
            _opened(lambda: place.open(READ), named_path) as descriptor,
            self._planned(descriptor, named_path, change, kind, overwrite) as planned,
        ):
            changed = planned.changed
            before = {field: planned.present.get(field, ()) for field in changed}
        if changed:
            require_consent(confirm, ProposedFields(TOOL, place.target, before, changed))
        return _AgreedChange(planned.state, changed)

    @contextmanager
    def _planned(
        self,
        descriptor: int,
        named_path: str,
        change: PhotoChange,
        kind: PhotoKind,
        overwrite: bool,
    ) -> Iterator[_Planned]:
        """
        What a change means for an open photo, and exiftool to make it while the block lasts.

        exiftool gets a copy: a name could lead elsewhere by the time it looks.
        """
        with _source(descriptor, named_path) as source:
            state = state_of(os.fstat(descriptor))
            records = _iptc_records(source, named_path) if kind == "JPG" else b""
            image = _digest(source, kind)
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
                _translated(turn, iptc, records) as translated,
            ):
                present = _present(turn, photo, kind, encoding, translated)
                plan = photo_plan.plan(present, change, kind, overwrite=overwrite)
                yield _Planned(turn, photo, new, translated, encoding, present, plan, image, state)

    def _write(
        self,
        draft: Draft,
        named_path: str,
        change: PhotoChange,
        kind: PhotoKind,
        overwrite: bool,
        agreed: _AgreedChange | None,
    ) -> PhotoWritten:
        with self._planned(draft.original, named_path, change, kind, overwrite) as planned:
            turn, encoding, present = planned.turn, planned.encoding, planned.present
            changed, new = planned.changed, planned.new
            if agreed is not None and agreed != _AgreedChange(planned.state, changed):
                raise _changed_meanwhile(named_path)
            if not changed:
                return PhotoWritten(named_path, kind, changed=False, kept=planned.plan.kept)
            arguments = photo_plan.arguments(changed, present, iptc_from=planned.translated)
            _make_copy(planned, kind, [*encoding, *arguments])
            try:
                now = _present(turn, new, kind, encoding, None)
            except ExifToolError as error:
                if error.cause != "refused":
                    raise
                raise photo_errors.not_verified(named_path, error.reason) from error
            different = _differences(planned.plan.target, present, now)
            if different:
                raise photo_errors.not_verified(
                    named_path, f"the copy does not hold the new {different}"
                )
            with _open(new, named_path) as copy:
                if _digest(copy, kind) != planned.image:
                    raise photo_errors.not_verified(
                        named_path, "the copy does not hold the same image"
                    )
            if planned.state != draft.state():
                raise _changed_meanwhile(named_path)
            draft.commit(new, kept=_kept(present, kind))
        return PhotoWritten(named_path, kind, changed=True, kept=planned.plan.kept)


@dataclass(frozen=True, slots=True)
class _Planned:
    """
    What is to change in a photo (``present`` → ``plan``), and how exiftool is told: with
    ``encoding``, and ``translated`` as in `_translated`. ``photo`` is a copy of it, ``new`` the
    name of the changed one, ``image`` a digest of the image alone.
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


# --- before anything is done ---------------------------------------------------------


def _iptc_records(source: PhotoSource, named_path: str) -> bytes:
    """All IPTC records, since all are written anew. Raises PhotoError: There are too many."""
    blocks = MetadataBlocks("JPG")
    try:
        jpeg.read_blocks(MeteredSource(source), blocks)
    except TooMuchMetadataError as error:
        raise photo_errors.not_written(named_path, "refused", str(error).rstrip(".")) from error
    return blocks.iptc or b""


def _examine(named_path: str, files: FileWriter) -> tuple[PhotoKind, ResolvedPath]:
    """
    The format of a photo that may be written, and where it lies. Raises PhotoError: what is
    wrong first.

    Where nothing may be written, the error says only that, and not whether the file exists.
    """
    try:
        files.policy.require_writable()
    except OutsideRootsError as error:
        raise photo_errors.outside(error) from error
    try:
        mode = os.stat(named_path).st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise photo_errors.not_found(named_path) from error
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENAMETOOLONG):
            raise photo_errors.not_found(named_path) from error
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error
    if not stat.S_ISREG(mode):
        raise photo_errors.unreadable(named_path, "it is no regular file")
    # The superuser may write any file; we respect a mode that forbids it.
    if not mode & 0o444 or not os.access(named_path, os.R_OK):
        raise photo_errors.unreadable(named_path, "its permissions forbid it")
    if not mode & 0o222 or not os.access(named_path, os.W_OK):
        raise photo_errors.unwritable(named_path, "its permissions forbid it")
    try:
        place = files.resolve(named_path)
        str(place.target).encode()
    except OutsideRootsError as error:
        raise photo_errors.outside(error) from error
    except UnicodeEncodeError as error:
        raise photo_errors.not_written(
            named_path,
            "name",
            "its name is not valid UTF-8, which the database needs",
            "Rename it.",
        ) from error
    if not os.access(place.target.parent, os.W_OK | os.X_OK):
        raise photo_errors.unwritable(named_path, "no file can be made in its folder")
    with (
        _opened(lambda: place.open(READ), named_path) as descriptor,
        _source(descriptor, named_path) as source,
    ):
        return _read(named_path, lambda: read_kind(source, named_path)), place


def _read(named_path: str, read: Callable[[], ResultT]) -> ResultT:
    if not is_photo(named_path):
        raise photo_errors.unsupported(
            named_path, "its name does not end in .jpg, .jpeg, .png or .heic"
        )
    try:
        return read()
    except NotAPhotoError as error:
        raise photo_errors.unsupported(named_path, str(error), error.hint) from error
    except OSError as error:
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error


@contextmanager
def _open(path: Path, named_path: str) -> Iterator[PhotoSource]:
    """The bytes of a photo. Raises PhotoError: It is not there, or cannot be read."""
    with (
        _opened(lambda: os.open(path, READ), named_path) as descriptor,
        _source(descriptor, named_path) as source,
    ):
        yield source


@contextmanager
def _opened(open_photo: Callable[[], int], named_path: str) -> Iterator[int]:
    """A descriptor of a photo. Raises PhotoError: It is not there, or cannot be opened."""
    try:
        descriptor = open_photo()
    except (FileNotFoundError, NotADirectoryError, ValueError) as error:
        raise photo_errors.not_found(named_path) from error
    except OSError as error:
        raise photo_errors.unreadable(named_path, error.strerror or str(error)) from error
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _source(descriptor: int, named_path: str) -> Iterator[PhotoSource]:
    """The bytes of an open photo. Raises PhotoError: It is no file."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise photo_errors.unreadable(named_path, "it is no regular file")
    with os.fdopen(descriptor, "rb", buffering=0, closefd=False) as stream:
        yield PhotoStream(stream, status.st_size)


# --- what a photo holds --------------------------------------------------------------


def _translated(
    turn: Turn, iptc: Iptc, records: bytes
) -> AbstractContextManager[Path] | nullcontext[None]:
    """
    A file with the IPTC of a photo in UTF-8, if it is in an encoding of before.

    exiftool takes all older encodings for Western European, and so garbles Chinese.
    """
    if iptc.encoding in ("ascii", "utf-8"):
        return nullcontext()
    data = iptc_in_utf8(records)
    # The smallest file in which exiftool finds it, a TIFF of one field.
    head = struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x83BB, 7, len(data), 26, 0)
    return turn.lend(head + data)


def _make_copy(planned: _Planned, kind: PhotoKind, arguments: list[str]) -> None:
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
        before = _read_tags(turn.read(photo, kind, all_tags))
        before = _with_translated_iptc(before, turn, all_tags, planned.translated)
        turn.write(photo, kind, ["-m", *arguments], new)
        now = _read_tags(turn.read(new, kind, all_tags))
        if any(now.get(tag) != values for tag, values in before.items() if _is_foreign(tag)):
            raise


def _is_foreign(tag: str) -> bool:
    """Whether a tag is none of ours, nor says where in the file something lies, and how much."""
    return (
        tag not in FIELDS
        and not tag.startswith(("ExifTool:", "System:", "File:", "Composite:"))
        and not tag.endswith(("Offset", "Offsets", "Start", "Pointer", "Digest", "MediaDataSize"))
    )


def _present(
    turn: Turn, photo: Path, kind: PhotoKind, encoding: list[str], translated: Path | None
) -> FieldValues:
    """The fields of a photo as exiftool reads them. Raises ExifToolError."""
    fields = [f"-{field}" for field in FIELDS]
    tags = _read_tags(turn.read(photo, kind, [*encoding, *fields]))
    tags = _with_translated_iptc(tags, turn, fields, translated)
    return {field: values for field, values in tags.items() if field in FIELDS}


def _with_translated_iptc(
    tags: dict[str, tuple[str, ...]], turn: Turn, arguments: list[str], translated: Path | None
) -> dict[str, tuple[str, ...]]:
    """``tags`` with those of IPTC as ``translated`` has them. Raises ExifToolError."""
    if translated is None:
        return tags
    iptc = _read_tags(turn.read(translated, "JPG", arguments))
    return {tag: values for tag, values in tags.items() if not tag.startswith("IPTC:")} | {
        tag: values for tag, values in iptc.items() if tag.startswith("IPTC:")
    }


def _read_tags(out: bytes) -> dict[str, tuple[str, ...]]:
    """exiftool's RDF/XML: ``group:tag`` → its values, the first place counting."""
    try:
        # exiftool's own output: no declarations, and control characters in base64.
        root = ElementTree.fromstring(out.replace(b"\r", b"&#13;"))  # noqa: S314
    except ElementTree.ParseError as error:
        raise ExifToolError("refused", "exiftool's answer cannot be read") from error
    tags: dict[str, tuple[str, ...]] = {}
    for element in (each for description in root for each in description):
        namespace, _, name = element.tag.rpartition("}")
        field = f"{namespace.split('/')[-3]}:{name}"
        if field not in tags:
            items = list(element.iter(f"{_RDF}li")) or [element]
            tags[field] = tuple(text for text in map(_text, items) if text)
    return tags


def _text(element: ElementTree.Element) -> str:
    text = element.text or ""
    if element.get(f"{_RDF}datatype", "").endswith("base64Binary"):
        return binascii.a2b_base64(text).decode("utf-8", "replace")
    return text


def _differences(target: FieldValues, before: FieldValues, now: FieldValues) -> str:
    """Which fields are not as they should be, for people."""
    wrong = [
        field
        for field in FIELDS
        if field not in photo_plan.TECHNICAL
        and now.get(field, ()) != target.get(field, before.get(field, ()))
    ]
    return ", ".join(wrong)


def _digest(source: PhotoSource, kind: PhotoKind) -> bytes | None:
    """A digest of the image data alone; None if the file ends in the middle of it."""
    places = _IMAGE_DATA[kind](source)
    if places is None:
        return None
    digest = hashlib.blake2b(digest_size=32)
    for offset, length in places:
        digest.update(length.to_bytes(8, "big"))
        for start in range(offset, offset + length, _BLOCK):
            digest.update(source.at(start, min(_BLOCK, offset + length - start)))
    return digest.digest()


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
