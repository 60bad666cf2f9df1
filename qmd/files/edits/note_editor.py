"""Creates, edits and deletes a note on the disk, if it is still what the client has read."""

from __future__ import annotations

import errno
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from qmd import errors
from qmd.engine_text import engine_text
from qmd.files.edits import operations, properties
from qmd.files.edits.diff import short_diff
from qmd.files.edits.text_file import TextFile, shown_text, with_line_ends
from qmd.files.writing.policy import ResolvedPath
from qmd.files.writing.writer import FileWriter
from qmd.ingest.parse_workers import document_text
from qmd.parse.formats import format_of
from qmd.values.writing import EditedNote, NoteEdit, NoteSource

if TYPE_CHECKING:
    from qmd.store import Reader, Store

CREATE, EDIT, DELETE = "create_note", "edit_note", "delete_note"
#: A longer note is not edited.
MAX_BYTES = 16 * 1024 * 1024
_DOCID = re.compile(r"#?([0-9a-fA-F]{6,64})")


class Action(NamedTuple):
    """
    An action of `NoteEdit`.

    Attributes:
        needs, may_have: Fields of the edit; those that are needed come first.
        apply: Makes the new text of the old one and these fields.
    """

    needs: tuple[str, ...]
    apply: Callable[..., str]
    may_have: tuple[str, ...] = ()


ACTIONS = {
    "replace": Action(("old", "text"), operations.replace_once),
    "replace_section": Action(("heading", "text"), operations.replace_section),
    "insert_before": Action(("heading", "text"), operations.insert_before),
    "insert_after": Action(("heading", "text"), operations.insert_after),
    "append": Action(("text",), operations.append, ("heading",)),
    "prepend": Action(("text",), operations.prepend),
    "set_property": Action(("property", "value"), properties.set_property),
    "remove_property": Action(("property",), properties.remove_property),
    "tick": Action((), partial(operations.set_task, done=True), ("old", "line")),
    "untick": Action((), partial(operations.set_task, done=False), ("old", "line")),
}
_FIELDS = ("text", "old", "heading", "property", "value", "line")


@dataclass(frozen=True, slots=True)
class NotePlace:
    """A note: its ``collection/path``, and where that is on the disk."""

    file: str
    place: ResolvedPath


@dataclass(frozen=True, slots=True)
class _Draft:
    """A new content that is not written yet; the docids of the old and the new text."""

    content: bytes
    old_docid: str
    docid: str
    diff: str


