"""The links of documents: of one, or of all at once."""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import NamedTuple, TypeAlias

from qmd.store.sql import Capability, Sql
from qmd.values.documents import Link, LinkKind
from qmd.values.text import link_key


class StoredLink(NamedTuple):
    """
    A link as it is written in a document.

    Attributes:
        collection, path: The place of the document that holds the link.
        seq: The number of the link in its document, from 0, in the order of the text.
        target: As `qmd.values.documents.Link.target`: without ``#heading`` and ``^block``.
        target_key: `qmd.values.text.link_key` of the target: None for a web address, "" for a
            link inside its own note.
        text: What a wikilink shows (``[[target|text]]``); None for other kinds.
        line: From 1.
        relation: As `qmd.values.documents.Link.relation`.
    """

    document_id: int
    collection: str
    path: str
    seq: int
    kind: LinkKind
    target: str
    target_key: str | None
    text: str | None
    heading: str | None
    block: str | None
    line: int
    relation: str | None = None


class NamedFile(NamedTuple):
    """
    A file of a collection that a link may lead to.

    Attributes:
        path: Relative to the collection.
        document_id: None for an attachment, a file that is no document.
    """

    path: str
    document_id: int | None


#: The columns of a `StoredLink`.
LINK = (
    "l.document_id, c.name, d.path, l.seq, l.kind, l.target, l.target_key, l.text, l.heading,"
    " l.block, l.line, l.relation"
)
SELECT_LINKS = f"SELECT {LINK}"
_FROM = (
    "FROM links l JOIN documents d ON d.id = l.document_id"
    " JOIN collections c ON c.id = d.collection_id"
)


#: The kind of a link, and its target as it is written.
_Target: TypeAlias = "tuple[LinkKind, str]"


def put(sql: Sql, documents: Sequence[tuple[int, Sequence[Link]]]) -> None:
    """Store the links of documents that have none stored: pairs of id and links."""

    def shown(kind: LinkKind, text: str | None) -> str | None:
        return text if kind in {"wikilink", "embed"} else None

    rows = [(number, seq, *link) for number, links in documents for seq, link in enumerate(links)]
    targets: set[_Target] = {(kind, target) for _, _, kind, target, *_ in rows}
    keys = {target: link_key(*target) for target in targets}
    if sql.dialect.has_link_targets:
        ids = _target_ids(sql, keys)
        sql.many(
            "INSERT INTO z_links"
            " (target_id, document_id, seq, line, text, heading, block, relation)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (ids[kind, target], number, seq, line, shown(kind, text), heading, block, relation)
                for number, seq, kind, target, text, heading, block, line, relation in rows
            ],
        )
    else:
        sql.insert(
            "links",
            "document_id, seq, kind, target, target_key, text, heading, block, line, relation",
            [
                (number, seq, kind, target, keys[kind, target], shown(kind, text), *rest)
                for number, seq, kind, target, text, *rest in rows
            ],
        )


def _target_ids(sql: Sql, keys: Mapping[_Target, str | None]) -> dict[_Target, int]:
    """The ids of the rows of these targets, which have these keys; missing rows are stored."""
    hashes = {target: zlib.crc32(target[1].encode()) for target in keys}
    ids: dict[_Target, int] = {
        (kind, target): target_id
        for kind, target, key, target_id in sql.run(
            "SELECT t.kind, t.target, t.target_key, t.id FROM json_each(?) AS item"
            " CROSS JOIN z_link_targets t ON t.hash = item.value",
            [json.dumps(sorted(set(hashes.values())))],
        )
        # Another version of the program may have given it another key.
        if keys.get((kind, target), "") == key
    }
    # Asking for the id of each new row takes three times as long.
    first = sql.number("SELECT coalesce(max(id), 0) + 1 FROM z_link_targets")
    missing = dict(zip(sorted(keys.keys() - ids.keys()), count(first), strict=False))
    sql.many(
        "INSERT INTO z_link_targets (id, hash, kind, target, target_key) VALUES (?, ?, ?, ?, ?)",
        [(number, hashes[each], *each, keys[each]) for each, number in missing.items()],
    )
    return ids | missing


