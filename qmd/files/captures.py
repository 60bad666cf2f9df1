"""
Puts thoughts where a person keeps them: a list in one note, in a note for each day, or new notes.

Which it is, the pattern of the note's path says: ``{{date}}``, ``{{time}}`` and ``{{title}}`` in
it. A thought goes to the end of the note with that path, which is made if it is not there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import count
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import InputError, InvalidPathError, file_access
from qmd.files import days
from qmd.files.edits import note_editor
from qmd.files.edits.text_file import TextFile, line_end, with_line_ends
from qmd.files.vault import Vault, file_name_of, note_path
from qmd.files.writing.writer import ChangeWriter, FileWriter
from qmd.parse import frontmatter
from qmd.parse.convert.blocks import link
from qmd.values.writing import Attached, Attachment, Captured

if TYPE_CHECKING:
    from qmd.store import Reader

TOOL = "capture"
#: Characters of a thought, bytes of a file beside it, and the most files.
MAX_TEXT, MAX_FILE, MAX_FILES = 1_000_000, 50_000_000, 20

_PLACES = re.compile(r"\{\{\s*(date|time|title|text)\s*\}\}")
_DAILY = re.compile(r"(?:([^/{}]+)/)?\{\{\s*daily\s*\}\}")
_ITEM = re.compile(r"(?:[-*+]|\d{1,9}[.)])\s")
_TASK = re.compile(r"\[[ xX]\]\s")
_LIST_LINE = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s|\s{2,}\S")
_PICTURE = re.compile(r"\.(?:png|jpe?g|gif|webp|avif|svg|bmp|heic)$", re.IGNORECASE)
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,10}$")


class Inbox(NamedTuple):
    """
    Where thoughts go.

    Attributes:
        pattern: ``collection/path`` of a note, with what `_PLACES` names.
        template: The text of a new note, in which ``{{text}}`` is the thought; None for the
            thought alone.
        is_of_day: Whether it is the note of a day, whatever its path says.
    """

    pattern: str
    template: str | None = None
    is_of_day: bool = False

    @property
    def is_list(self) -> bool:
        """Whether a note holds several thoughts, each an item of a list."""
        return not re.search(r"\{\{\s*(?:time|title)\s*\}\}", self.pattern)

    @property
    def has_day(self) -> bool:
        """Whether the path says the day."""
        return self.is_of_day or re.search(r"\{\{\s*date\s*\}\}", self.pattern) is not None


def daily_inbox(reader: Reader, pattern: str, at: datetime) -> Inbox | None:
    """
    The daily note, as the settings of its vault say; None if the pattern does not mean that.

    Args:
        pattern: ``{{daily}}``, or ``collection/{{daily}}``.

    Raises:
        CollectionNotFoundError, InputError: As `days.chosen`.
        NotFoundError: The template of the vault does not exist.
    """
    match = _DAILY.fullmatch(pattern)
    if match is None:
        return None
    collection, notes = days.chosen(reader, match[1])
    period = notes.period("day", at.date())
    template = notes.pattern("day").template
    text = None
    if template:
        text = days.read_template(Path(collection.path), template)
        text = notes.filled(text, period, at.replace(tzinfo=None))
    return Inbox(days.file_of(collection, notes, period), text, is_of_day=True)


def capture(
    files: FileWriter,
    vault: Vault,
    inbox: Inbox,
    text: str,
    attachments: Sequence[Attachment],
    at: datetime,
) -> Captured:
    """
    Write a thought, and its files beside the note, as one change.

    Args:
        at: When it was thought, in the time zone of the person.

    Raises:
        InputError: There is no text and no file, or too much.
        InvalidPathError: The pattern leads to no path of a note.
        EditError: The note is in an encoding that lacks a character of the text.
        OutsideRootsError, WriteDeclinedError, FileAccessError: As `FileWriter.rewrite`.
    """
    text = _checked(text, attachments)
    try:
        file = note_of(inbox.pattern, text, at)
        vault.check_new(file)
        place = vault.locate(file)
    except InvalidPathError as error:
        raise InvalidPathError(
            error.message, hint="Mend the setting inbox, such as 'notes/Inbox.md': docs/capture.md"
        ) from error
    for each in attachments:
        next(_names(vault, file, each))  # raises before anything is written
    thought = text
    names: list[str] = []
    begin = 0
    new = ""

    def content(present: bytes | None) -> bytes:
        nonlocal begin, new
        if present is None:
            begin, new = _new_note(inbox, thought, at)
            return new.encode()
        source = TextFile.decoded(file, present)
        begin, new = _appended(source.text, _entry(inbox, thought, at))
        return source.encode(new)

    with file_access(file), files.change(tool=TOOL) as change:
        for each in attachments:
            names.append(_keep(change, vault, _names(vault, file, each), each.data))
            thought = f"{thought}\n{_link(each, names[-1])}".lstrip("\n")
        change.rewrite(place, content)
    return Captured(
        file=file,
        line=new.count("\n", 0, begin) + 1,
        docid=note_editor.docid_of(new),
        attachments=tuple(names),
        change=change.number,
        problem=change.problem,
    )


def note_of(pattern: str, text: str, at: datetime) -> str:
    """``collection/path`` of the note for a thought. Raises InvalidPathError."""
    return note_path(_filled(pattern, text, at, in_path=True))


def attach(files: FileWriter, vault: Vault, note: str, attachment: Attachment) -> Attached:
    """
    Keep a file beside a note, which is not changed.

    Raises: As `capture`.
    """
    _checked("", [attachment])
    names = _names(vault, note, attachment)
    with file_access(attachment.name), files.change(tool=TOOL) as change:
        name = _keep(change, vault, names, attachment.data)
    return Attached(name, _link(attachment, name), change.number, change.problem)


def _checked(text: str, attachments: Sequence[Attachment]) -> str:
    text = with_line_ends(text, "\n").strip("\n").rstrip()
    if not text.strip() and not attachments:
        raise InputError("There is nothing to keep.", hint="Type a thought, or name a file.")
    if len(text) > MAX_TEXT or "\0" in text:
        raise InputError(
            f"A thought has at most {MAX_TEXT:,} characters, and no NUL.",
            hint="Save it as a note of its own.",
        )
    if len(attachments) > MAX_FILES or any(len(each.data) > MAX_FILE for each in attachments):
        raise InputError(
            f"A thought takes at most {MAX_FILES} files of {MAX_FILE:,} bytes.",
            hint="Copy larger files into the folder of a collection.",
        )
    return text


def _filled(
    pattern: str, text: str, at: datetime, *, entry: str = "", in_path: bool = False
) -> str:
    """A pattern with the day, the time and the title of a thought, and with its entry."""
    first = next(iter(text.strip().splitlines()), "")
    title = file_name_of(re.sub(r"^(?:#+|[-*+])\s+|\[.\]\s+", "", first.strip()))
    values = {
        "date": at.strftime("%Y-%m-%d"),
        "time": at.strftime("%H%M%S" if in_path else "%H:%M"),
        "title": title or at.strftime("%Y-%m-%d %H%M%S"),
        "text": entry,
    }
    return _PLACES.sub(lambda match: values[match[1]], pattern)


def _new_note(inbox: Inbox, thought: str, at: datetime) -> tuple[int, str]:
    """The text of a new note, and where the thought begins in it."""
    entry = _entry(inbox, thought, at)
    if inbox.template is None:
        return 0, f"{entry}\n"
    place = re.search(r"\{\{\s*text\s*\}\}", inbox.template)
    if place is None:
        return _appended(_filled(inbox.template, thought, at), entry)
    begin = len(_filled(inbox.template[: place.start()], thought, at))
    return begin, _filled(inbox.template, thought, at, entry=entry)


def _entry(inbox: Inbox, thought: str, at: datetime) -> str:
    """A thought as it stands in its note: an item of a list, or as it was typed."""
    if not inbox.is_list or _ITEM.match(thought):
        return thought
    moment = at.strftime("%H:%M" if inbox.has_day else "%Y-%m-%d %H:%M")
    first, *rest = (thought if _TASK.match(thought) else f"{moment} {thought}").split("\n")
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in rest)])


def _appended(text: str, entry: str) -> tuple[int, str]:
    """The text with an entry at its end, and where that begins."""
    end = line_end(text)
    before = text.rstrip("\r\n\t ") if text.strip() else ""
    last = before.rpartition("\n")[2]
    is_list = _LIST_LINE.match(last) is not None and _LIST_LINE.match(entry) is not None
    if before:
        in_head = frontmatter.split(text).body_start >= len(before)
        before += end if is_list and not in_head else end * 2
    return len(before), f"{before}{with_line_ends(entry, end)}{end}"


def _names(vault: Vault, note: str, attachment: Attachment) -> Iterator[str]:
    """
    ``collection/path`` that a file may have beside a note: names that nothing has yet.

    Raises:
        InvalidPathError: No file can have this name.
    """
    folder = note.rpartition("/")[0]
    path = PurePosixPath(attachment.name.replace("\\", "/"))
    suffix = _SUFFIX.search(path.name)
    ending = suffix[0].lower() if suffix else ""
    stem = file_name_of(path.name[: suffix.start()] if suffix else path.name, ending) or "file"
    for number in count(1):
        name = f"{folder}/{stem}{'' if number == 1 else f' {number}'}{ending}"
        if not vault.locate(name).target.exists():
            vault.check_new(name)
            yield name


def _keep(change: ChangeWriter, vault: Vault, names: Iterator[str], data: bytes) -> str:
    """Write a file under the first of these names that is still free, and return it."""
    for name in names:
        with suppress(FileExistsError):  # another client has just taken it
            change.rewrite(vault.locate(name), _only_new(data, name))
            return name
    raise AssertionError


def _link(attachment: Attachment, name: str) -> str:
    """The link in the note to a file beside it."""
    written = link(attachment.name.rpartition("/")[2] or "file", name.rpartition("/")[2])
    return f"!{written}" if _PICTURE.search(name) else written


def _only_new(data: bytes, name: str) -> Callable[[bytes | None], bytes]:
    def content(present: bytes | None) -> bytes:
        if present is not None and present != data:
            raise FileExistsError(name)
        return data

    return content
