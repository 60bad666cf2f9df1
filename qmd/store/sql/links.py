"""The links of documents, and the files that a link may name."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from qmd.store.sql import Sql
from qmd.values.documents import Link, LinkKind
from qmd.values.names import link_key


class StoredLink(NamedTuple):
    """
    A link as it is written in a document.

    Attributes:
        collection, path: The place of the document that holds the link.
        seq: The number of the link in its document, from 0, in the order of the text.
        target: As `qmd.values.documents.Link.target`: without ``#heading`` and ``^block``.
        target_key: `qmd.values.names.link_key` of the target: None for a web address, "" for a
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
    rows = [
        (
            (link.kind, link.target),
            (
                document_id,
                seq,
                link.line,
                link.text if link.kind in {"wikilink", "embed"} else None,
                link.heading,
                link.block,
                link.relation,
            ),
        )
        for document_id, links in documents
        for seq, link in enumerate(links)
    ]
    keys = {target: link_key(*target) for target in {target for target, _ in rows}}
    if sql.dialect.has_link_targets:
        ids = _target_ids(sql, keys)
        sql.many(
            "INSERT INTO z_links"
            " (target_id, document_id, seq, line, text, heading, block, relation)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [(ids[target], *row) for target, row in rows],
        )
    else:
        sql.many(
            "INSERT INTO links"
            " (kind, target, target_key, document_id, seq, line, text, heading, block, relation)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [(*target, keys[target], *row) for target, row in rows],
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
    missing = sorted(keys.keys() - ids.keys())
    stored = sql.returned(
        "INSERT INTO z_link_targets (hash, kind, target, target_key) VALUES (?, ?, ?, ?)"
        " RETURNING id",
        [(hashes[target], *target, keys[target]) for target in missing],
    )
    return ids | {target: row[0] for target, row in zip(missing, stored, strict=True)}


class Links:
    """
    Reads links as they are written, and files by their keys.

    `qmd.search.lookup.link_targets` says which file a link leads to.
    """

    def __init__(self, sql: Sql) -> None:
        self._sql = sql

    def of_documents(self, document_ids: Sequence[int]) -> list[StoredLink]:
        """All links in these documents, also web addresses, by document id and ``seq``."""
        dialect = self._sql.dialect
        return self._sql.all(
            StoredLink,
            f"{SELECT_LINKS} {_FROM} WHERE l.document_id {dialect.among}"
            " ORDER BY l.document_id, l.seq",
            [dialect.array(document_ids)],
        )

    def to_keys(
        self, collection: str, keys: Iterable[str], *, limit: int | None = None
    ) -> list[StoredLink]:
        """
        The links in a collection whose ``target_key`` is one of these, by path and ``seq``.

        For the backlinks of a file pass `qmd.values.names.link_keys_to` of its path. These are
        candidates: ``[[b/plan]]`` has the key of ``a/plan.md``, too.

        Args:
            limit: At most so many, the first ones; None for all.
        """
        return self._sql.all(
            StoredLink,
            f"{SELECT_LINKS} {_FROM} WHERE l.target_key {self._sql.dialect.among}"
            f" AND {self._of_collection} ORDER BY d.path, l.seq"
            + ("" if limit is None else f" LIMIT {int(limit)}"),
            [self._sql.dialect.array(keys), collection],
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
        where = f"WHERE d.name_key {self._sql.dialect.among} AND {self._of_collection}"
        return self._sql.all(
            NamedFile,
            f"SELECT d.path, d.id FROM documents d {where}"
            f" UNION ALL SELECT d.path, NULL FROM attachments d {where}",
            [self._sql.dialect.array(keys), collection] * 2,
        )

    def has_folder(self, collection: str, path: str) -> bool:
        # "0" is the character behind "/".
        row = self._sql.first(
            " UNION ALL ".join(
                f"SELECT 1 FROM collections c {self._sql.dialect.first} {table} f"
                " ON f.collection_id = c.id WHERE c.name = ? AND f.path > ? AND f.path < ?"
                for table in ("documents", "attachments")
            )
            + " LIMIT 1",
            [collection, f"{path}/", f"{path}0"] * 2,
        )
        return row is not None

    def attachments(self, collection: str, *, limit: int | None = None) -> list[str]:
        """The paths of files of a collection that are no documents, in order."""
        rows = self._sql.run(
            "SELECT a.path FROM attachments a JOIN collections c ON c.id = a.collection_id"
            " WHERE c.name = ? ORDER BY a.path LIMIT ?",
            [collection, self._sql.dialect.no_limit if limit is None else limit],
        )
        return [path for (path,) in rows]
