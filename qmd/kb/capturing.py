"""Keeping what a person comes across: thoughts, files, and pages of the web."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, search, system
from qmd.errors import InputError, NotFoundError
from qmd.kb.editing import EditingMethods
from qmd.kb.parts import open_to_scopes
from qmd.values import Filters

if TYPE_CHECKING:
    from qmd.files.captures import Inbox
    from qmd.files.saved_pages import PageKeeper
    from qmd.files.vault import Vault
    from qmd.store import Store
    from qmd.system.web import Web
    from qmd.values import Collection
    from qmd.values.captures import Attached, Attachment, Captured, SavedPage

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
        return files.captures.capture(writer, self._vault(store), inbox, text, attachments, moment)

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
        return files.captures.attach(self._writer(store), self._vault(store), file, attachment)

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
                    listed = search.ordering.list_documents(
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
            self._writer(store), self._vault(store), today, notes_with
        )

    def _vault(self, store: Store) -> Vault:
        with store.reading() as reader:
            return files.vault.Vault.of_collections(reader.collections.all())

    def _inbox(self, store: Store, at: datetime) -> Inbox:
        """Where a thought of this time goes."""
        pattern = self._settings.inbox
        if pattern is None:
            pattern = f"{self._first_collection()}/{INBOX}"
        with store.reading() as reader:
            daily = files.captures.daily_inbox(reader, pattern, at)
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
                hint="Add a folder: qmd collection add FOLDER",
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
