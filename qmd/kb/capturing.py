"""Keeping what a person comes across: pages of the web."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from qmd import files, search, system
from qmd.errors import NotFoundError
from qmd.kb.editing import EditingMethods
from qmd.kb.parts import open_to_scopes
from qmd.values import Filters

if TYPE_CHECKING:
    from qmd.files.saved_pages import PageKeeper
    from qmd.store import Store
    from qmd.system.web import Web
    from qmd.values.captures import SavedPage

#: The folder for saved pages if no setting names one.
SAVED = "saved"
#: Notes with the same address that are looked at; of two that agree in 200 characters, one has it.
MOST_NOTES = 100


class CapturingMethods(EditingMethods):
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
            InvalidPathError, NotFoundError: There is no such folder to write in.
            OutsideRootsError, WriteDeclinedError, FileAccessError: As the `FileWriter` says.
        """
        store = self._store
        keeper = self._page_keeper(store)
        folder = (folder or self._settings.save_to or self._first_folder()).strip("/")
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
        with store.reading() as reader:
            vault = files.vault.Vault.of_collections(reader.collections.all())

        def known(address: str) -> list[str]:
            found: list[str] = []
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
                    found += [each.file for each in listed]
            return found

        today = datetime.now().astimezone().date().isoformat()
        return files.saved_pages.PageKeeper(self._writer(store), vault, today, known)

    def _first_folder(self) -> str:
        """
        The folder for pages in the first collection that may be written.

        Raises:
            NotFoundError: There is none.
        """
        for collection in self.writable_collections():
            return f"{collection.name}/{SAVED}"
        raise NotFoundError(
            "There is no collection in which a note may be written.",
            hint="Add a folder: qmd collection add FOLDER",
        )