class Links(Capability):
    """
    Reads links as they are written, and files by their keys.

    `qmd.search.lookup.link_targets` says which file a link leads to.
    """

    def of_documents(self, document_ids: Sequence[int]) -> list[StoredLink]:
        """All links in these documents, also web addresses, by document id and ``seq``."""
        return self._sql.all(
            StoredLink,
            f"{SELECT_LINKS} {_FROM} WHERE l.document_id {self._sql.among}"
            " ORDER BY l.document_id, l.seq",
            [self._sql.array(document_ids)],
        )

    def to_keys(
        self, collection: str, keys: Iterable[str], *, limit: int | None = None
    ) -> list[StoredLink]:
        """
        The links in a collection whose ``target_key`` is one of these, by path and ``seq``.

        For the backlinks of a file pass `qmd.values.text.link_keys_to` of its path. These are
        candidates: ``[[b/plan]]`` has the key of ``a/plan.md``, too.

        Args:
            limit: At most so many, the first ones; None for all.
        """
        return self._sql.all(
            StoredLink,
            f"{SELECT_LINKS} {_FROM} WHERE l.target_key {self._sql.among}"
            f" AND {self._of_collection} ORDER BY d.path, l.seq"
            + ("" if limit is None else f" LIMIT {int(limit)}"),
            [self._sql.array(keys), collection],
        )

    @property
    def _of_collection(self) -> str:
        """Not by the index of collections: it would lead to many more rows than the keys do."""
        id_of_name = "(SELECT id FROM collections WHERE name = ?)"
        return f"{self._sql.dialect.unindexed}d.collection_id = {id_of_name}"

    def in_collection(self, collection: str) -> Iterator[StoredLink]:
        """All links of a collection but web addresses, by document id and ``seq``."""
        rows = self._sql.stream(
            f"{SELECT_LINKS} {_FROM} WHERE c.name = ? AND l.target_key IS NOT NULL"
            " ORDER BY l.document_id, l.seq",
            [collection],
        )
        return self._sql.records(StoredLink, rows)

    def files_with_keys(self, collection: str, keys: Iterable[str]) -> list[NamedFile]:
        """The documents and attachments of a collection with these `name_key`s, in any order."""
        where = f"WHERE d.name_key {self._sql.among} AND {self._of_collection}"
        return self._sql.all(
            NamedFile,
            f"SELECT d.path, d.id FROM documents d {where}"
            f" UNION ALL SELECT d.path, NULL FROM attachments d {where}",
            [self._sql.array(keys), collection] * 2,
        )

    def has_folder(self, collection: str, path: str) -> bool:
        # "0" is the character after "/".
        return self._sql.exists(
            " UNION ALL ".join(
                f"SELECT 1 FROM collections c {self._sql.dialect.first} {table} f"
                " ON f.collection_id = c.id WHERE c.name = ? AND f.path > ? AND f.path < ?"
                for table in ("documents", "attachments")
            )
            + " LIMIT 1",
            [collection, f"{path}/", f"{path}0"] * 2,
        )

    def attachments(self, collection: str, *, limit: int | None = None) -> list[str]:
        """The paths of files of a collection that are no documents, in order."""
        return self._sql.column(
            "SELECT a.path FROM attachments a JOIN collections c ON c.id = a.collection_id"
            " WHERE c.name = ? ORDER BY a.path LIMIT ?",
            [collection, self._sql.dialect.no_limit if limit is None else limit],
        )


class KeyedDocument(NamedTuple):
    """A document with the key of its file name (`qmd.values.text.name_key`)."""

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


class Graph(Capability):
    """
    Reads what tells which links lead nowhere, and to which documents no link leads.

    A *plain* link names a file without its folder and suffix: ``[[plan]]``, ``[[plan#Goals]]``. It
    leads to a file of this name, if the collection has one.
    """

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
        paths = self._sql.column(
            "SELECT path FROM documents WHERE collection_id = ?"
            " UNION ALL SELECT path FROM attachments WHERE collection_id = ?",
            [self._id(collection)] * 2,
        )
        return {*paths}

    def names(self, collection: str) -> list[tuple[str, str]]:
        """
        Pairs of a name in the form of `qmd.values.text.fold`, and the path of its file.

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
