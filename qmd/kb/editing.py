"""Creating, editing, moving and deleting notes, by their names and by the days they are about."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext, suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import errors, files, ingest, parse, values
from qmd.engine_text import engine_text
from qmd.files import edits, writing
from qmd.kb.files import FileMethods, vault_of
from qmd.kb.parts import open_to_scopes
from qmd.records import replace
from qmd.search import lookup

if TYPE_CHECKING:
    from qmd.files.edits.note_editor import NotePlace
    from qmd.files.vault import Vault
    from qmd.store import Reader, Store
    from qmd.values import Collection
    from qmd.values.days import MonthCalendar, PeriodicNote
    from qmd.values.writing import EditedNote, MovedNote, NoteEdit, NoteSource


class EditingMethods(FileMethods):
    @open_to_scopes
    def edit_note(
        self,
        name: str,
        edit: NoteEdit | Callable[[str], str],
        *,
        if_docid: str | None = None,
        preview: bool = False,
    ) -> EditedNote:
        """
        Edit the text of a note, as it is on the disk now. Its encoding and line ends stay.

        Args:
            name: The note, as `get` takes it. A line in it is that of a task to tick.
            edit: What to do; or a function that gets the text and returns the new one.
            if_docid: Refuse the edit unless the note still has this docid.
            preview: Write nothing, and return the diff.

        Raises:
            DocumentNotFoundError, AmbiguousNameError: As `get`.
            EditError: The note has no such place, or more than one; or its encoding lacks a
                character of the text.
            InputError: The edit lacks a field, or has one too many; or it is no docid; or the name
                has a line or a heading to which the edit does not fit.
            FileChangedError: The docid is another one; ``diff`` shows what has changed since, if
                that is known.
            OutsideRootsError, WriteDeclinedError, ConflictError, FileAccessError: As the
                `FileWriter` says.
        """
        store = self._store
        editor = edits.note_editor.NoteEditor(self._writer(store))
        place, line = self._place_and_line(store, name)
        if line is not None and not callable(edit):
            edit = _edit_at(edit, line, name=name, file=place.file)
        return editor.edit(place, edit, if_docid=if_docid, preview=preview)

    @open_to_scopes
    def note_source(self, name: str) -> NoteSource:
        """
        The text of a note as it is on the disk, for an editor, and whether it may be written.

        Raises:
            DocumentNotFoundError, AmbiguousNameError: As `get`.
            EditError: It is no note, no text, or a text that an editor would change.
            FileAccessError: The file cannot be read.
        """
        store = self._store
        return edits.note_editor.NoteEditor(self._writer(store)).source(self._place(store, name))

    @open_to_scopes
    def replace_note(
        self,
        name: str,
        text: str,
        *,
        if_docid: str | None = None,
        preview: bool = False,
        continues: int | None = None,
    ) -> EditedNote:
        """
        Replace the whole text of a note, which keeps its encoding and its line ends.

        Args:
            text: The new text, with ``\\n`` at the end of each line. An unchanged text changes
                nothing.
            continues: The number of a change by which the same session has written the note.
                If nothing else has changed the note since, both are one change, and undo takes
                back both; the text between them is not kept.

        The other arguments and the errors are those of `edit_note`.
        """
        store = self._store
        writer = self._writer(store)
        edited = edits.note_editor.NoteEditor(writer).edit(
            self._place(store, name),
            lambda present: edits.operations.replace_all(present, text),
            if_docid=if_docid,
            preview=preview,
        )
        if continues is None or edited.change is None:
            return edited
        return replace(edited, change=writer.join(continues, edited.change))

    @open_to_scopes
    def tick_task(
        self, name: str, line: int, *, done: bool, if_docid: str | None = None
    ) -> EditedNote:
        """
        Tick or untick the task at a line.

        Args:
            line: Counted from 1, in the note as the person sees it.
            if_docid: The docid of that note. If it has changed since, the only task with the text
                that stood at the line is meant.

        Raises:
            EditError: There is no such task any more, or more than one.
            FileChangedError: The note has changed, and what it was is not known any more.
            The other errors of `edit_note`.
        """
        edit = values.writing.NoteEdit("tick" if done else "untick", line=line)
        try:
            return self.edit_note(name, edit, if_docid=if_docid)
        except errors.FileChangedError as error:
            tasks = {
                task.line: task.text for task in edits.operations.tasks_of(error.text_read or "")
            }
            text = tasks.get(line)
            if not text:
                raise
        return self.edit_note(
            name,
            lambda present: edits.operations.set_seen_task(
                present, done=done, task=text, line=line
            ),
        )

    @open_to_scopes
    def create_note(self, path: str, text: str) -> EditedNote:
        """
        Create a note in a collection, never in the vault and never over another note.

        Missing folders are created. `notes` has what the tool `create_note` does.

        Args:
            path: ``collection/path``; ``.md`` may be left out.

        Raises:
            InvalidPathError: No note can have this path, or it leads out of the collections.
            ConflictError: Something is at the path already, or a rule keeps the path out of the
                index.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        vault = store.read(vault_of)
        file = "/".join(
            name for name in files.vault.note_path(path).split("/") if name not in ("", ".")
        )
        vault.check_new(file)
        place = vault.locate(file)
        exclusion = files.vault.exclusion_of_file(store, place.target)
        files.vault.require_shown(file, exclusion)
        return edits.note_editor.NoteEditor(self._writer(store)).create(
            edits.note_editor.NotePlace(file, place), text
        )

    @open_to_scopes
    def writable_collections(self) -> list[Collection]:
        """The collections in which notes may be created."""
        store = self._store
        writable = []
        collections = store.read(lambda reader: reader.collections.all())
        policy = self._writer(store).policy
        for each in collections:
            try:
                store.require_writable()
                policy.permitted(Path(os.path.realpath(each.path), "note.md"))
            except errors.QmdError:
                continue
            writable.append(each)
        return writable

    @open_to_scopes
    def delete_note(
        self, name: str, *, if_docid: str | None = None, preview: bool = False
    ) -> EditedNote:
        """
        Delete a note; its content is kept in the history. Arguments and errors as `edit_note`.
        """
        store = self._store
        editor = edits.note_editor.NoteEditor(self._writer(store))
        place = self._place(store, name, whole=True)
        return editor.delete(place, if_docid=if_docid, preview=preview)

    @open_to_scopes
    def periodic_note(self, when: str = "today", *, collection: str | None = None) -> PeriodicNote:
        """
        The note of a day, week, month, quarter or year, where the vault's settings put it.

        Nothing is created.

        The collection is the one that is named, else the only one with settings of daily notes,
        else the only vault of Obsidian, else the only one.

        Args:
            when: ``today``, ``2026-11-20``, ``week``, ``2026-W47``, ``last month``, ``2026-11``,
                ``2026-Q4``, ``2026``.

        Raises:
            InputError: ``when`` names no period, or there are several collections to choose from.
            CollectionNotFoundError.
        """
        store = self._store
        with store.reading() as reader:
            chosen, notes = files.days.chosen(reader, collection)
            period = files.days.read_period(when, date.today(), notes)
            file = files.days.file_of(chosen, notes, period)
            vault = vault_of(reader)
            vault.check_new(file)
            is_there = _note_on_disk(reader, vault, file) is not None
            previous, following = (
                files.days.nearest(reader, chosen, notes, period, step) for step in (-1, 1)
            )
        text, more_lines = "", 0
        if is_there:
            place = edits.note_editor.NotePlace(file, vault.locate(file))
            text, more_lines = files.days.beginning(
                parse.decode.decode(edits.note_editor.read_note(place)).text
            )
        return values.days.PeriodicNote(
            file,
            period.kind,
            period.name,
            period.first.isoformat(),
            period.last.isoformat(),
            exists=is_there,
            text=text,
            more_lines=more_lines,
            previous=previous,
            following=following,
        )

    @open_to_scopes
    def calendar(self, month: str = "month", *, collection: str | None = None) -> MonthCalendar:
        """
        A month with its indexed notes of days and weeks.

        Args:
            month: ``2026-11``, ``month`` or a day of it.

        Raises:
            The errors of `periodic_note`.
        """
        with self._store.reading() as reader:
            chosen, notes = files.days.chosen(reader, collection)
            period = files.days.read_period(month, date.today(), notes)
            return files.days.calendar(reader, chosen, notes, period.first)

    @open_to_scopes
    def create_periodic_note(
        self, when: str = "today", *, collection: str | None = None
    ) -> EditedNote:
        """
        Create the note of a period from the vault's template; one that exists stays as it is.

        Raises:
            NotFoundError: The template does not exist.
            The errors of `periodic_note` and of `create_note`.
        """
        store = self._store
        with store.reading() as reader:
            chosen, notes = files.days.chosen(reader, collection)
            period = files.days.read_period(when, date.today(), notes)
            file = files.days.file_of(chosen, notes, period)
            vault = vault_of(reader)
            vault.check_new(file)
            is_there = _note_on_disk(reader, vault, file) is not None
        if not is_there:
            template = notes.pattern(period.kind).template
            text = files.days.read_template(Path(chosen.path), template) if template else ""
            with suppress(errors.NoteExistsError):  # another client has just created it
                return self.create_note(file, notes.filled(text, period, datetime.now()))
        place = edits.note_editor.NotePlace(file, vault.locate(file))
        docid = edits.note_editor.docid_of_file(place, edits.note_editor.read_note(place))
        return values.writing.EditedNote(file, docid, written=False, diff="")

    def _place(self, store: Store, name: str, *, whole: bool = False) -> NotePlace:
        """
        The note that a name means, and where it is on the disk.

        Raises:
            InputError: The name has a line or a heading, and the note is meant as a ``whole``.
            The errors of `_place_and_line`.
        """
        place, line = self._place_and_line(store, name)
        if whole and line is not None:
            raise errors.InputError(
                engine_text(
                    "{name} is a part of a note; notes are moved and deleted as a whole.",
                    name=name,
                ),
                hint=f"Name the note: {place.file}",
            )
        return place

    def _place_and_line(self, store: Store, name: str) -> tuple[NotePlace, int | None]:
        """
        The note that a name means, and the line at which the part that it names begins, if any.

        A path that the index does not have yet may also be that of a file.

        Raises:
            DocumentNotFoundError, AmbiguousNameError
            NotFoundError: It is the name of a folder.
        """
        with store.reading() as reader:
            vault = vault_of(reader)
            try:
                resolved = lookup.resolve.resolve(reader, name)
            except errors.DocumentNotFoundError:
                path = _note_on_disk(reader, vault, name)
                folder = None if path is not None else _folder_on_disk(vault, name)
                if folder is not None:
                    raise errors.NotFoundError(
                        engine_text(
                            "{folder} is a folder; notes are edited, moved and deleted one by one.",
                            folder=folder,
                        ),
                        hint=f"GET /documents lists its notes; in the shell"
                        f" 'qmd ls {folder}' does.",
                    ) from None
                if path is None:
                    raise
                return edits.note_editor.NotePlace(path, vault.locate(path)), None
            file = resolved.document.file
            path = _note_on_disk(reader, vault, name)
        place = vault.locate(file)
        if path is not None and path != file:
            # A new file at just this path, not the one that the index has under a similar path.
            there = vault.locate(path)
            if not (place.target.exists() and place.target.samefile(there.target)):
                return edits.note_editor.NotePlace(path, there), None
        return edits.note_editor.NotePlace(file, place), resolved.line


