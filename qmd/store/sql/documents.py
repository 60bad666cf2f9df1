"""Reading stored documents: by path, suffix, docid or folder, and their texts."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Literal, get_args

from qmd.records import NamedTuple
from qmd.store.sql import Capability, SqlDialect, path_below, path_values
from qmd.store.sql.filters import Selection
from qmd.values import DocumentInfo
from qmd.values.text import file_stem, fold, name_key, replace_halves

if TYPE_CHECKING:
    from qmd.values import DocumentAnchor

#: A name of a document, by what gives it. The one by which people know it best comes first.
NameKind = Literal["file name", "alias", "title"]
NAME_KINDS: tuple[NameKind, ...] = get_args(NameKind)


class FullDocument(NamedTuple):
    """A document with its text; its body is ``text[body_start:]``, without the frontmatter."""

    info: DocumentInfo
    text: str
    body_start: int
    aliases: Sequence[str] = ()

    @property
    def names(self) -> list[str]:
        """The title, the file's name without its suffix, and the aliases."""
        return [self.info.title, file_stem(self.info.path), *self.aliases]


class DocumentFacts(NamedTuple):
    """
    What was read from a document besides its text.

    Attributes:
        date: Its own date, ISO 8601; None without one.
        description: As `ParsedDocument` has it.
        properties: As in the frontmatter; values as JSON has them.
        tags, aliases: By name.
    """

    date: str | None
    description: str
    properties: Mapping[str, object]
    tags: Sequence[str]
    aliases: Sequence[str]


class ListedFacts(NamedTuple):
    """
    What a table of documents may show.

    Attributes:
        modified: ISO 8601 UTC.
        date, properties, tags: As `DocumentFacts` has them.
    """

    id: int
    collection: str
    path: str
    title: str
    modified: str
    bytes: int
    date: str | None
    properties: Mapping[str, object]
    tags: Sequence[str]


class DocumentName(NamedTuple):
    """
    A name of a document, and where the document is.

    Attributes:
        name: As it is written; of a file its path.
    """

    document_id: int
    collection: str
    path: str
    kind: NameKind
    name: str


class StoredPost(NamedTuple):
    """
    A document with its text.

    Attributes:
        path: Relative to the collection.
        state: The file when it was indexed: size in bytes, mtime in ns, inode, device.
        text: UTF-8. Decoding the texts without a hit would double the time of a search.
    """

    id: int
    path: str
    state: tuple[int, int, int, int]
    text: bytes


class Order(NamedTuple):
    """
    What documents are sorted by.

    Attributes:
        by: The date of a document is its own, else that of its file.
        key: The property; None unless documents are sorted by one. Of several values the one that
            comes first counts. Numbers come before dates and texts (after them if descending), and
            documents without a value last.
        descending: The latest or greatest first.
    """

    by: Literal["date", "title", "property"]
    key: str | None = None
    descending: bool = False


DOCID_DIGITS = 6

#: The columns of a `_Row`. The last two are the hashes of other contents before and after it, or
#: NULL.
_INFO = """
    d.id, c.name, d.path, d.title, d.hash, d.bytes, d.modified_at,
    (SELECT hash FROM documents WHERE hash < d.hash ORDER BY hash DESC LIMIT 1),
    (SELECT hash FROM documents WHERE hash > d.hash ORDER BY hash LIMIT 1)
"""
_FROM = "FROM documents d JOIN collections c ON c.id = d.collection_id"


def _below(
    collection: str | None, prefix: str, selection: Selection | None
) -> tuple[str, list[object]]:
    where, values = "WHERE true", list[object]()
    if collection is not None:
        # Not by c.name: so SQLite sees that the index of paths has the order, and sorts nothing.
        where += " AND d.collection_id = (SELECT id FROM collections WHERE name = ?)"
        values.append(collection)
    if prefix:
        where += f" AND {path_below('d.path')}"
        values += path_values(prefix)
    if selection is not None:
        where += f" AND ({selection.sql})"
        values += selection.values
    return where, values