class NoteEditor:
    """Edits notes through the one `FileWriter`."""

    def __init__(self, files: FileWriter) -> None:
        self._files = files

    def source(self, note: NotePlace) -> NoteSource:
        """
        The text of a note for an editor, and whether it may be written.

        Raises:
            EditError: It is no note, no text, or a text that an editor would change.
            NotFoundError, FileAccessError: The file cannot be read.
        """
        data = read_note(note)
        require_note(note)
        text = TextFile.decoded(note.file, data).text
        if "\0" in text:
            raise errors.EditError(f"{note.file} has NUL characters, which an editor would lose.")
        refusal = None
        try:
            self._files.policy.permitted(note.place.target)
            self._files.store.require_writable()
        except errors.QmdError as error:
            refusal = error.with_hint
        return NoteSource(note.file, with_line_ends(text, "\n"), _hash(text), refusal)

    def edit(
        self,
        note: NotePlace,
        edit: NoteEdit | Callable[[str], str],
        *,
        if_docid: str | None = None,
        preview: bool = False,
        tool: str = EDIT,
    ) -> EditedNote:
        """
        Edit the text of a note; a function gets the text and returns the new one.

        Args:
            tool: Who edits, for the history.
            if_docid: The docid that the note must have.
            preview: Write nothing, and return the diff.

        Raises:
            EditError: The edit is not possible.
            InputError: It would not be in any note: it lacks a field, or has one too many.
            FileChangedError: The note has another docid; with what has changed since, if known.
            NotFoundError, FileAccessError: The file cannot be read or written.
            The other errors of `FileWriter.rewrite`.
        """
        data = read_note(note)
        # A first draft without a lock: most refusals, previews and edits that change nothing end
        # here. The second is of what the file holds when it is written, which may be another text.
        draft = self._draft(note, data, edit, if_docid)
        if preview or draft.content == data:
            return EditedNote(note.file, draft.old_docid, written=False, diff=draft.diff)

        def content(present: bytes | None) -> bytes:
            nonlocal draft
            if present is None:
                raise not_there(note)
            draft = self._draft(note, present, edit, if_docid)
            return draft.content

        with errors.file_access(note.file):
            written = self._files.rewrite(note.place, content, tool=tool)
        return EditedNote(
            file=note.file,
            docid=draft.docid,
            written=True,
            diff=draft.diff,
            change=written.change,
            problem=written.problem,
        )

    def create(self, note: NotePlace, text: str, *, tool: str = CREATE) -> EditedNote:
        """
        Create a note. Nothing is overwritten; missing folders are created.

        Args:
            note: A path that `Vault.check_new` takes.
            text: Written in UTF-8, with the line ends that it has.
            tool: Who creates it, for the history.

        Raises:
            NoteExistsError: Something is at the path already.
            EditError: The text is too long.
            FileAccessError: The disk does not allow it.
            The other errors of `FileWriter.rewrite`.
        """
        require_note(note)
        content = text.encode()
        if len(content) > MAX_BYTES:
            raise _too_long(note, "{file} would have more than {most} bytes.")

        def new_content(present: bytes | None) -> bytes:
            if present is not None:
                raise errors.NoteExistsError(note.file)
            return content

        try:
            written = self._files.rewrite(note.place, new_content, tool=tool)
        except IsADirectoryError:
            raise errors.NoteExistsError(note.file) from None
        except OSError as error:
            raise errors.FileAccessError(note.file, error) from error
        return EditedNote(
            file=note.file,
            docid=docid_of(text),
            written=True,
            diff=short_diff("", text),
            change=written.change,
            problem=written.problem,
        )

    def delete(
        self, note: NotePlace, *, if_docid: str | None = None, preview: bool = False
    ) -> EditedNote:
        """
        Delete a note; its content is kept in the history. Arguments and errors as for `edit`.
        """
        data = read_note(note)
        require_docid(self._files.store, note, data, if_docid)
        diff = short_diff(shown_text(data), "")
        if preview:
            return EditedNote(note.file, docid_of_file(note, data), written=False, diff=diff)
        digest = hashlib.sha256(data).hexdigest()
        try:
            with self._files.change(tool=DELETE) as change:
                change.delete(note.place, if_hash=digest)
        except FileNotFoundError:
            raise not_there(note) from None
        except OSError as error:
            raise errors.FileAccessError(note.file, error) from error
        return EditedNote(
            note.file, None, written=True, diff=diff, change=change.number, problem=change.problem
        )

    def _draft(
        self,
        note: NotePlace,
        data: bytes,
        edit: NoteEdit | Callable[[str], str],
        if_docid: str | None,
    ) -> _Draft:
        """What the edit makes of a content. Raises QmdError."""
        require_note(note)
        source = TextFile.decoded(note.file, data)
        require_docid(self._files.store, note, data, if_docid)
        text = edited(source.text, edit) if isinstance(edit, NoteEdit) else edit(source.text)
        new = source.encode(text)
        if len(new) > MAX_BYTES:
            raise _too_long(note, "{file} would have more than {most} bytes.")
        return _Draft(new, docid_of(source.text), docid_of(text), short_diff(source.text, text))


def require_note(note: NotePlace) -> None:
    """Raises EditError: the file is of a format that is only read."""
    file_format = format_of(note.file)
    if not file_format.is_edited:
        raise errors.EditError(
            engine_text(
                "{file} is only read here: its format is {kind}.",
                file=note.file,
                kind=file_format.name,
            ),
            hint="Change it with the program that wrote it; searches find the new text.",
        )