def _edit_at(edit: NoteEdit, line: int, *, name: str, file: str) -> NoteEdit:
    """
    An edit of a note whose name has a line, which is that of a task.

    Raises:
        InputError: The edit has another line, or is none of the place that the name means.
    """
    if edit.action in ("tick", "untick"):
        if edit.line not in (None, line):
            raise errors.InputError(
                engine_text(
                    "{name} begins at line {line}, and the task is to be in line {other}.",
                    name=name,
                    line=line,
                    other=edit.line,
                ),
                hint=f"Name the note ({file}) and the line of the task.",
            )
        return replace(edit, line=line)
    if edit.action == "prepend" or (edit.action == "append" and edit.heading is None):
        raise errors.InputError(
            engine_text(
                "{name} is a part of a note; {action} adds to the whole note.",
                name=name,
                action=edit.action,
            ),
            hint=f"Name the note: {file}. For a section, append takes its heading.",
        )
    return edit


def _note_on_disk(reader: Reader, vault: Vault, name: str) -> str | None:
    """
    ``collection/path`` if a file is there that the rules of its collection include.

    What they leave out, such as ``.git/config``, is no note: its text is nobody's to read here.
    """
    path = _path_on_disk(vault, name)
    location = (
        None if path is None else ingest.collection_paths.locate(path, reader.collections.all())
    )
    if location is None:
        return None
    collection, relative = location
    rules = ingest.rules.Rules.of_collection(collection)
    try:
        return path if ingest.why.judge_path(rules, relative).indexed else None
    except errors.NotFoundError:  # it has gone
        return None


