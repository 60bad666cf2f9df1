"""Questions about all links of a collection at once, in the form that is fast for many links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from qmd.store.sql import Sql
from qmd.store.sql.links import LINK, SELECT_LINKS, StoredLink


class KeyedDocument(NamedTuple):
    """A document with the key of its file name (`qmd.values.names.name_key`)."""

    document_id: int
    path: str
    name_key: str


class _Words(NamedTuple):
    """
    What the engines spell, or plan, differently in these statements.

    Attributes:
        bare: The condition that a link has no folder, suffix and percent sign.
        contains: The condition that a text, the first, has another.
        of_collection: The condition that a document is of a collection; as both see it fast.
        has_heading: The condition that a document ``t`` has the heading of a link.
        link_of_each: The link ``l`` whose key a subquery names for each ``item``.
    """

    bare: str
    contains: str
    of_collection: str
    has_heading: str
    link_of_each: str


_WORDS = {
    "sqlite": _Words(
        bare="l.target NOT GLOB '*[./%\\]*'",
        contains="instr({}, '{}') > 0",
        # The ids of the documents of the collection are read once, from the index of paths.
        of_collection="+{}.id IN (SELECT i.id FROM documents i WHERE i.collection_id = {})",
        has_heading=(
            "EXISTS (SELECT 1 FROM z_searchable s WHERE s.document_id = t.id AND instr("
            "char(10) || s.headings || char(10), char(10) || l.heading || char(10)))"
        ),
        link_of_each="CROSS JOIN links l ON (l.document_id, l.seq) = ({})",
    ),
    "postgres": _Words(
        bare="l.target !~ '[./%\\\\]'",
        contains="strpos({}, '{}') > 0",
        of_collection="{}.collection_id = {}",
        has_heading=(  # a chunk of it lies below just this heading
            "EXISTS (SELECT 1 FROM chunks k WHERE k.document_id = t.id"
            " AND l.heading = ANY(string_to_array(k.heading_path, ' > ')))"
        ),
        link_of_each=(
            "JOIN LATERAL ({}) AS one ON true"
            " JOIN links l ON l.document_id = one.document_id AND l.seq = one.seq"
        ),
    ),
}


class Graph:
    """
    Reads what tells which links lead nowhere, and to which documents no link leads.

    A *plain* link names a file without its folder and suffix: ``[[plan]]``, ``[[plan#Goals]]``. It
    leads to a file of this name, if the collection has one.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    @property
    def _words(self) -> _Words:
        return _WORDS[self._sql.dialect.package]

    def _id(self, collection: str) -> int:
        row = self._sql.first("SELECT id FROM collections WHERE name = ?", [collection])
        return 0 if row is None else int(row[0])

    def doubtful_links(self, collection: str) -> Iterator[StoredLink]:
        """
        The links of a collection of which it is not sure that they lead somewhere, by path.

        It is sure of most plain links, and of wikilinks with the exact path from the root.
        """
        collection_id, words, first = self._id(collection), self._words, self._sql.dialect.first
        bare = f"{words.bare} AND l.target_key <> ''"
        named = f"t.name_key = l.target_key AND {words.of_collection.format('t', collection_id)}"
        is_wikilink = "l.kind IN ('wikilink', 'embed')"
        # It names a document of the collection by its name alone.
        by_name = (
            f"{bare} AND l.heading IS NULL AND l.block IS NULL"
            f" AND EXISTS (SELECT 1 FROM documents t WHERE {named})"
        )
        # The same, and only one document has the name, and it has just this heading.
        by_heading = (
            f"{bare} AND l.heading IS NOT NULL AND l.block IS NULL AND {is_wikilink}"
            f" AND NOT {words.contains.format('l.heading', '#')}"
            " AND 1 = (SELECT count(*) FROM documents t WHERE t.name_key = l.target_key)"
            f" AND EXISTS (SELECT 1 FROM documents t WHERE {named} AND {words.has_heading})"
        )
        # A wikilink with the path of a document from the root.
        by_path = (
            f"{words.contains.format('l.target', '/')} AND {is_wikilink}"
            " AND l.heading IS NULL AND l.block IS NULL AND EXISTS (SELECT 1 FROM documents t"
            f" WHERE t.collection_id = {collection_id} AND t.path = l.target || '.md')"
        )
        rows = self._sql.stream(
            f"{SELECT_LINKS} FROM documents d {first} collections c ON c.id = d.collection_id"
            f" {first} links l ON l.document_id = d.id"
            " WHERE d.collection_id = ? AND l.target_key IS NOT NULL"
            f" AND NOT ({by_name}) AND NOT ({by_heading}) AND NOT ({by_path})"
            " ORDER BY d.path, l.seq",
            [collection_id],
        )
        return self._sql.records(StoredLink, rows)

    def without_plain_links(self, collection: str) -> list[KeyedDocument]:
        """
        The documents of which it is not sure that another document links to them, by path.

        It is sure if no other file has the name, and another document has a plain link to it.
        """
        collection_id, words = self._id(collection), self._words
        return self._sql.all(
            KeyedDocument,
            "SELECT d.id, d.path, d.name_key FROM documents d WHERE d.collection_id = ? AND NOT ("
            "NOT EXISTS (SELECT 1 FROM documents o WHERE o.name_key = d.name_key AND o.id <> d.id)"
            " AND NOT EXISTS (SELECT 1 FROM attachments a WHERE a.name_key = d.name_key)"
            " AND EXISTS (SELECT 1 FROM links l WHERE l.target_key = d.name_key"
            f" AND l.document_id <> d.id AND {words.bare} AND l.target_key <> ''"
            f" AND {self._sql.dialect.unindexed}l.document_id IN"
            " (SELECT i.id FROM documents i WHERE i.collection_id = ?))) ORDER BY d.path",
            [collection_id, collection_id],
        )

    def one_link_to_each(self, collection: str, keys: Collection[str]) -> list[StoredLink]:
        """For each of these keys one of the links with this ``target_key``, if there is any."""
        dialect = self._sql.dialect
        # It ends at the first link of a key, of which there may be thousands.
        one = (
            "SELECT x.document_id, x.seq FROM links x"
            f" {dialect.first} documents y ON y.id = x.document_id"
            " WHERE x.target_key = item.value AND y.collection_id = ? LIMIT 1"
        )
        return self._sql.all(
            StoredLink,
            f"SELECT {LINK} FROM {dialect.each} {self._words.link_of_each.format(one)}"
            f" {dialect.first} documents d ON d.id = l.document_id"
            f" {dialect.first} collections c ON c.id = d.collection_id",
            [dialect.array(sorted(keys)), self._id(collection)],
        )

    def file_paths(self, collection: str) -> set[str]:
        """The paths of all documents and attachments of a collection."""
        collection_id = self._id(collection)
        rows = self._sql.run(
            "SELECT path FROM documents WHERE collection_id = ?"
            " UNION ALL SELECT path FROM attachments WHERE collection_id = ?",
            [collection_id, collection_id],
        )
        return {path for (path,) in rows}

    def names(self, collection: str) -> list[tuple[str, str]]:
        """
        Pairs of a name in the form of `qmd.values.names.fold`, and the path of its file.

        The names are titles and aliases of documents, and the `name_key`s of all files.
        """
        return self._sql.rows(
            (str, str),
            "SELECT name_key, path FROM documents WHERE collection_id = ?"
            " UNION ALL SELECT name_key, path FROM attachments WHERE collection_id = ?"
            " UNION ALL SELECT n.name_key, d.path FROM z_names n"
            " JOIN documents d ON d.id = n.document_id WHERE d.collection_id = ?",
            [self._id(collection)] * 3,
        )
