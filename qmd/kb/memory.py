"""Keeping what a person comes across, remembering facts in notes, and recalling them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, parse, search, system, transfer, values
from qmd.errors import (
    AmbiguousNameError,
    EditError,
    InputError,
    InvalidPathError,
    NoteExistsError,
    NotFoundError,
)
from qmd.files import edits
from qmd.kb.editing import EditingMethods
from qmd.kb.files import vault_of
from qmd.kb.graph import GraphMethods, document_named, most_listed
from qmd.kb.parts import open_to_scopes
from qmd.values import Filters, SearchRequest

if TYPE_CHECKING:
    from qmd.files.captures import Inbox
    from qmd.files.edits.note_editor import NotePlace
    from qmd.files.saved_pages import PageKeeper
    from qmd.store import Store
    from qmd.system.web import Web
    from qmd.transfer.conversations import ConversationProgram
    from qmd.values import Collection, DocumentInfo, ProgressCallback, documents
    from qmd.values.transfer import ConversationsReport
    from qmd.values.writing import Attached, Attachment, Captured, EditedNote, SavedPage


#: The folder for saved pages if no setting names one.
SAVED = "saved"
#: The note for thoughts if no setting names one.
INBOX = "Inbox.md"
#: Notes with the same address that are looked at; of two that agree in 200 characters, one has it.
MOST_NOTES = 100


def first_added(collections: Sequence[Collection]) -> Collection:
    """
    The one of some collections in which new notes go, whatever changed last.

    `writable_collections` begins with the one that changed last, which is another after a write.
    """
    return min(collections, key=lambda each: each.id)


class CapturingMethods(EditingMethods):
    @open_to_scopes
    def capture(
        self, text: str, *, attachments: Sequence[Attachment] = (), at: str | None = None
    ) -> Captured:
        """
        Keep a thought in the note of the settings, at its end, and files beside that note.

        Args:
            attachments: Files to keep beside the note; the thought links to them.
            at: When it was thought, in ISO 8601; None for now.

        Raises:
            InputError: There is nothing to keep or too much, or ``at`` is no time.
            InvalidPathError, NotFoundError: The settings name no note in a collection.
            EditError: The note is in an encoding that lacks a character of the text.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        moment = _moment(at)
        inbox = self._inbox(store, moment)
        writer = self._writer(store)
        vault = store.read(vault_of)
        return files.captures.capture(writer, vault, inbox, text, attachments, moment)

    @open_to_scopes
    def attach(self, note: str | None, attachment: Attachment) -> Attached:
        """
        Keep a file beside a note. The note stays as it is; the reply has a link for it.

        Args:
            note: As `get` takes it; None for the note to which a thought would go now.

        Raises:
            DocumentNotFoundError, AmbiguousNameError: As `get`.
            InputError: The file is too large.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        if note is None:
            now = _moment(None)
            file = files.captures.note_of(self._inbox(store, now).pattern, "", now)
        else:
            file = self._place(store, note).file
        return files.captures.attach(self._writer(store), store.read(vault_of), file, attachment)

    @open_to_scopes
    def save_page(
        self, page: str | Path, *, folder: str | None = None, pictures: bool = True
    ) -> SavedPage:
        """
        Save a page of the web as a note; one that was saved before is updated.

        The article becomes Markdown, with title, author, date and address as properties, and its
        pictures are kept in the folder ``.assets`` beside the note.

        Args:
            page: An address; or the file of a page that a browser has saved, HTML or MHTML.
            folder: ``collection/folder`` for a new note; None for that of the settings.
            pictures: Whether pictures are fetched. Where a person confirms each write, they stay
                on the web.

        Raises:
            InputError: It is no address of the web.
            WebPageError: The page must not or cannot be fetched, or has no text.
            CollectionNotFoundError, InvalidPathError: Nothing can be written in that folder.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        keeper = self._page_keeper(store)
        chosen = folder or self._settings.save_to or f"{self._first_collection()}/{SAVED}"
        folder = chosen.strip("/")
        with store.reading() as reader:
            reader.collections.by_name(folder.partition("/")[0])
        keeper.check_folder(folder)
        if isinstance(page, Path):
            source = files.saved_pages.page_in_file(page)
        else:
            source = files.saved_pages.fetched_page(self._web, page)
        loads = pictures and not self.confirms_writes
        article = files.saved_pages.article_of(source, self._web if loads else None)
        return keeper.keep(article, folder)

    @open_to_scopes
    def saved_note(self, url: str) -> str | None:
        """
        ``collection/path`` of the note that an address was saved as; None without one.

        Raises:
            InputError: It is no address of the web.
        """
        return self._page_keeper(self._store).note_of(system.web.checked_address(url))

    @property
    def _web(self) -> Web:
        """What fetches pages; it knows the rules of the sites that it has asked."""
        with self._lock:
            if self._fetcher is None:
                allowed = self._settings.allow_private_addresses
                self._fetcher = system.web.Web(allow_private=allowed)
            return self._fetcher

    def _page_keeper(self, store: Store) -> PageKeeper:
        def notes_with(address: str) -> list[str]:
            notes: list[str] = []
            with store.reading() as reader:
                for name in files.saved_pages.ADDRESSES:
                    listed = search.listing.list_documents(
                        reader,
                        *(None, ""),
                        filters=Filters(properties=(f"{name}:={address}",)),
                        sort=None,
                        group_by=None,
                        limit=MOST_NOTES,
                        offset=0,
                    )
                    notes += [each.file for each in listed]
            return notes

        today = datetime.now().astimezone().date().isoformat()
        return files.saved_pages.PageKeeper(
            self._writer(store), store.read(vault_of), today, notes_with
        )

    def _inbox(self, store: Store, at: datetime) -> Inbox:
        """Where a thought of this time goes."""
        pattern = self._settings.inbox
        if pattern is None:
            pattern = f"{self._first_collection()}/{INBOX}"
        daily = store.read(lambda reader: files.captures.daily_inbox(reader, pattern, at))
        return daily or files.captures.Inbox(pattern, self._template(store))

    def _template(self, store: Store) -> str | None:
        """The text of the note from which notes for thoughts are made."""
        name = self._settings.inbox_template
        if name is None:
            return None
        data = files.edits.note_editor.read_note(self._place(store, name))
        return data.decode("utf-8", "replace")

    def _first_collection(self) -> str:
        """
        The name of the first collection that may be written: the one that was added first.

        Raises:
            NotFoundError: There is none.
        """
        collections = self.writable_collections()
        if not collections:
            raise NotFoundError(
                "There is no collection in which a note may be written.",
                hint="POST /collections/add adds a folder; in the shell"
                " 'qmd collection add FOLDER' does.",
            )
        return first_added(collections).name