def _path_on_disk(vault: Vault, name: str) -> str | None:
    """``collection/path`` if a file is there on the disk."""
    with suppress(errors.InvalidPathError):
        path = files.vault.plain_path(name.removeprefix("qmd://"))
        # Unlike Path.is_file, os.path takes a name that is too long for the disk.
        if files.vault.can_exist(path) and vault.has_root_for(path):
            return path if os.path.isfile(vault.locate(path).target) else None  # noqa: PTH113
    return None


def _folder_on_disk(vault: Vault, name: str) -> str | None:
    """``collection/path`` if a folder is there on the disk; the collection may be left out."""
    with suppress(errors.InvalidPathError):
        path = files.vault.plain_path(name.removeprefix("qmd://")).rstrip("/")
        if path in ("", "."):
            return None  # no name at all
        for each in (path, *(f"{collection}/{path}" for collection in vault.roots)):
            if not files.vault.can_exist(each) or not vault.has_root_for(each):
                continue
            if os.path.isdir(vault.locate(each).target):  # noqa: PTH112
                return each
    return None


class MovingMethods(EditingMethods):
    @open_to_scopes
    def move_note(
        self,
        name: str,
        new_path: str,
        *,
        rewrite_links: bool = True,
        preview: bool = False,
        if_docid: str | None = None,
    ) -> MovedNote:
        """
        Move or rename a note, and rewrite the links that would lose their target, as Obsidian does.

        The rename and all rewritten notes are one change. First the index of the collections is
        updated, because it says which notes have links to this one.

        Args:
            name: The note, as `get` takes it.
            new_path: A name alone renames the note in its folder. Another path begins with the name
                of a collection, or at the root of the note's collection. A folder keeps the name;
                the suffix may be left out; missing folders are created.
            rewrite_links: If False, the reply lists the links that would have to be changed.
            preview: Write nothing; the reply says what would change.
            if_docid: Refuse the move unless the note still has this docid.

        Raises:
            DocumentNotFoundError, AmbiguousNameError: As `get`.
            InvalidPathError: No note can have the new path.
            ConflictError: Something is at the new path, nothing is overwritten; or another move
                takes too long.
            FileChangedError: The docid is another one.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        if not preview:
            store.require_writable()
        with nullcontext() if preview else writing.writer.one_move_at_a_time(store.location):
            vault = store.read(vault_of)
            note = self._place(store, name, whole=True)
            target = files.moves.new_place(vault, note.file, new_path)
            self._update(store, {note.file, target.file})
            note = self._place(store, name)
            moved = files.moves.NoteMover(self._writer(store), vault).move(
                note, target, rewrite_links=rewrite_links, preview=preview, if_docid=if_docid
            )
        exclusion = files.vault.exclusion_of_file(store, target.place.target)
        return replace(moved, problem=moved.problem or exclusion)

    def _update(self, store: Store, files: set[str]) -> None:
        """Update the index of the collections of some files, unless it is read-only."""
        try:
            store.require_writable()
        except errors.ReadOnlyError:
            return
        names = {file.partition("/")[0] for file in files}
        with store.reading() as reader:
            collections = [each for each in reader.collections.all() if each.name in names]
        ingest.index.index_collections(store, collections, events=self._events)
