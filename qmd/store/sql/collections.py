"""Collections, the folders that are indexed; and contexts, what people say of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from qmd import libraries, values
from qmd.engine_text import engine_text
from qmd.errors import CollectionNotFoundError, ConflictError, ContextNotFoundError
from qmd.records import NamedTuple
from qmd.store import sql as capabilities
from qmd.store.sql import Capability
from qmd.system import clock
from qmd.values import Context
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from qmd.values import Collection


_COLUMNS = """
    SELECT c.id, c.name, c.path, c.pattern, c.ignore,
           (SELECT count(*) FROM documents d WHERE d.collection_id = c.id),
           c.updated_at, c.indexed_at, c.included, c.owner
    FROM collections c
"""


class _Row(NamedTuple):
    id: int
    name: str
    path: str
    pattern: str
    ignore: str
    documents: int
    updated_at: str | None
    indexed_at: str | None
    included: int
    owner: str


def is_directory_path(path: str) -> bool:
    """Whether a directory can be there: relative to nothing, of characters that names have."""
    return os.path.isabs(path) and "\0" not in path  # noqa: PTH117


def _json(value: Sequence[str] | Mapping[str, int]) -> str:
    return libraries.json.dumps(value, ensure_ascii=False)


class Collections(Capability):
    """Reads collections."""

    def all(self) -> list[Collection]:
        """All collections, the one whose documents changed last first."""
        return self._collections("ORDER BY c.updated_at IS NULL, c.updated_at DESC, c.name")

    def _collections(self, clauses: str, values: Sequence[object] = ()) -> list[Collection]:
        rows = self._sql.all(_Row, _COLUMNS + clauses, values)
        return list(map(self._collection, rows))

    def _collection(self, row: _Row) -> Collection:
        ignore = self._sql.dialect.parsed(row.ignore)
        if not self._sql.dialect.is_typed:
            if not is_directory_path(row.path):
                raise ValueError("a collection's path is none")
            if not all(isinstance(each, str) for each in ignore):
                raise TypeError("a rule that is no text")
        return values.Collection(
            *(row.id, row.name, row.path, row.pattern, tuple(ignore), row.documents),
            *(row.updated_at, row.indexed_at, bool(row.included), row.owner),
        )

    def by_name(self, name: str) -> Collection:
        """
        The collection of a name.

        Raises:
            CollectionNotFoundError: There is none; the error names similar ones.
        """
        name = replace_halves(name)
        collections = self._collections("WHERE c.name = ?", [name])
        if not collections:
            raise CollectionNotFoundError(name, self._similar(name))
        return collections[0]

    def require_unchanged(self, collection: Collection) -> None:
        """
        Check that id, path, mask and ignore patterns of a collection have not changed.

        The id alone would not do: after a removal the next new collection may get the same id.

        Raises:
            CollectionNotFoundError: It was removed or changed since it was read.
        """
        if not self._sql.exists(
            "SELECT 1 FROM collections WHERE id = ? AND path = ? AND pattern = ?"
            f" AND {self._sql.dialect.json_text.format('ignore')} = ?",
            [collection.id, collection.path, collection.pattern, _json(collection.ignore)],
        ):
            raise CollectionNotFoundError(collection.name)

    def _similar(self, name: str) -> list[str]:
        """Names of collections that ``name`` may have been meant for, nearest first."""
        names = self._sql.column("SELECT name FROM collections ORDER BY name")
        matches = libraries.rapidfuzz.process.extract(
            name, names, scorer=libraries.rapidfuzz.fuzz.WRatio, score_cutoff=60, limit=3
        )
        return [match for match, _, _ in matches]

    def ids(self, names: Sequence[str]) -> list[int]:
        # Without the count of documents, which takes 50 ms for a million.
        """
        The ids of named collections, in the order of the names.

        Raises:
            CollectionNotFoundError: For the first name that no collection has.
        """
        if not names:
            return []
        stored: dict[str, int] = dict(self._sql.run("SELECT name, id FROM collections").fetchall())
        return [stored[name] if name in stored else self.by_name(name).id for name in names]

    def included_names(self) -> list[str] | None:
        """The collections in which searches look that name none; None if these are all."""
        rows = self._sql.run("SELECT name, included FROM collections").fetchall()
        if all(included for _, included in rows):
            return None
        return [name for name, included in rows if included]

    def definitions(self) -> list[tuple[object, ...]]:
        """
        The settings of all collections, to be compared with an earlier result.

        The call is cheap enough for every second.
        """
        return self._sql.run(
            "SELECT id, name, path, pattern,"
            f" {self._sql.dialect.json_text.format('ignore')} FROM collections ORDER BY id"
        ).fetchall()

    def last_changes(self) -> list[tuple[object, ...]]:
        """
        A value that differs from an earlier one if a document was added, changed or removed.

        The call is cheap enough for every second.
        """
        sql = "SELECT id, name, updated_at FROM collections ORDER BY id"
        return self._sql.run(sql).fetchall()

    def is_vault(self, name: str) -> bool:
        """
        Whether a collection was an Obsidian vault at its last scan; True before the first one.

        Where its Markdown links lead depends on it.
        """
        row = self._sql.first("SELECT is_vault FROM collections WHERE name = ?", [name])
        return row is None or row[0] is None or bool(row[0])

    def excluded_counts(self) -> dict[str, int]:
        """How many files and folders the rules left out at the last scans, by reason."""
        total: dict[str, int] = {}
        for counts in self._sql.column("SELECT excluded FROM collections"):
            for reason, count in self._sql.dialect.parsed(counts).items():
                total[reason] = total.get(reason, 0) + count
        return dict(sorted(total.items()))

    def last_indexed_at(self) -> str | None:
        """When any collection was last scanned to the end (ISO 8601 UTC); None if none ever was."""
        latest = self._sql.value("SELECT max(indexed_at) FROM collections")
        return None if latest is None else str(latest)


class CollectionsWriter(Collections):
    """Changes collections."""

    def add(
        self, *, name: str, path: str, pattern: str, ignore: Sequence[str], owner: str = ""
    ) -> Collection:
        """
        Add a collection.

        Args:
            path: The absolute path of a directory.
            pattern: Which files belong to it (see `qmd.ingest.rules`).
            ignore: Patterns of files to leave out, as in a .gitignore.
            owner: Whose folder it is, if another machine pushes it.

        Raises:
            ConflictError: A collection of this name exists.
        """
        same = self._sql.first("SELECT path FROM collections WHERE name = ?", [name])
        if same is not None:
            hint = (
                "Choose another name, or remove the old one: DELETE /collections/NAME, in the shell"
                " 'qmd collection remove NAME'."
            )
            if same[0] == path:
                hint = (
                    "It is this very folder. POST /index brings it up to date; in the shell"
                    " 'qmd index' does."
                )
            raise ConflictError(
                engine_text("There is already a collection named '{name}'.", name=name), hint=hint
            )
        if not owner:  # a token may have been promised to push a folder of this name
            capabilities.access.remove_scopes(self._sql, name)
        self._sql.run(
            "INSERT INTO collections (name, path, pattern, ignore, created_at, owner)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [name, path, pattern, _json(list(ignore)), clock.now(), owner],
        )
        return self.by_name(name)

    def rename(self, old: str, new: str) -> Collection:
        """
        Rename a collection; its contexts stay with it.

        Raises:
            CollectionNotFoundError: There is none named ``old``.
            ConflictError: There is one named ``new``.
        """
        collection = self.by_name(old)
        if self._sql.exists("SELECT 1 FROM collections WHERE name = ?", [new]):
            raise ConflictError(
                engine_text("There is already a collection named '{name}'.", name=new),
                hint="Choose another name.",
            )
        self._sql.run("UPDATE collections SET name = ? WHERE id = ?", [new, collection.id])
        capabilities.access.rename_scopes(self._sql, old, new)
        return self.by_name(new)

    def set_included(self, name: str, *, included: bool) -> Collection:
        """
        Say whether searches that name no collection look in this one.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        collection = self.by_name(name)
        self._sql.run("UPDATE collections SET included = ? WHERE id = ?", [included, collection.id])
        return self.by_name(name)

    def set_rules(self, name: str, *, pattern: str, ignore: Sequence[str]) -> Collection:
        """
        Replace the mask and the ignore patterns of a collection; the next run applies them.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        collection = self.by_name(name)
        self._sql.run(
            "UPDATE collections SET pattern = ?, ignore = ? WHERE id = ?",
            [pattern, _json(list(ignore)), collection.id],
        )
        return self.by_name(name)

    def remove(self, name: str) -> Collection:
        """
        Remove a collection with its documents, contexts, chunks and vectors; cached vectors stay
        until `UpkeepWriter.remove_leftovers`.

        Raises:
            CollectionNotFoundError: There is none of this name.
        """
        collection = self.by_name(name)
        capabilities.document_rows.delete_all(self._sql, collection.id)
        self._sql.run("DELETE FROM collections WHERE id = ?", [collection.id])
        capabilities.access.remove_scopes(self._sql, name)
        capabilities.shared.advance_vectors(self._sql)
        return collection

    def mark_indexed(
        self,
        collection_id: int,
        *,
        excluded: Mapping[str, int],
        changed: bool,
        is_vault: bool,
    ) -> None:
        """
        Record the end of a complete scan.

        Args:
            is_vault: Whether the folder is an Obsidian vault.
            excluded: Reason → how many files and folders the rules left out.
            changed: Whether a document was added, changed or removed.
        """
        now = clock.now()
        self._sql.run(
            "UPDATE collections SET indexed_at = ?, excluded = ?, is_vault = ?,"
            " updated_at = CASE WHEN ? OR updated_at IS NULL THEN ? ELSE updated_at END"
            " WHERE id = ?",
            [now, _json(dict(excluded)), is_vault, changed, now, collection_id],
        )

    def mark_changed(self, collection_id: int) -> None:
        """Record that documents were added, changed or removed, without a complete scan."""
        self._sql.run(
            "UPDATE collections SET updated_at = ? WHERE id = ?", [clock.now(), collection_id]
        )


_CONTEXTS = """
    SELECT c.name, c.path, x.prefix, x.text
    FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id