def _moment(at: str | None) -> datetime:
    """A time in the time zone of this machine. Raises InputError."""
    if at is None:
        return datetime.now().astimezone()
    try:
        return system.clock.parse(at).astimezone()
    except (ValueError, OverflowError):
        raise InputError(
            f"{at!r} is no time.", hint="Write it in ISO 8601, such as 2026-11-25T14:05."
        ) from None


#: The collection for new subjects, if there is one of this name; else a folder in the first.
FOLDER = "memory"

#: The folder for imported conversations in the first collection, if none is named.
CONVERSATIONS = "conversations"

MAX_STEPS = 3


class MemoryMethods(GraphMethods, CapturingMethods):
    """A fact is a list item of a note: ``- [category] fact #tag (context)``."""

    @open_to_scopes
    def remember(
        self, fact: documents.NewFact, *, collection: str | None = None
    ) -> documents.RememberedFact:
        """
        Write a fact into the note of its subject; a new note if there is none of this name.

        The same fact again gets today's day, and the new source and end. Undo takes it back.

        Args:
            collection: Where the note is; None for any in which notes may be written.

        Raises:
            InputError: The fact is empty or too long, or no fact can be written so.
            AmbiguousNameError: Several notes have the name.
            The errors of `create_note` and `edit_note`.
        """
        store = self._store
        today = date.today().isoformat()
        line = edits.operations.fact_line(fact, today)
        editor = edits.note_editor.NoteEditor(self._writer(store))
        place = self._place_of_subject(store, fact.about, collection)
        written: EditedNote
        if place is None:
            note = self._new_subject(store, fact.about, collection)
            text = edits.operations.new_note(" ".join(fact.about.split()), line)
            try:
                written = editor.create(note, text, tool="remember")
            except NoteExistsError:  # perhaps another client has just created it
                place = note
        if place is not None:
            written = editor.edit(
                place, lambda present: edits.operations.with_fact(present, line), tool="remember"
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
    ) -> documents.RecalledFacts:
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
            lambda present: edits.operations.without_fact(present, fact),
            preview=preview,
            tool="forget",
        )

    @open_to_scopes
    def build_context(
        self, file: str, *, max_tokens: int = 4000, steps: int = 1
    ) -> documents.NoteContext:
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
        values.text.check_max_tokens(max_tokens)
        if not 1 <= steps <= MAX_STEPS:
            raise InputError(f"The steps must be between 1 and {MAX_STEPS}, not {steps}.")
        with self._store.reading() as reader:
            return search.memory.context_of(
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
        progress: ProgressCallback | None = None,
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
            progress: Told of each conversation, of which nobody knows the number before.

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
        vault = store.read(vault_of)
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
                if progress is not None:
                    progress(values.Progress("import", len(states), None, place))
        return values.transfer.ConversationsReport(
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
                hint="Name a collection with notes. Status lists them; in the shell"
                " 'qmd collection list' does.",
            )
        return collections.get(FOLDER) or first_added(tuple(collections.values()))

    def _remembered(
        self, store: Store, written: EditedNote, line: str, today: str
    ) -> documents.RememberedFact:
        """What is known of a fact that was written, or that the note had."""
        number = 1
        expired = False
        others: tuple[documents.RecalledFact, ...] = ()
        with store.reading() as reader:
            name, _, path = written.file.partition("/")
            document = reader.documents.by_path(name, path)
            if document is not None:
                text = reader.documents.text(document.id)
                fact = edits.operations.line_of(text, line)
                if fact is not None:
                    number = fact.line
                    expired = fact.expires is not None and fact.expires < today
                    line = parse.lines.split_lines(text)[number - 1].strip()
                    others = search.memory.others(
                        reader, document, category=fact.category, but=number, today=today
                    )
        return values.documents.RememberedFact(
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
            InputError: The subject is empty.
        """
        if not about.strip():
            raise InputError("About whom or what?", hint="Name a note, or the title of a new one.")
        filters = Filters(collections=(collection,) if collection else ())
        with store.reading() as reader:
            ids = search.memory.ids_named(reader, about, reader.select(filters))
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
            raise InvalidPathError(
                f"No note can be called {about[:60]!r}.", hint="Name a person, a thing or a topic."
            )
        below = "" if folder.name == FOLDER else f"{FOLDER}/"
        path = f"{folder.name}/{below}{name}.md"
        place = store.read(vault_of).locate(path)
        exclusion = files.vault.exclusion_of_file(store, place.target)
        files.vault.require_shown(path, exclusion)
        return edits.note_editor.NotePlace(path, place)


def _replaced_by(text: bytes, present: bytes | None) -> bytes:
    return text


def _is_own(document: DocumentInfo) -> bool:
    """Whether a note is where those of new subjects are."""
    return document.collection == FOLDER or document.path.startswith(f"{FOLDER}/")