#: The best value of a property of each document, by which documents are sorted; a number comes
#: before a text. Per engine the join, and what to sort by, for a direction.
_BEST = {
    "sqlite": (
        " LEFT JOIN (SELECT document_id, {best}(coalesce(number, date, text)) AS best"
        " FROM properties WHERE key = ? AND kind <> 'empty' GROUP BY document_id) p"
        " ON p.document_id = d.id",
        "p.best IS NULL, p.best {direction}, ",
    ),
    "postgres": (  # in which a column has one type
        " LEFT JOIN (SELECT DISTINCT ON (document_id) document_id, number,"
        " CASE WHEN number IS NULL THEN coalesce(date, text) END AS written"
        " FROM properties WHERE key = ? AND kind <> 'empty'"
        " ORDER BY document_id, number IS NULL {direction}, number {direction},"
        " coalesce(date, text) {direction}) p ON p.document_id = d.id",
        "p.document_id IS NULL, p.number IS NULL {direction}, p.number {direction},"
        " p.written {direction}, ",
    ),
}


def _order(dialect: SqlDialect, order: Order | None, values: list[object]) -> tuple[str, str]:
    """A join and what to sort by; the values of the join are appended to ``values``."""
    if order is None:
        return "", ""
    direction = "DESC" if order.descending else "ASC"
    if order.by == "title":
        folded = dialect.folded.format("d.title")
        return "", f"{folded} {direction}, d.title {direction}, "
    if order.by == "date":
        nulls = "LAST" if order.descending else "FIRST"
        return "", f"{dialect.moment} {direction} NULLS {nulls}, "
    values.append(order.key)
    best = "max" if order.descending else "min"
    join, keys = (each.format(best=best, direction=direction) for each in _BEST[dialect.package])
    return join, keys


class _Row(NamedTuple):
    """A row of `_INFO`."""

    id: int
    collection: str
    path: str
    title: str
    hash: str
    bytes: int
    modified: str
    hash_before: str | None
    hash_after: str | None

    @property
    def info(self) -> DocumentInfo:
        docid = _docid(self.hash, self.hash_before, self.hash_after)
        return DocumentInfo(
            self.id, self.collection, self.path, self.title, docid, self.bytes, self.modified
        )


def _names_and_text(title: str, path: str, aliases: Sequence[str], text: str) -> str:
    """A document's names and its text, on lines of their own."""
    return "\n".join([title, file_stem(path), *aliases, text])


def _docid(digest: str, *neighbours: str | None) -> str:
    """``#`` and the first digits of a hash: six, or as many as no other content shares."""
    others = [each for each in neighbours if each is not None]
    digits = DOCID_DIGITS
    while digits < len(digest) and any(each.startswith(digest[:digits]) for each in others):
        digits += 1
    return "#" + digest[:digits]


