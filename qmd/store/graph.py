"""Questions about all links of a collection at once, in the form that is fast for many links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple, Protocol

from qmd.store.links import StoredLink


class KeyedDocument(NamedTuple):
    """A document with the key of its file name (`qmd.values.names.name_key`)."""

    document_id: int
    path: str
    name_key: str


class Graph(Protocol):
    """
    Reads what tells which links lead nowhere, and to which documents no link leads.

    A *plain* link names a file without its folder and suffix: ``[[plan]]``, ``[[plan#Goals]]``. It
    leads to a file of this name, if the collection has one.
    """

    def doubtful_links(self, collection: str) -> Iterator[StoredLink]:
        """
        The links of a collection of which it is not sure that they lead somewhere, by path.

        It is sure of most plain links, and of wikilinks with the exact path from the root.
        """
        ...

    def without_plain_links(self, collection: str) -> list[KeyedDocument]:
        """
        The documents of which it is not sure that another document links to them, by path.

        It is sure if no other file has the name, and another document has a plain link to it.
        """
        ...

    def one_link_to_each(self, collection: str, keys: Collection[str]) -> list[StoredLink]:
        """For each of these keys one of the links with this ``target_key``, if there is any."""
        ...

    def file_paths(self, collection: str) -> set[str]:
        """The paths of all documents and attachments of a collection."""
        ...

    def names(self, collection: str) -> list[tuple[str, str]]:
        """
        Pairs of a name in the form of `qmd.values.names.fold`, and the path of its file.

        The names are titles and aliases of documents, and the `name_key`s of all files.
        """
        ...