"""


_TYPES = (str | None, str | None, str, str)
_AT_PLACE = "x.collection_id IS NOT DISTINCT FROM ? AND x.prefix = ?"


class Contexts(Capability):
    """Reads contexts."""

    def all(self) -> list[Context]:
        """All contexts, from the global one to the most specific."""
        return self._contexts("ORDER BY c.name IS NOT NULL, c.name, length(x.prefix), x.prefix")

    def _contexts(self, clauses: str, values: Sequence[object] = ()) -> list[Context]:
        return [
            Context(name, prefix, _path(root, prefix), text)
            for name, root, prefix, text in self._sql.rows(_TYPES, _CONTEXTS + clauses, values)
        ]

    def _find(self, collection_id: int | None, prefix: str) -> Context:
        contexts = self._contexts(f"WHERE {_AT_PLACE}", [collection_id, prefix])
        if not contexts:
            raise ContextNotFoundError(
                "There is no context at that path.",
                hint="GET /contexts lists the paths that have one; in the shell 'qmd context list'"
                " does.",
            )
        return contexts[0]


class ContextsWriter(Contexts):
    """
    Changes contexts.

    A place is a collection (None: all of them) and a path below it ("": the root).
    """

    def put(self, collection_id: int | None, prefix: str, text: str) -> Context:
        """Add a context, or replace the text of the one at that place."""
        self._delete(collection_id, prefix)
        self._sql.run(
            "INSERT INTO contexts (collection_id, prefix, text, created_at) VALUES (?, ?, ?, ?)",
            [collection_id, prefix, text, clock.now()],
        )
        return self._find(collection_id, prefix)

    def remove(self, collection_id: int | None, prefix: str) -> Context:
        """
        Remove the context at a place, and return it.

        Raises:
            ContextNotFoundError: The place has no context.
        """
        context = self._find(collection_id, prefix)
        self._delete(collection_id, prefix)
        return context

    def _delete(self, collection_id: int | None, prefix: str) -> None:
        self._sql.run(f"DELETE FROM contexts AS x WHERE {_AT_PLACE}", [collection_id, prefix])


def _path(root: str | None, prefix: str) -> str:
    if root is None:
        return "/"
    return root.rstrip("/") + ("/" + prefix if prefix else "")