class Documents(Capability):
    """Reads documents. Ids are those of `DocumentInfo.id`."""

    def _infos(self, where: str, values: Sequence[object]) -> Iterator[DocumentInfo]:
        rows = self._sql.all(_Row, f"SELECT {_INFO} {_FROM} {where}", values)
        return (row.info for row in rows)

    @property
    def _aliases(self) -> str:
        """The aliases of a document as one value, for `parsed`."""
        rest = f"FROM aliases WHERE document_id = d.id ORDER BY {self._key('alias')}"
        return self._sql.dialect.listed.format("alias", rest)

    def _key(self, column: str) -> str:
        return self._sql.dialect.key.format(column)

    def by_id(self, document_id: int) -> DocumentInfo:
        """The document of this id, which must exist."""
        return next(self._infos("WHERE d.id = ?", [document_id]))

    def by_ids(self, document_ids: Sequence[int]) -> list[DocumentInfo]:
        """Documents that exist, in the order of the ids; each id once."""
        infos = self._infos(f"WHERE d.id {self._sql.among}", [self._sql.array(document_ids)])
        documents = {each.id: each for each in infos}
        return [documents[document_id] for document_id in document_ids]

    def below(
        self,
        collection: str | None,
        prefix: str = "",
        *,
        selection: Selection | None = None,
        order: Order | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> list[DocumentInfo]:
        """
        The documents below a folder.

        Args:
            collection: Its name; None for all collections.
            prefix: A path of whole components below the collection; empty for its root.
            selection: Only these; None for all.
            order: None for the order of collection and path, which also puts equals in order.
            limit: Return at most this many; None for all.
            offset: Leave out this many at the start.
        """
        values: list[object] = []
        join, keys = _order(self._sql.dialect, order, values)
        where, others = _below(collection, prefix, selection)
        by_name = "c.name, " if collection is None else ""
        where = f"{join} {where} ORDER BY {keys}{by_name}d.path"
        if limit is None and not offset:
            return list(self._infos(where, [*values, *others]))
        # The other columns are read only of the documents that are returned.
        ids = self._sql.column(
            f"SELECT d.id {_FROM} {where} LIMIT ? OFFSET ?",
            [*values, *others, self._sql.dialect.no_limit if limit is None else limit, offset],
        )
        return self.by_ids(ids)

    def places(self, beginning: str = "") -> Iterator[tuple[int, str, str]]:
        """
        Id, collection and path of all documents, by collection and path; an index has all of it.

        Args:
            beginning: Only documents whose ``collection/path`` or path begins so.
        """
        names = sorted(self._sql.run("SELECT name, id FROM collections").fetchall())
        for name, collection_id in names:
            start = f"{name}/"
            if start.startswith(beginning):
                prefixes = [""]
            elif beginning.startswith(start):
                prefixes = sorted({beginning, beginning.removeprefix(start)})
            else:
                prefixes = [beginning]
            paths: dict[str, int] = {}
            for prefix in prefixes:
                paths |= self._sql.run(
                    "SELECT path, id FROM documents WHERE collection_id = ?"
                    " AND path >= ? AND path < ? ORDER BY path",
                    [collection_id, prefix, f"{prefix}\U0010ffff"],
                ).fetchall()
            for path in sorted(paths) if len(prefixes) > 1 else paths:
                yield paths[path], name, path

    def name_keys(self) -> Iterator[tuple[str, int]]:
        """
        The folded names of all documents with their ids: file names, then titles and aliases.

        They come from indexes, one row after the other: a million take a second and no memory.
        """
        for sql in (
            "SELECT name_key, id FROM documents ORDER BY name_key",
            "SELECT name_key, document_id FROM z_names ORDER BY name_key",
        ):
            yield from self._sql.stream(sql)

    def count(self) -> int:
        """How many documents there are."""
        return self._sql.number("SELECT count(*) FROM documents")

    def count_below(
        self, collection: str | None, prefix: str = "", *, selection: Selection | None = None
    ) -> int:
        """How many documents `below` returns without a limit."""
        where, values = _below(collection, prefix, selection)
        return self._sql.number(f"SELECT count(*) {_FROM} {where}", values)

    def by_path(self, collection: str, path: str) -> DocumentInfo | None:
        """The document at a path below its collection; None if there is none."""
        return next(self._infos("WHERE c.name = ? AND d.path = ?", [collection, path]), None)

    def with_file_names(self, keys: Iterable[str]) -> list[DocumentName]:
        """The documents whose file name has one of these `qmd.values.text.name_key`s."""
        return self._names(
            f"SELECT d.id, c.name, d.path, 'file name', d.path {_FROM}"
            f" WHERE d.name_key {self._sql.among}",
            [self._sql.array(keys)],
        )

    def with_file_name_prefix(self, prefix: str, limit: int) -> list[str]:
        """The first ``collection/path`` whose file name begins so, folded as `name_key`."""
        return self._sql.column(
            f"SELECT c.name || '/' || d.path {_FROM}"
            " WHERE d.name_key >= ? AND d.name_key < ? ORDER BY d.name_key, 1 LIMIT ?",
            [prefix, f"{prefix}\U0010ffff", limit],
        )

    def entries(self, collection: str, prefix: str, limit: int, start: str = "") -> list[str]:
        """
        The first paths that begin with ``prefix``, cut after the next slash, each once.

        ``notes/20`` gives the folder ``notes/2025/`` and the document ``notes/20.md``, in order.
        One step in the index for each of them. Those before ``start``, an entry, are left out.
        """
        entries: list[str] = []
        start = max(start, prefix)
        while len(entries) < limit:
            row = self._sql.first(
                f"SELECT d.path {_FROM}"
                " WHERE c.name = ? AND d.path >= ? AND d.path < ? ORDER BY d.path LIMIT 1",
                [collection, start, f"{prefix}\U0010ffff"],
            )
            if row is None:
                break
            path = str(row[0])
            slash = path.find("/", len(prefix))
            entries.append(path if slash < 0 else path[: slash + 1])
            start = f"{path}\x01" if slash < 0 else f"{path[:slash]}0"  # "0" follows "/"
        return entries

    def with_other_names(self, keys: Iterable[str]) -> list[DocumentName]:
        """The documents with an alias or a title whose `qmd.values.text.fold` is one of these."""
        folded = list(keys)
        array = self._sql.array(folded)
        tables = "FROM z_names n JOIN documents d ON d.id = n.document_id"
        tables += " JOIN collections c ON c.id = d.collection_id"
        having_key = f"n.name_key {self._sql.among}"
        names = self._names(
            f"SELECT d.id, c.name, d.path, 'title', d.title {tables}"
            f" WHERE {having_key} AND n.kind = 'title'"
            f" UNION ALL SELECT d.id, c.name, d.path, 'alias', a.alias {tables}"
            " JOIN aliases a ON a.document_id = d.id"
            f" WHERE {having_key} AND n.kind = 'alias'",
            [array, array],
        )
        return [name for name in names if fold(name.name) in folded]

    def with_other_name_prefix(self, prefix: str, limit: int) -> list[DocumentName]:
        """
        The first documents with a title or an alias that begins so, by these names.

        Args:
            prefix: Folded by `qmd.values.text.fold`.
        """
        keys = self._sql.column(
            "SELECT DISTINCT n.name_key FROM z_names n WHERE n.name_key >= ? AND n.name_key < ?"
            " ORDER BY n.name_key LIMIT ?",
            [prefix, f"{prefix}\U0010ffff", limit],
        )
        names = self.with_other_names(keys)
        return sorted(names, key=lambda each: (fold(each.name), each.collection, each.path))[:limit]

    def _names(self, sql: str, values: Sequence[object]) -> list[DocumentName]:
        return self._sql.all(DocumentName, sql, values)

    def by_docid(self, digits: str) -> list[DocumentInfo]:
        """Documents whose content hash starts with these hex digits, in path order."""
        return list(
            self._infos(
                "WHERE d.hash >= ? AND d.hash < ? ORDER BY c.name, d.path",
                [digits, digits + "g"],
            )
        )

    def content_hash(self, document_id: int) -> str:
        """SHA-256 of a document's text, in hexadecimal."""
        return str(self._sql.value("SELECT hash FROM documents WHERE id = ?", [document_id]))

    def text(self, document_id: int) -> str:
        sql = "SELECT text FROM documents WHERE id = ?"
        return str(self._sql.rows((str,), sql, [document_id])[0][0])

    def text_bytes(self, document_id: int) -> int:
        """The length of a document's text as UTF-8."""
        text = self._sql.dialect.as_bytes.format("text")
        return self._sql.number(f"SELECT length({text}) FROM documents WHERE id = ?", [document_id])

    def named(self, kind: NameKind, name: str, selection: Selection, limit: int) -> list[int]:
        """
        Ids of at most ``limit`` selected documents with this name, ascending.

        Letter case and Unicode form do not matter; a file may be named with ``.md`` or without.
        """
        name = replace_halves(name)
        if kind == "file name":
            if "/" in name:
                return []  # name_key would take it for a path
            named, values = "SELECT id FROM documents WHERE name_key = ?", [name_key(name)]
        else:
            named = "SELECT document_id AS id FROM z_names WHERE name_key = ? AND kind = ?"
            values = [fold(name), kind]
        # Begin with the few that have the name, not with a whole collection.
        return self._sql.column(
            f"SELECT d.id FROM (SELECT DISTINCT id FROM ({named}) AS m) AS n"
            f" {self._sql.dialect.first} documents d ON d.id = n.id"
            f" WHERE {selection.sql} ORDER BY d.id LIMIT ?",
            [*values, *selection.values, limit],
        )

    def other_names(self) -> list[tuple[str, str]]:
        """Every title and alias, after the ``collection/path`` of its document."""
        file = "SELECT c.name || '/' || d.path"
        return self._sql.run(
            f"{file}, d.title {_FROM} UNION ALL {file}, a.alias {_FROM}"
            " JOIN aliases a ON a.document_id = d.id"
        ).fetchall()

    def contents_below(self, collection_id: int, folder: str) -> Iterator[StoredPost]:
        """The documents below a folder, with their texts; "" is the root of the collection."""
        condition, values = "true", list[object]()
        if folder:
            condition, values = path_below("path"), path_values(folder)
        rows = self._sql.stream(
            "SELECT id, path, bytes, mtime_ns, inode, device,"
            f" {self._sql.dialect.as_bytes.format('text')} FROM documents"
            f" WHERE collection_id = ? AND {condition}",
            [collection_id, *values],
            rows_at_once=100,
        )
        for document_id, path, size, mtime_ns, inode, device, text in rows:
            yield StoredPost(document_id, path, (size, mtime_ns, inode, device), text)

    def warnings(self, document_id: int) -> list[str]:
        """Sentences that say what was wrong with the file when it was parsed."""
        stored = self._sql.value("SELECT warnings FROM documents WHERE id = ?", [document_id])
        warnings: list[str] = self._sql.dialect.parsed(stored)
        return warnings

    def anchors(self, document_id: int) -> list[DocumentAnchor]:
        """The places of a document's file, in order; none if the file is text."""
        return self._anchors("ORDER BY seq", [document_id])

    def anchors_at(self, lines: Mapping[int, int]) -> dict[int, DocumentAnchor]:
        """
        The places of files that lines of their texts are from.

        Args:
            lines: A line of each document, from 1, by the document's id.

        Returns:
            By the document's id; without the documents of which no such place is known.
        """
        having = self._sql.column(
            f"SELECT DISTINCT document_id FROM anchors WHERE document_id {self._sql.among}",
            [self._sql.array(lines)],
        )
        places: dict[int, DocumentAnchor] = {}
        for document_id in having:
            last = "AND line <= ? ORDER BY seq DESC LIMIT 1"
            for anchor in self._anchors(last, [document_id, lines[document_id]]):
                places[document_id] = anchor
        return places

    def _anchors(self, which: str, values: Sequence[object]) -> list[DocumentAnchor]:
        # A search that finds notes alone does not load this.
        from qmd.values import DocumentAnchor

        return self._sql.all(
            DocumentAnchor,
            f"SELECT kind, label, shown, line FROM anchors WHERE document_id = ? {which}",
            values,
        )

    def full(self, document_ids: Sequence[int]) -> list[FullDocument]:
        """Documents that exist, with their texts, in the order of the ids; each id once."""
        dialect = self._sql.dialect
        rows = self._sql.rows(
            (int, str, int, str),
            f"SELECT d.id, d.text, d.body_start, {self._aliases} FROM documents d"
            f" WHERE d.id {dialect.among}",
            [dialect.array(document_ids)],
        )
        contents = {row[0]: (row[1], row[2], dialect.parsed(row[3])) for row in rows}
        return [FullDocument(info, *contents[info.id]) for info in self.by_ids(document_ids)]

    def facts(self, document_id: int) -> DocumentFacts:
        """Of a document that exists."""
        date, description, properties = self._sql.rows(
            (str | None, str, str),
            "SELECT date, description, properties FROM documents WHERE id = ?",
            [document_id],
        )[0]
        names = [
            self._sql.column(
                f"SELECT {column} FROM {table} WHERE document_id = ? ORDER BY {self._key(column)}",
                [document_id],
            )
            for table, column in (("tags", "tag"), ("aliases", "alias"))
        ]
        return DocumentFacts(date, description, self._sql.dialect.parsed(properties), *names)

    def listed_facts(self, selection: Selection) -> Iterator[ListedFacts]:
        """The facts of the selected documents, by collection and path."""
        return self._listed_facts(selection.sql, selection.values)

    def listed_facts_of(self, document_ids: Sequence[int]) -> Iterator[ListedFacts]:
        """The facts of these documents, by collection and path."""
        return self._listed_facts(f"d.id {self._sql.among}", [self._sql.array(document_ids)])

    def _listed_facts(self, condition: str, values: Sequence[object]) -> Iterator[ListedFacts]:
        dialect = self._sql.dialect
        tags = dialect.listed.format(
            "tag", f"FROM tags WHERE document_id = d.id ORDER BY {self._key('tag')}"
        )
        for row in self._sql.run(
            "SELECT d.id, c.name, d.path, d.title, d.modified_at, d.bytes, d.date, d.properties,"
            f" {tags} {_FROM} WHERE {condition} ORDER BY c.name, d.path",
            values,
        ):
            facts = ListedFacts(*row)
            yield facts._replace(properties=dialect.parsed(row[-2]), tags=dialect.parsed(row[-1]))

    def identities(self) -> list[tuple[int, str, str, str]]:
        """Id, collection, path and content hash of every document."""
        return self._sql.run(f"SELECT d.id, c.name, d.path, d.hash {_FROM}").fetchall()

    def searched_text(
        self, document_id: int, field: Literal["title", "description", "path"] | None
    ) -> str:
        """
        What a field of a document holds: its names (`FullDocument.names`), a name on each line,
        for the title; its description or path; or (None) its names and its text.
        """
        if field in ("description", "path"):
            sql = f"SELECT {field} FROM documents WHERE id = ?"
            return str(self._sql.value(sql, [document_id]))
        column = "''" if field == "title" else "d.text"
        title, path, aliases, text = self._sql.first(
            f"SELECT d.title, d.path, {self._aliases}, {column} FROM documents d WHERE d.id = ?",
            [document_id],
        )
        return _names_and_text(title, path, self._sql.dialect.parsed(aliases), text)

    def names_and_texts(self, selection: Selection) -> Iterator[tuple[int, str]]:
        """Id, and names and text in lines (`FullDocument.names`), of all selected documents."""
        rows = self._sql.stream(
            f"SELECT d.id, d.title, d.path, {self._aliases}, d.text FROM documents d"
            f" WHERE {selection.sql} ORDER BY d.id",
            selection.values,
            rows_at_once=100,
        )
        for document_id, title, path, aliases, text in rows:
            yield document_id, _names_and_text(title, path, self._sql.dialect.parsed(aliases), text)

    def selected_ids(self, selection: Selection) -> list[int]:
        """The ids of the selected documents, in no order, some perhaps twice."""
        return self._sql.column(selection.ids, selection.values)

    def count_selected(self, selection: Selection) -> int:
        """How many documents are selected."""
        if selection.short_ids or selection.indexed_ids:  # which may give some ids twice
            selected = f"(SELECT 0 AS id WHERE false UNION ALL {selection.ids}) AS selected"
            return self._sql.number(f"SELECT count(DISTINCT id) FROM {selected}", selection.values)
        return self._sql.number(
            f"SELECT count(*) FROM documents d WHERE {selection.sql}", selection.values
        )

    def ordered_ids(self, document_ids: Collection[int], order: Order) -> list[int]:
        """These documents in an order; equals by collection and path."""
        values: list[object] = []
        join, keys = _order(self._sql.dialect, order, values)
        return self._sql.column(
            f"SELECT d.id {_FROM}{join} WHERE d.id {self._sql.among} ORDER BY {keys}c.name, d.path",
            [*values, self._sql.array(document_ids)],
        )

    def latest_ids(self, selection: Selection) -> Iterator[int]:
        """
        Ids of all selected documents, the latest first, then by collection and path.

        Dates are compared as moments: they may be written with different offsets from UTC.
        """
        rows = self._sql.stream(
            f"SELECT d.id {_FROM} WHERE {selection.sql}"
            f" ORDER BY {self._sql.dialect.moment} DESC NULLS LAST, c.name, d.path",
            selection.values,
        )
        for (document_id,) in rows:
            yield document_id
