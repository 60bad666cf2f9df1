"""Moves a note to the path that a caller means, and rewrites the links of others, as one change."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote

from qmd import errors
from qmd.engine_text import engine_text
from qmd.files import moved_links
from qmd.files.edits import note_editor
from qmd.files.edits.diff import short_diff
from qmd.files.edits.text_file import TextFile
from qmd.files.vault import Vault, plain_path
from qmd.files.writing.policy import ResolvedPath
from qmd.files.writing.writer import ChangeWriter, FileWriter, is_other_case
from qmd.ingest.parse_workers import document_text
from qmd.ingest.rules import LinkFormat, vault_settings
from qmd.parse.decode import text_if_any
from qmd.parse.formats import format_of, has_suffix_of_files
from qmd.system import cancellation
from qmd.values.text import NOTE_SUFFIXES, fold
from qmd.values.writing import MAX_LISTED, MovedNote, RewrittenNote, UnchangedLink


def new_place(vault: Vault, file: str, new_path: str) -> note_editor.NotePlace:
    """
    The place that a new path means.

    A name without ``/`` renames the note in its folder. Other paths begin with the name of a
    collection, or at the root of the note's collection; ``qmd://`` and paths on the disk are taken,
    too. A folder (one that is there, or with ``/`` at the end) keeps the note's name. The suffix of
    the note may be left out; that of another format is none of it.

    Args:
        file: ``collection/path`` of the note.

    Raises:
        InvalidPathError: No note can have this path, or it leads out of the collections, or ends as
            files of another format do.
    """
    collection, path = _place(vault, file, new_path)
    name = file.rpartition("/")[2]
    if not path or new_path.strip().endswith("/") or _is_folder(vault, collection, path):
        path = f"{path}/{name}" if path else name
    else:
        suffix = Path(name).suffix
        allowed = NOTE_SUFFIXES if fold(suffix) in NOTE_SUFFIXES else (fold(suffix),)
        if not fold(path).endswith(allowed):
            if has_suffix_of_files(path):
                raise errors.InvalidPathError(
                    engine_text("{path} would be a file of another format.", path=path),
                    hint=f"A move changes no format: leave the suffix out, or write {path}{suffix}",
                )
            path += suffix
    new_file = f"{collection}/{path}"
    vault.check_new(new_file)
    return note_editor.NotePlace(new_file, _located(vault, file, collection, path))


def _place(vault: Vault, file: str, new_path: str) -> tuple[str, str]:
    """Collection and path, without ``/`` around it and with single ones inside."""
    collection, _, old_path = file.partition("/")
    new_path = new_path.strip()
    if "\0" in new_path:  # which no function of the system takes
        raise errors.InvalidPathError("Invalid path: contains a NUL character")
    if new_path.startswith("qmd://"):
        plain = plain_path(unquote(new_path.removeprefix("qmd://")))
        return _split(vault, plain, collection, is_whole=True)
    on_disk = Path(os.path.expanduser(new_path))  # noqa: PTH111
    if on_disk.is_absolute():
        absolute = Path(os.path.realpath(on_disk))
        for name, root in vault.roots.items():
            if absolute.is_relative_to(root):
                return name, _clean(absolute.relative_to(root).as_posix())
        top = on_disk.parts[1] if len(on_disk.parts) > 2 else ""
        if top and Path(on_disk.anchor, top).is_dir() and not _is_folder(vault, collection, top):
            # `/tmp/x.md`, where the collection has no folder `tmp`: a path on the disk.
            raise errors.InvalidPathError(
                engine_text("{path} lies outside the collections.", path=new_path),
                hint="Begin with a collection, or at the root of the note's collection.",
            )
    plain = plain_path(new_path)
    if "/" not in new_path:
        folder = old_path.rpartition("/")[0]
        if not folder or (
            not _is_folder(vault, collection, f"{folder}/{plain}")
            and _is_folder(vault, collection, plain)
        ):
            return collection, _clean(plain)
        return collection, _clean(f"{folder}/{plain}")
    return _split(vault, plain, collection, is_whole=False)


def _split(vault: Vault, path: str, collection: str, *, is_whole: bool) -> tuple[str, str]:
    first, _, rest = path.partition("/")
    if first in vault.roots:
        return first, _clean(rest)
    if is_whole:
        raise errors.InvalidPathError(engine_text("There is no collection {first}.", first=first))
    return collection, _clean(path)


def _clean(path: str) -> str:
    return "/".join(name for name in path.split("/") if name not in ("", "."))


def _is_folder(vault: Vault, collection: str, path: str) -> bool:
    # Unlike Path.is_dir, this takes a name that is too long for the disk.
    return os.path.isdir(vault.roots[collection].joinpath(path))  # noqa: PTH112


def _located(vault: Vault, file: str, collection: str, path: str) -> ResolvedPath:
    """Raises InvalidPathError."""
    written = vault.roots[collection].joinpath(path)
    place = vault.locate(f"{collection}/{path}")
    if os.path.islink(written):  # noqa: PTH114 (takes a name that is too long)
        # The link itself is in the way, wherever it leads.
        raise errors.InvalidPathError(f"{collection}/{path} is a link that exists already.")
    old = vault.locate(file).target
    named = place.target.with_name(written.name)
    # Windows resolves a name to the one on the disk, which may differ in case.
    return ResolvedPath(place.root, named) if is_other_case(old, named) else place


TOOL = "move_note"
_NOT_ASKED = "links were not to be rewritten"


class _NewContent(NamedTuple):
    """
    A note after a move.

    Attributes:
        before: What its file holds.
        data: None if it stays as it is.
    """

    before: bytes
    data: bytes | None = None
    diff: str = ""
    links: int = 0
    left: tuple[moved_links.LinkInText, ...] = ()


class _LinkingNote(NamedTuple):
    """
    A note with links that may have to be rewritten.

    Attributes:
        file: ``collection/path`` before the move.
        after: The note after the move.
    """

    file: str
    after: note_editor.NotePlace
    move: moved_links.Move


class _Links:
    """
    Rewrites the links of the notes that a move concerns, and gathers what a reply says of them: it
    keeps no more than the reply lists.

    Args:
        change: None for a preview, which writes nothing.
        rewrite: Whether links are changed; if not, they are listed.
    """

    def __init__(self, files: FileWriter, change: ChangeWriter | None, *, rewrite: bool) -> None:
        self._files = files
        self._change = change
        self._rewrite = rewrite
        self._notes = self._links = self._unchanged_links = 0
        self._rewritten: list[RewrittenNote] = []
        self._unchanged: list[UnchangedLink] = []

    def rewrite_moved(self, note: _LinkingNote, data: bytes) -> str | None:
        """Rewrite the links in the moved note; returns its docid, None if it is no document."""
        content = self._content(note, data)
        if self._change is not None and content.data is not None:
            # The index has to see the move before the text changes: the same text at another
            # path is the same document.
            self._files.index(self._change.changed)
        content = self._written(note, data, content)
        self._add(note.after.file, content)
        return note_editor.docid_of_file(
            note.after, content.before if content.data is None else content.data
        )

    def rewrite_other(self, note: _LinkingNote) -> None:
        """Rewrite the links in another note."""
        try:
            data = note_editor.read_note(note.after)
            content = self._content(note, data)
        except errors.NotFoundError:
            return  # with its links
        except errors.QmdError as error:
            self._leave(UnchangedLink(note.file, None, None, str(error)))
            return
        self._add(note.file, self._written(note, data, content))

    def reply(self, moved: MovedNote) -> MovedNote:
        """The reply with what it says of the links."""
        return replace(
            moved,
            notes=self._notes,
            links=self._links,
            rewritten=tuple(self._rewritten),
            unchanged_links=self._unchanged_links,
            unchanged=tuple(self._unchanged),
        )

    def _add(self, file: str, content: _NewContent) -> None:
        if content.data is not None:
            self._notes += 1
            self._links += content.links
            if len(self._rewritten) < MAX_LISTED:
                self._rewritten.append(RewrittenNote(file, content.links, content.diff))
        for link in content.left:
            self._leave(UnchangedLink(file, link.line, link.link, link.reason))

    def _leave(self, link: UnchangedLink) -> None:
        self._unchanged_links += 1
        if len(self._unchanged) < MAX_LISTED:
            self._unchanged.append(link)

    def _written(self, note: _LinkingNote, data: bytes, content: _NewContent) -> _NewContent:
        """Write the new content of one note; if that fails, its links are left as they are."""
        if content.data is None:
            return content

        def new(present: bytes | None) -> bytes:
            nonlocal content
            if present is None:
                raise note_editor.not_there(note.after)
            if present != data:  # changed meanwhile
                content = self._content(note, present)
            return present if content.data is None else content.data

        try:
            if self._change is None:
                self._files.policy.resolve(note.after.place)
            else:
                self._change.rewrite(note.after.place, new)
        except (errors.QmdError, OSError) as error:
            reason = f"{error.strerror}." if isinstance(error, OSError) else error.message
            links = _rewritten(note, _text(note.file, data) or "").changed
            left = tuple(link._replace(reason=reason) for link in links)
            return _NewContent(data, left=(*left, *content.left))
        return content

    def _content(self, note: _LinkingNote, data: bytes) -> _NewContent:
        """The new content of a note."""
        text = _text(note.file, data)
        if text is None:
            return _NewContent(data)
        new = _rewritten(note, text)
        if not new.changed:
            return _NewContent(data, left=new.left)
        reason = _NOT_ASKED
        if format_of(note.file) not in moved_links.REWRITERS:
            reason = moved_links.NOT_IN_THIS_FORMAT
        elif self._rewrite:
            try:
                new_data = TextFile.decoded(note.file, data).encode(new.text)
            except errors.EditError as error:
                reason = error.message
            else:
                diff = short_diff(text, new.text)
                return _NewContent(data, new_data, diff, len(new.changed), new.left)
        left = [link._replace(reason=reason) for link in new.changed]
        return _NewContent(data, left=tuple(sorted((*left, *new.left))))


class NoteMover:
    """Moves notes through the one `FileWriter`."""

    def __init__(self, files: FileWriter, vault: Vault) -> None:
        self._files = files
        self._vault = vault

    def move(
        self,
        note: note_editor.NotePlace,
        target: note_editor.NotePlace,
        *,
        rewrite_links: bool = True,
        preview: bool = False,
        if_docid: str | None = None,
    ) -> MovedNote:
        """
        Move a note. The index should be up to date: it says which notes have links to it.

        Args:
            rewrite_links: Change the links that would lose their target; if False, list them.
            preview: Write nothing, and return what would change.
            if_docid: The docid that the note must have.

        Raises:
            ConflictError: Something is at the new path.
            FileChangedError: The note has another docid.
            NotFoundError, FileAccessError: The file cannot be read or moved.
            The other errors of `ChangeWriter.move`.
        """
        self._require_free(note, target)
        data = note_editor.read_note(note)
        note_editor.require_docid(self._files.store, note, data, if_docid)
        inside, others = self._plan(note, target, _text(note.file, data))
        moved = MovedNote(target.file, note.file, None, written=False)
        if preview:
            links = _Links(self._files, None, rewrite=rewrite_links)
            links.rewrite_moved(inside, data)
            moved = replace(moved, docid=note_editor.docid_of_file(note, data))
            for other in others:
                links.rewrite_other(other)
            return links.reply(moved)
        with cancellation.uninterrupted(), self._files.change(tool=TOOL) as change:
            try:
                digest = hashlib.sha256(data).hexdigest()
                change.move(note.place, target.place, if_hash=digest)
            except FileExistsError:
                raise _exists(target) from None
            except FileNotFoundError:
                raise note_editor.not_there(note) from None
            except OSError as error:
                raise errors.FileAccessError(target.file, error) from error
            links = _Links(self._files, change, rewrite=rewrite_links)
            docid = links.rewrite_moved(inside, data)
            for other in others:
                links.rewrite_other(other)
        moved = replace(moved, docid=docid, written=True)
        return links.reply(replace(moved, change=change.number, problem=change.problem))

    def _plan(
        self, note: note_editor.NotePlace, target: note_editor.NotePlace, text: str | None
    ) -> tuple[_LinkingNote, Iterator[_LinkingNote]]:
        """The moved note, and the other notes with links that the move concerns."""
        old_collection, _, old_path = note.file.partition("/")
        new_collection, _, new_path = target.file.partition("/")
        formats = {name: self._link_format(name) for name in (old_collection, new_collection)}
        with self._files.store.reading() as reader:
            inside, others = moved_links.plan_move(
                reader, (old_collection, old_path), (new_collection, new_path), text, formats
            )
        return _LinkingNote(note.file, target, inside), (
            _LinkingNote(file, note_editor.NotePlace(file, self._vault.locate(file)), move)
            for file, move in others
        )

    def _link_format(self, collection: str) -> LinkFormat | None:
        settings = vault_settings(self._vault.roots[collection])
        return None if settings is None else settings.link_format

    def _require_free(self, note: note_editor.NotePlace, target: note_editor.NotePlace) -> None:
        """Raises ConflictError."""
        old, new = note.place.target, target.place.target
        if old == new:
            raise errors.ConflictError(
                engine_text("{file} is there already.", file=note.file), hint="Choose another path."
            )
        if not os.path.lexists(new):
            return
        if is_other_case(old, new) and old.exists() and old.samefile(new):
            return  # a disk that ignores case
        raise _exists(target)


def _rewritten(note: _LinkingNote, text: str) -> moved_links.Rewritten:
    # A format without a rewriter is converted to Markdown, of which this says what it would lose.
    rewrite = moved_links.REWRITERS.get(format_of(note.file), moved_links.rewrite_note)
    path, path_after = (each.partition("/")[2] for each in (note.file, note.after.file))
    return rewrite(text, note.move, path, path_after)


def _text(file: str, data: bytes) -> str | None:
    """The text with the links of a file; None if it is no text, or its format has no links."""
    file_format = format_of(file)
    if not file_format.has_links:
        return None
    if file_format not in moved_links.REWRITERS:
        return document_text(file, data)
    return text_if_any(data)


def _exists(target: note_editor.NotePlace) -> errors.ConflictError:
    return errors.ConflictError(
        engine_text("{file} exists already; nothing was moved.", file=target.file),
        hint="Choose another path.",
    )
