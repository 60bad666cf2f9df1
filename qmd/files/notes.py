"""
Reads, creates and lists notes on the disk, and appends to summaries.

The index is not used, because it may be older than the disk. The messages of errors are verbatim
those in the specification of the notes tools.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable
from typing import Literal

from qmd import errors
from qmd.files.edits.text_file import ended_like, line_end
from qmd.files.vault import (
    Vault,
    can_exist,
    exclusion_of_file,
    folder_path,
    is_hidden,
    matching_notes,
    note_path,
    plain_path,
    require_shown,
    suggestions,
)
from qmd.files.writing.policy import ResolvedPath
from qmd.files.writing.writer import FileWriter
from qmd.parse.decode import decode, encoding_of
from qmd.parse.formats import format_of
from qmd.values import writing
from qmd.values.text import as_utf8, is_safe_name, is_utf8, one_line

#: A note with more bytes is not read.
MAX_BYTES = 64 * 1024 * 1024

_NOT_THERE = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG})
_REMEDIES = {
    errno.EACCES: "Check the permissions of the file and of its folder.",
    errno.EPERM: "It is somebody else's file, or a locked one; only its owner can change that.",
    errno.EROFS: "The disk is mounted read-only.",
    errno.ENOSPC: "Free some space, then try again.",
    errno.EDQUOT: "Free some space, then try again.",
    errno.EBUSY: "Try again in a moment.",
    errno.ENAMETOOLONG: "Choose a shorter name; most disks allow 255 bytes.",
    errno.ENOTDIR: "A file lies where a folder would have to be.",
    errno.EEXIST: "A file lies where a folder would have to be.",
}


class Notes:
    """The notes of one vault; ``KnowledgeBase.notes``."""

    def __init__(
        self, vault: Callable[[], Vault], files: Callable[[], FileWriter] | None = None
    ) -> None:
        """
        Args:
            vault: Called for each operation, because collections are added and removed.
            files: Called for each write; None if nothing will be written.
        """
        self._vault = vault
        self._files = files

    @property
    def are_in_vault(self) -> bool:
        """Whether these are the notes of a vault of their own, and not of the collections."""
        return "" in self._vault().roots

    def read(self, path: str) -> writing.Note:
        """
        Read a note from the disk.

        The first of these is read: the file at `note_path`; the file at ``path`` itself; the only
        note whose path differs in case alone; the only note whose path ends with ``path``.

        Raises:
            InvalidPathError: The path is empty, leads out of the vault, is in no collection, or is
                not that of a file.
            NoteNotFoundError: There is no such note; with suggestions.
            NoteAccessError: The file exists, but cannot be read as text.
        """
        requested = note_path(path)
        vault = self._vault()
        plain = plain_path(path)
        if can_exist(requested) and vault.has_root_for(requested):
            data = _bytes(vault.locate(requested), requested)
            if data is not None:
                return _note(data, requested, requested)
            # A search may find files that do not end in .md, but none that is hidden.
            if not is_hidden(plain) and _is_there(vault, plain, stat.S_ISREG):
                data = _bytes(vault.locate(plain), plain)
                if data is not None:
                    return _note(data, plain, requested)
        notes = vault.notes() if can_exist(requested) else []
        candidates = matching_notes(requested, notes)
        if len(candidates) == 1:
            data = _bytes(vault.locate(candidates[0]), candidates[0])
            if data is not None:
                return _note(data, candidates[0], requested)
        if not candidates and "/" in requested and not vault.has_root_for(requested):
            vault.locate(requested)  # raises, and lists the collections
        raise _not_found(vault, requested, plain, candidates, notes)

    def create(
        self,
        path: str,
        content: str | bytes,
        *,
        mode: writing.Mode | Literal["new"] = "overwrite",
        keep_last_line_end: bool = False,
    ) -> writing.WrittenNote:
        """
        Write a note, or append to one. Missing folders are created.

        Args:
            content: A text is written in UTF-8, or appended in the encoding of the note. Bytes are
                written unchanged.
            mode: Whether an existing note is overwritten or appended to; "new" refuses both.
            keep_last_line_end: A text that is appended to a note that ends with a line end gets
                one too. Else nothing is added to a text.

        Raises:
            NoteExistsError: There is a note, and the mode is "new".
            ConflictError: A rule keeps the path out of the index, and the mode is "new".
            InvalidPathError: As `read`, or some systems cannot store such a name.
            NoteAccessError: The disk, its permissions or the write policy do not allow it.
        """
        assert self._files is not None
        requested = note_path(path)
        vault = self._vault()
        vault.check_new(requested)
        if not can_exist(requested):
            raise _failed(
                "write file", requested, OSError(errno.ENAMETOOLONG, "File name too long")
            )
        place = vault.locate(requested)
        _check_can_be_note(place, requested)
        if "" not in vault.roots and not place.root.is_dir():
            # If it were made, all other documents of the collection would count as deleted.
            raise errors.NoteAccessError(
                f"Failed to write file: the collection's folder is not there: {place.root}",
                hint="Bring it back, or remove the collection.",
            )
        files = self._files()
        # The tool create_note has no such refusal in its specification: it gets the `problem`.
        exclusion = exclusion_of_file(files.store, place.target, vault.roots.get(""))
        if mode == "new":
            require_shown(requested, exclusion)
        try:
            files.policy.check_name(requested if "" in vault.roots else requested.partition("/")[2])
            data = b"" if mode == "append" else _encoded(content, "utf-8", requested)

            def content_of(present: bytes | None) -> bytes:
                if mode == "new" and present is not None:
                    raise errors.NoteExistsError(requested)
                if mode == "append":
                    added = _addition(present, content, requested, keep_last_line_end)
                    return (present or b"") + added
                return data

            written = files.rewrite(place, content_of, tool="create_note")
            action: writing.Action = "created"
            if written.existed:
                action = "appended" if mode == "append" else "overwritten"
        except (errors.InvalidPathError, errors.NoteAccessError, errors.NoteExistsError):
            raise
        except errors.QmdError as error:
            raise errors.NoteAccessError(
                f"Failed to write file: {error}", hint=error.hint
            ) from error
        except OSError as error:
            raise _failed("write file", requested, error) from error
        return writing.WrittenNote(requested, action, written.bytes, written.problem or exclusion)

    def list_folder(self, path: str = "") -> writing.Listing:
        """
        List all files and folders directly in a folder.

        Raises:
            InvalidPathError: The path leads out of the vault, is in no collection, or is that of a
                file.
            FolderNotFoundError: The folder does not exist.
            NoteAccessError: The folder cannot be read.
        """
        folder = folder_path(path)
        vault = self._vault()
        if vault.is_above_collections(folder):
            return writing.Listing(
                "", tuple(writing.FolderEntry(name, True) for name in vault.collections)
            )
        if not can_exist(folder):
            raise errors.FolderNotFoundError(as_utf8(folder))
        place = vault.locate(folder)
        try:
            entries = _entries(place)
        except NotADirectoryError:
            if os.path.exists(place.target):  # noqa: PTH110 - Path's raises where it may not look
                raise errors.InvalidPathError(f"Path is not a folder: {folder or '/'}") from None
            raise errors.FolderNotFoundError(folder or as_utf8(str(place.root))) from None
        except OSError as error:
            if error.errno in _NOT_THERE:
                raise errors.FolderNotFoundError(folder or as_utf8(str(place.root))) from error
            raise _failed("read folder", folder or "/", error) from error
        entries.sort(key=lambda entry: (not entry.is_folder, entry.name))
        return writing.Listing(folder, tuple(entries))


# --- reading -------------------------------------------------------------------------


def _is_there(vault: Vault, path: str, is_such: Callable[[int], bool]) -> bool:
    """Whether something is at a path, and ``is_such`` returns True for its file mode."""
    if not can_exist(path) or not vault.has_root_for(path):
        return False
    try:
        return is_such(vault.locate(path).status().st_mode)
    except (errors.InvalidPathError, OSError):  # a link that leads out; nothing there
        return False


def _bytes(place: ResolvedPath, path: str) -> bytes | None:
    """
    The content of a file; None if there is no file.

    Raises:
        InvalidPathError: A folder or a device is at the path.
        NoteAccessError: The file is too large, or cannot be read.
    """
    try:
        return place.read(MAX_BYTES)
    except IsADirectoryError as error:
        raise errors.InvalidPathError(f"Path is not a file: {path}") from error
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        if error.errno == errno.EFBIG:
            raise errors.NoteAccessError(
                f"Failed to read file: {path} has {error.strerror}."
            ) from error
        raise _failed("read file", path, error) from error


def _note(data: bytes, path: str, requested: str) -> writing.Note:
    try:
        return writing.Note(path, data.decode("utf-8"), "utf-8", requested)
    except UnicodeDecodeError:
        pass
    try:
        decoded = decode(data)
    except errors.DecodeError as error:
        hint = None
        if not format_of(path).is_edited:
            hint = "The tool get shows its text; in the shell 'qmd get' does."
        raise errors.NoteAccessError(f"Failed to read file: {error}", hint=hint) from error
    return writing.Note(path, decoded.text, decoded.encoding, requested)


def _not_found(
    vault: Vault, requested: str, plain: str, candidates: list[str], notes: list[str]
) -> errors.NoteNotFoundError:
    likely = candidates[:3]
    hint = None
    if not likely and _is_there(vault, plain, stat.S_ISDIR):
        hint = f"{plain} is a folder; list it to see the notes in it."
    elif not likely:
        likely = suggestions(requested, notes)
        if vault.collections and not vault.has_root_for(requested):
            hint = f"A path begins with a collection: {', '.join(vault.collections)}"
    return errors.NoteNotFoundError(as_utf8(requested), likely, hint=hint)


def _entries(place: ResolvedPath) -> list[writing.FolderEntry]:
    """Raises OSError."""
    with place.entries() as entries:
        return [writing.FolderEntry(as_utf8(each.name), _is_folder(each)) for each in entries]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link in a circle, or out of reach
        return False


# --- writing -------------------------------------------------------------------------


def _check_can_be_note(place: ResolvedPath, path: str) -> None:
    """Raises InvalidPathError, NoteAccessError."""
    try:
        if not stat.S_ISREG(place.status().st_mode):
            raise errors.InvalidPathError(f"Path is not a file: {path}")
    except OSError as error:
        if error.errno not in _NOT_THERE:
            raise _failed("write file", path, error) from error


def _addition(
    present: bytes | None, content: str | bytes, path: str, keep_last_line_end: bool
) -> bytes:
    """``content`` as the bytes to append to ``present``, in the encoding of ``present``."""
    if present is None or isinstance(content, bytes):
        return _encoded(content, "utf-8", path)
    try:
        encoding = encoding_of(present)
        if keep_last_line_end:
            content = ended_like(decode(present).text, content)
    except errors.DecodeError as error:
        raise errors.NoteAccessError(f"Failed to write file: {error}") from error
    return _encoded(content, encoding, path)


def _encoded(content: str | bytes, encoding: str, path: str) -> bytes:
    if isinstance(content, bytes):
        return content
    try:
        return content.encode(encoding)
    except UnicodeEncodeError as error:
        lacking = ascii(content[error.start])
        if encoding == "utf-8":
            message = f"the content holds {lacking}, which is no character."
            raise errors.NoteAccessError(f"Failed to write file: {message}") from error
        raise errors.NoteAccessError(
            f"Failed to write file: {path} is in {encoding}, which lacks {lacking}.",
            hint="Overwrite it with the whole text to have it in UTF-8.",
        ) from error


def _failed(what: str, path: str, error: OSError) -> errors.NoteAccessError:
    reason = error.strerror or str(error)
    remedy = _REMEDIES.get(error.errno or 0)
    return errors.NoteAccessError(f"Failed to {what}: {reason}: {as_utf8(path)}", hint=remedy)


# --- summaries --------------------------------------------------------------------------

TOOL = "update_summary"
MODES: tuple[writing.SummaryMode, ...] = ("append", "overwrite")
SUFFIXES = (".md", ".markdown")
HEADINGS: dict[writing.Language, str] = {"zh": "## 总结更新", "en": "## Summary update"}

#: Chinese characters, Latin words, and what only Japanese and Korean have.
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LATIN_WORD = re.compile(r"[A-Za-z\u00c0-\u024f]+")
_KANA_OR_HANGUL = re.compile(r"[\u3041-\u30ff\uac00-\ud7a3]")


class Summary:
    """Writes summaries through the one `FileWriter`."""

    def __init__(
        self, files: FileWriter, *, now: Callable[[], time.struct_time] = time.localtime
    ) -> None:
        """``now``: the local time that stands over an appended summary."""
        self._files = files
        self._now = now

    def update(
        self,
        content: str,
        file_path: str,
        mode: writing.SummaryMode | None = None,
        *,
        language: writing.Language | None = None,
    ) -> writing.WrittenSummary:
        """
        Check the arguments, and write.

        Args:
            content: The text; it is written as it is, in UTF-8 or in the encoding of the file
                that it is appended to.
            file_path: Absolute, or relative to the working directory.
            mode: "append" (the default, also for None) puts it after what the file holds, under
                a heading with the time; "overwrite" makes it the whole content.
            language: That of the person who asks. The heading is Chinese if this or the note is,
                and a note that ended with a line end still does. None writes exactly what the
                specification of update_summary says: a Chinese heading, and the text as it is.

        Raises:
            SummaryError: An argument is wrong.
            FileAccessError: The disk or the permissions say no.
            UnencodableTextError: The encoding of the file lacks a character of the text.
            QmdError: As `FileWriter.rewrite`.
        """
        text, path, checked_mode = checked_arguments(content, file_path, mode)
        data = _encoded_summary(text)

        def content_of(present: bytes | None) -> bytes:
            if checked_mode == "overwrite":
                return data
            return (present or b"") + self._appendix(present, text, path, language)

        with errors.file_access(as_utf8(path)):
            written = self._files.rewrite(path, content_of, tool=TOOL)
        problem = written.problem or exclusion_of_file(self._files.store, written.path)
        return writing.WrittenSummary(written.path, checked_mode, problem)

    def _appendix(
        self, present: bytes | None, text: str, path: str, language: writing.Language | None
    ) -> bytes:
        """What is put after the content ``present``, in its encoding."""
        if present is None:
            return text.encode()
        try:
            before, encoding = decode(present).text, encoding_of(present)
        except errors.DecodeError:  # it is no text, and stays as it is in front of this one
            before, encoding = "", "utf-8"
        at = time.strftime("%Y-%m-%d %H:%M:%S", self._now())
        if language is None:
            appendix = f"\n\n---\n\n{HEADINGS['zh']} [{at}]\n\n{text}"
        else:
            appendix = _section(before, text, at, language)
        try:
            return appendix.encode(encoding)
        except UnicodeEncodeError as error:
            character = appendix[error.start]
            raise errors.UnencodableTextError(as_utf8(path), encoding, character) from error


def _section(before: str, text: str, at: str, language: writing.Language) -> str:
    """What a person wants after a note: one blank line, its line ends, and one at its end."""
    if _is_chinese(before + text):
        language = "zh"
    end = line_end(before)
    heading = f"---{end}{end}{HEADINGS[language]} [{at}]{end}{end}"
    if not before.endswith(("\n", "\r")):
        return f"{end}{end}{heading}{text}"
    blank = "" if before.endswith(end * 2) else end
    return f"{blank}{heading}{ended_like(before, text)}"


def _is_chinese(text: str) -> bool:
    """Whether a text has more Chinese characters than Latin words."""
    if _KANA_OR_HANGUL.search(text):
        return False
    return len(_HAN.findall(text)) > len(_LATIN_WORD.findall(text))


def checked_arguments(
    content: object, file_path: object, mode: object
) -> tuple[str, str, writing.SummaryMode]:
    """
    The arguments as `Summary.update` needs them; the disk is not looked at.

    Raises:
        SummaryError: The first thing that is wrong, in the order of the specification.
    """
    for name, value in (("content", content), ("file_path", file_path)):
        if value is None:
            raise errors.SummaryError(f"Invalid {name}: is required")
    if not isinstance(content, str):
        raise errors.SummaryError("Invalid content: must be a string")
    if not content.strip():
        raise errors.SummaryError("Invalid content: must not be empty or only whitespace")
    if not isinstance(file_path, str):
        raise errors.SummaryError("Invalid file_path: must be a string")
    if not file_path.lower().endswith(SUFFIXES):
        raise errors.SummaryError("Invalid file_path: must end with .md or .markdown")
    if mode is None:
        mode = MODES[0]
    checked_mode = next((each for each in MODES if each == mode), None)
    if checked_mode is None:
        raise errors.SummaryError("Invalid mode: must be append or overwrite")
    if any(name.strip() == ".." for name in re.split(r"[/\\]", file_path)):
        raise errors.SummaryError("Invalid file_path: must not contain '..' (path traversal)")
    _check_name(file_path)
    return content, file_path, checked_mode


def _check_name(path: str) -> None:
    """Raises SummaryError: the name hides something. What no file can be called is told later."""
    if is_utf8(path) and "\0" not in path and not is_safe_name(path):
        raise errors.SummaryError(
            f"Invalid file_path: {one_line(path)} contains control characters or marks of direction"
        )


def _encoded_summary(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise errors.SummaryError(
            f"Invalid content: character {error.start + 1} is half of a surrogate pair"
        ) from error
