"""Remembering facts and conversations in notes, recalling them, and what stands around a note."""

from __future__ import annotations

from datetime import date
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, parse, search, transfer, values
from qmd.errors import AmbiguousNameError, EditError, InputError, NoteExistsError
from qmd.files import edits
from qmd.kb.capturing import CapturingMethods, first_added
from qmd.kb.graph import GraphMethods, document_named, most_listed
from qmd.kb.parts import open_to_scopes
from qmd.search import graph
from qmd.values import Filters, SearchRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from qmd.files.edits.note_editor import NotePlace
    from qmd.store import Store
    from qmd.transfer.conversations import ConversationProgram
    from qmd.values import Collection, DocumentInfo
    from qmd.values.edits import EditedNote
    from qmd.values.imports import ConversationsReport
    from qmd.values.memory import NewFact, NoteContext, RecalledFact, RecalledFacts, RememberedFact

FOLDER = "memory"
"""The collection for new subjects, if there is one of this name; else a folder in the first."""

CONVERSATIONS = "conversations"
"""The folder for imported conversations in the first collection, if none is named."""

MAX_STEPS = 3


class MemoryMethods(GraphMethods, CapturingMethods):
    """A fact is a list item of a note: ``- [category] fact #tag (context)``."""

    @open_to_scopes
    def remember(self, fact: NewFact, *, collection: str | None = None) -> RememberedFact:
        """
        Write a fact into the note of its subject; a new note if there is none of this name.

        The same fact again gets today's day, and the new source and end. Undo takes it back.

        Args:
            collection: Where the note is; None for any in which notes may be written.

        Raises:
            EditError: The fact is empty or too long, or no fact can be written so.
            AmbiguousNameError: Several notes have the name.
            The errors of `create_note` and `edit_note`.
        """
        store = self._store
        today = date.today().isoformat()
        line = edits.observations.fact_line(fact, today)
        editor = edits.note_editor.NoteEditor(self._writer(store))
        place = self._place_of_subject(store, fact.about, collection)
        written: EditedNote
        if place is None:
            note = self._new_subject(store, fact.about, collection)
            text = edits.observations.new_note(" ".join(fact.about.split()), line)
            try:
                written = editor.create(note, text, tool="remember")
            except NoteExistsError:  # perhaps another client has just created it
                place = note
        if place is not None:
            written = editor.edit(
                place, lambda present: edits.observations.with_fact(present, line), tool="remember"
            )
        return self._remembered(store, written, line, today)

    @open_to_scopes
    def recall(
        self,
        query: str | None = None,
        *,
        about: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        since: str | None = None,
        expired: bool = False,
        collection: str | None = None,
        limit: int | None = 20,
    ) -> RecalledFacts:
        """
        The facts of notes, by words and meaning, subject, category, tags and time.

        Those of a subject and category stand together, the newest first. Without a query all are
        in this order. Facts that hold no more are left out.

        Args:
            query: None for all.
            about: The title, alias, name or path of the note that states them.
            tags: With all of these tags, or tags below them.
            since: Noted since then: a span such as ``7d``, or a date.
            expired: With those that hold no more.

        Raises:
            DocumentNotFoundError: No note has the name ``about``.
            InputError: ``since`` is no time.
        """
        about = (about or "").strip() or None
        files_near: list[str] = []
        if query is not None and query.strip() and about is None:
            request = SearchRequest(
                query,
                limit=search.memory.MAX_DOCUMENTS,
                filters=Filters(
                    collections=(collection,) if collection else (), properties=("fact:*",)
                ),
                rerank=False,
                expand=False,
                spelling=False,
            )
            hits = self.run_search("query", request).hits
            files_near = [
                hit.file for hit in hits if hit.relevance >= search.memory.LEAST_RELEVANCE
            ]
        which = search.memory.FactRequest(
            about, category, tags, since, expired, collection, date.today().isoformat()
        )
        with self._store.reading() as reader:
            return search.memory.recalled(
                reader, which, query=query, files=files_near, limit=most_listed(limit)
            )

    @open_to_scopes
    def forget(self, about: str, fact: str, *, preview: bool = False) -> EditedNote:
        """
        Take a fact out of the note of its subject. Undo brings it back.

        Args:
            about: The title, alias, name or path of the note.
            fact: Its text, or a part of it that only one fact of the note has.

        Raises:
            DocumentNotFoundError, AmbiguousNameError: There is no such note, or more than one.
            EditError: The note states no such fact, or more than one.
            The other errors of `edit_note`.
        """
        store = self._store
        editor = edits.note_editor.NoteEditor(self._writer(store))
        place = self._place_of_subject(store, about, None) or self._place(store, about)
        return editor.edit(
            place,
            lambda present: edits.observations.without_fact(present, fact),
            preview=preview,
            tool="forget",
        )

    @open_to_scopes
    def build_context(self, file: str, *, max_tokens: int = 4000, steps: int = 1) -> NoteContext:
        """
        A note and the notes that it links to or that link to it, within a budget.

        Args:
            file: A name as `get` takes it.
            max_tokens: Estimated; the note itself gets up to 60 % of it.
            steps: How many links away a note may be, 1 to 3.

        Raises:
            InputError: The budget or the steps are out of range.
            DocumentNotFoundError, AmbiguousNameError: As `get`.
        """
        values.tokens.check_max_tokens(max_tokens)
        if not 1 <= steps <= MAX_STEPS:
            raise InputError(f"The steps must be between 1 and {MAX_STEPS}, not {steps}.")
        with self._store.reading() as reader:
            return graph.context.context_of(
                reader,
                document_named(reader, file),
                max_tokens=max_tokens,
                steps=steps,
                today=date.today().isoformat(),
            )

    def import_conversations(
        self,
        program: ConversationProgram,
        file: str | Path,
        *,
        folder: str | None = None,
        dry_run: bool = False,
    ) -> ConversationsReport:
        """
        Make a note of each conversation that ChatGPT or Claude has exported, as one change.

        A note of an earlier import is written anew if the conversation went on since; else it
        stays as it is, also at another place. Undo takes all of it back.

        Args:
            file: The archive, or the ``conversations.json`` in it.
            folder: ``collection/folder`` for new notes; None for `CONVERSATIONS` in the first
                collection in which notes may be written.
            dry_run: Only say what would be written.

        Raises:
            FileAccessError: The file cannot be read.
            InputError: It is no export of the program, damaged or too large.
            InvalidPathError: The folder is in no collection.
            EditError: Notes may be written nowhere.
            OutsideRootsError, ConflictError: As the `FileWriter` says.
        """
        store = self._store
        source = Path(file).expanduser().absolute()
        if folder is None:
            folder = f"{self._first_collection()}/{CONVERSATIONS}"
        base = files.vault.plain_path(folder.removeprefix("qmd://")).rstrip("/")
        vault = self._vault(store)
        vault.check_new(f"{base}/note.md")
        imported = self._imported(store)
        states = []
        with self._writer(store).change(tool="import") as change:
            for each in transfer.conversations.conversations(program, source):
                place, updated = imported.get(
                    each.key, (f"{base}/{program}/{each.file_name}", None)
                )
                is_newer = updated is None or updated < each.updated
                states.append("new" if updated is None else "updated" if is_newer else "same")
                imported[each.key] = (place, each.updated)  # an export may have it twice
                if is_newer and not dry_run:
                    text = transfer.conversations.as_note(each).encode("utf-8", "replace")
                    change.rewrite(vault.locate(place), partial(_replaced_by, text))
        return values.imports.ConversationsReport(
            str(source),
            base,
            dry_run,
            new=states.count("new"),
            updated=states.count("updated"),
            unchanged=states.count("same"),
            change=change.number,
            problem=change.problem,
        )

    def _imported(self, store: Store) -> dict[str, tuple[str, str | None]]:
        """The notes of earlier imports by their conversations: file, and when it went on last."""
        notes: dict[str, tuple[str, str | None]] = {}
        with store.reading() as reader:
            selection = reader.select(Filters(properties=("conversation:*",)))
            ids = sorted(set(reader.documents.selected_ids(selection)))
            for info in reader.documents.by_ids(ids):
                properties = reader.documents.facts(info.id).properties
                key = str(properties.get("conversation"))
                notes[key] = (info.file, transfer.conversations.moment(properties.get("updated")))
        return notes

    def _first_writable(self, collection: str | None) -> Collection:
        """
        The first collection in which notes may be written, `FOLDER` before others.

        Raises:
            EditError: There is none, or not of this name.
        """
        collections = {each.name: each for each in self.writable_collections()}
        if collection is not None:
            collections = {name: each for name, each in collections.items() if name == collection}
        if not collections:
            raise EditError(
                "No note may be written there.",
                hint="Name a collection with notes: qmd collection list shows all.",
            )
        return collections.get(FOLDER) or first_added(tuple(collections.values()))

    def _remembered(
        self, store: Store, written: EditedNote, line: str, today: str
    ) -> RememberedFact:
        """What is known of a fact that was written, or that the note had."""
        number = 1
        expired = False
        others: tuple[RecalledFact, ...] = ()
        with store.reading() as reader:
            name, _, path = written.file.partition("/")
            document = reader.documents.by_path(name, path)
            if document is not None:
                text = reader.documents.text(document.id)
                fact = edits.observations.line_of(text, line)
                if fact is not None:
                    number = fact.line
                    expired = fact.expires is not None and fact.expires < today
                    line = parse.lines.split_lines(text)[number - 1].strip()
                    others = search.memory.others(
                        reader, document, category=fact.category, but=number, today=today
                    )
        return values.memory.RememberedFact(
            written.file,
            number,
            line,
            written=written.written,
            expired=expired,
            others=others,
            change=written.change,
            problem=written.problem,
        )

    def _place_of_subject(
        self, store: Store, about: str, collection: str | None
    ) -> NotePlace | None:
        """
        The note that states facts about a subject; None if none has its name.

        Raises:
            CollectionNotFoundError.
            AmbiguousNameError: Several have, and not just one of them in the folder for new ones.
            EditError: The subject is empty.
        """
        if not about.strip():
            raise EditError("About whom or what?", hint="Name a note, or the title of a new one.")
        filters = Filters(collections=(collection,) if collection else ())
        with store.reading() as reader:
            ids = search.memory.named(reader, about, reader.select(filters))
            named = [
                each
                for each in reader.documents.by_ids(ids)
                if parse.formats.format_of(each.path).is_edited
            ]
        in_folder = [each for each in named if _is_own(each)]
        if len(in_folder) == 1:
            named = in_folder
        if len(named) > 1:
            raise AmbiguousNameError(about, [each.file for each in named])
        return self._place(store, named[0].file) if named else None

    def _new_subject(self, store: Store, about: str, collection: str | None) -> NotePlace:
        """
        Where the note of a new subject is.

        Raises:
            EditError: Notes may be written nowhere, or not in this collection.
            InvalidPathError: No note can have this name.
        """
        folder = self._first_writable(collection)
        name = files.vault.file_name_of(about)
        if not name:
            raise EditError(
                f"No note can be called {about[:60]!r}.", hint="Name a person, a thing or a topic."
            )
        below = "" if folder.name == FOLDER else f"{FOLDER}/"
        path = f"{folder.name}/{below}{name}.md"
        place = self._vault(store).locate(path)
        exclusion = files.indexed_file.exclusion_of_file(store, place.target)
        files.indexed_file.require_shown(path, exclusion)
        return edits.note_editor.NotePlace(path, place)


def _replaced_by(text: bytes, present: bytes | None) -> bytes:
    return text


def _is_own(document: DocumentInfo) -> bool:
    """Whether a note is where those of new subjects are."""
    return document.collection == FOLDER or document.path.startswith(f"{FOLDER}/")