def read_note(note: NotePlace) -> bytes:
    """
    The content of a note on the disk.

    Raises:
        NotFoundError: There is no such file.
        EditError: It is no file, or too long.
        FileAccessError: It cannot be read.
    """
    most = max(MAX_BYTES, format_of(note.file).max_bytes or 0)  # what is only read may be larger
    try:
        return note.place.read(most)
    except (FileNotFoundError, NotADirectoryError):
        raise not_there(note) from None
    except IsADirectoryError:
        raise errors.EditError(engine_text("{file} is no file.", file=note.file)) from None
    except OSError as error:
        if error.errno == errno.EFBIG:
            raise _too_long(note, "{file} has more than {most} bytes.", most) from error
        raise errors.FileAccessError(note.file, error, reading=True) from error


def _too_long(note: NotePlace, template: str, most: int = MAX_BYTES) -> errors.EditError:
    return errors.EditError(
        engine_text(template, file=note.file, most=f"{most:,}"),
        hint="Change, move or delete it with another program; searches follow.",
    )


def require_docid(store: Store, note: NotePlace, data: bytes, if_docid: str | None) -> None:
    """
    Check that a note has the docid that a client has read; None is any.

    Args:
        data: The content of its file.

    Raises:
        InputError: It is no docid.
        FileChangedError: The note has another one; with what has changed since, if known.
    """
    if if_docid is None:
        return
    match = _DOCID.fullmatch(if_docid.strip())
    if match is None:
        raise errors.InputError(
            f"{if_docid!r} is no docid.",
            hint="It is # and six or more hex digits. Without it whatever is there is changed.",
        )
    digits = match[1].lower()
    text = document_text(note.file, data)
    if text is not None and _hash(text).startswith(digits):
        return
    read_text = store.read(lambda reader: _text_with_hash(reader, note, digits))
    raise errors.FileChangedError(
        note.file,
        since=f"it was read as #{digits} (it is {docid_of_file(note, data) or 'no document'} now)",
        diff=None if read_text is None else short_diff(read_text, text or ""),
        text_read=read_text,
    )


def docid_of(text: str) -> str:
    """The docid of a document with this text."""
    return f"#{_hash(text)[:6]}"


def docid_of_file(note: NotePlace, data: bytes) -> str | None:
    """The docid of a note whose file has this content; None if that is no document."""
    text = document_text(note.file, data)
    return None if text is None else docid_of(text)


def _text_with_hash(reader: Reader, note: NotePlace, digits: str) -> str | None:
    """The text that the note had with this docid, if the index or the history still knows it."""
    collection, _, path = note.file.partition("/")
    document = reader.documents.by_path(collection, path)
    if document is not None and reader.documents.content_hash(document.id).startswith(digits):
        return reader.documents.text(document.id)
    for revision in reader.revisions.history(str(note.place.target)):
        content = reader.revisions.content(revision.id) if revision.kind == "content" else None
        text = None if content is None else document_text(note.file, content)
        if text is not None and _hash(text).startswith(digits):
            return text
    return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def not_there(note: NotePlace) -> errors.NotFoundError:
    """The error for a file that is gone."""
    return errors.NotFoundError(
        f"The file of {note.file} is not there any more.", hint="It was moved or deleted meanwhile."
    )


def edited(text: str, edit: NoteEdit) -> str:
    """
    The text after an edit.

    Raises:
        EditError: The text has no such place, or more than one.
        InputError: The edit lacks a field or has one too many.
    """
    action = ACTIONS.get(edit.action)
    if action is None:
        raise errors.InputError(
            f"There is no action {edit.action!r}.", hint=f"One of {', '.join(ACTIONS)}."
        )
    for name in action.needs:
        if getattr(edit, name) is None and name != "value":
            raise errors.InputError(f"The action {edit.action} needs {name}.")
    if action.may_have == ("old", "line") and edit.old is None and edit.line is None:
        raise errors.InputError(
            f"The action {edit.action} needs old, the text of the task, or line.",
            hint="The name of the note may have the line: plan.md:4",
        )
    fields = (*action.needs, *action.may_have)
    for name in _FIELDS:
        if getattr(edit, name) is not None and name not in fields:
            raise errors.InputError(
                f"The action {edit.action} does not take {name}.",
                hint=f"It takes {', '.join(fields)}.",
            )
    new = action.apply(text, *(getattr(edit, name) for name in fields))
    if edit.action != "replace":  # which writes the missing line
        operations.require_same_frontmatter(text, new)
    return new
