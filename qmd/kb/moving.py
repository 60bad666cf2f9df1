"""Moving and renaming notes, with the links to them."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING

from qmd import files, ingest
from qmd.errors import ReadOnlyError
from qmd.files import moves, writing
from qmd.kb.editing import EditingMethods
from qmd.kb.parts import open_to_scopes
from qmd.records import replace

if TYPE_CHECKING:
    from qmd.store import Store
    from qmd.values.edits import MovedNote


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
        with nullcontext() if preview else writing.move_lock.one_move_at_a_time(store.location):
            with store.reading() as reader:
                vault = files.vault.Vault.of_collections(reader.collections.all())
            note = self._place(store, name)
            target = moves.mover.new_place(vault, note.file, new_path)
            self._update(store, {note.file, target.file})
            note = self._place(store, name)
            moved = moves.mover.NoteMover(self._writer(store), vault).move(
                note, target, rewrite_links=rewrite_links, preview=preview, if_docid=if_docid
            )
        exclusion = files.indexed_file.exclusion_of_file(store, target.place.target)
        return replace(moved, problem=moved.problem or exclusion)

    def _update(self, store: Store, files: set[str]) -> None:
        """Update the index of the collections of some files, unless it is read-only."""
        try:
            store.require_writable()
        except ReadOnlyError:
            return
        names = {file.partition("/")[0] for file in files}
        with store.reading() as reader:
            collections = [each for each in reader.collections.all() if each.name in names]
        ingest.index.index_collections(store, collections, events=self._events)
