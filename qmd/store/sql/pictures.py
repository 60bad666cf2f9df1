"""
The pictures of documents, and the texts that were read from them.

A text belongs to the bytes of a file and to a page: a document that is moved, or comes again, is
not read a second time.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from qmd.store.sql import Capability, Sql
from qmd.values.pictures import Picture, PictureCounts, PictureJob, ReadPicture

#: SQL of pictures ``p`` with their texts ``t``.
_WITH_TEXTS = "z_pictures p LEFT JOIN z_picture_texts t ON t.source = p.source AND t.page = p.page"
#: The condition that a picture was read, or cannot be; it takes what reads now.
_IS_DONE = "(t.read_by = ? AND (t.text IS NOT NULL OR t.problem IS NOT NULL))"
_WAITS = f"({_IS_DONE}) IS NOT TRUE"


class Pictures(Capability):
    """Reads which pages are pictures, and what was read from them."""

    def of_document(self, document_id: int) -> list[Picture]:
        """By their pages."""
        return self._sql.all(
            Picture,
            "SELECT page, source, read_by FROM z_pictures WHERE document_id = ? ORDER BY page",
            [document_id],
        )

    def problems(self, document_id: int) -> dict[int, str]:
        """Page → why it cannot be read, of a document."""
        rows = self._sql.rows(
            (int, str),
            f"SELECT p.page, t.problem FROM {_WITH_TEXTS} WHERE p.document_id = ?"
            " AND t.problem IS NOT NULL ORDER BY p.page",
            [document_id],
        )
        return dict(rows)

    def texts(self, source: bytes) -> dict[int, ReadPicture]:
        """Page → text, of a file with these bytes."""
        rows = self._sql.rows(
            (int, str, str),
            "SELECT page, read_by, text FROM z_picture_texts WHERE source = ?"
            " AND text IS NOT NULL ORDER BY page",
            [source],
        )
        return {page: ReadPicture(read_by, text) for page, read_by, text in rows}

    def text_on_page(self, document_id: int, page: int) -> str | None:
        """What was read from a picture of a document; None if nothing was, or it has none there."""
        row = self._sql.first(
            f"SELECT t.text FROM {_WITH_TEXTS} WHERE p.document_id = ? AND p.page = ?"
            " AND t.text IS NOT NULL",
            [document_id, page],
        )
        return None if row is None else str(row[0])

    def have_texts(self) -> bool:
        """Whether anything was read from any picture."""
        return self._sql.exists("SELECT 1 FROM z_picture_texts LIMIT 1")

    def count_waiting(self, read_by: str, collection_ids: Sequence[int] = ()) -> int:
        """How many pictures are to be read by ``read_by``, of all or some collections."""
        condition, values = self._sql.in_collections(collection_ids)
        return self._sql.number(
            f"SELECT count(*) FROM {_WITH_TEXTS} JOIN documents d ON d.id = p.document_id"
            f" WHERE {_WAITS}{condition}",
            [read_by, *values],
        )

    def counts(self) -> PictureCounts:
        """Of all documents, whatever reads or has read them."""
        total, read, failed = self._sql.first(
            "SELECT count(*), coalesce(sum(CASE WHEN t.text IS NOT NULL THEN 1 ELSE 0 END), 0),"
            " coalesce(sum(CASE WHEN t.text IS NULL AND t.problem IS NOT NULL THEN 1 ELSE 0 END),"
            f" 0) FROM {_WITH_TEXTS}"
        )
        return PictureCounts(int(total), int(total) - int(read) - int(failed), int(failed))

    def are_waiting(self, read_by: str, document_id: int) -> bool:
        """Whether a picture of the document is still to be read, perhaps by another process."""
        return self._sql.exists(
            f"SELECT 1 FROM {_WITH_TEXTS} WHERE p.document_id = ? AND {_WAITS} LIMIT 1",
            [document_id, read_by],
        )

    def to_join(self, source: bytes | None = None) -> list[tuple[str, str]]:
        """The documents, all or of one source, by collection and path, that lack a read text."""
        condition, values = ("", []) if source is None else (" AND p.source = ?", [source])
        return self._sql.rows(
            (str, str),
            "SELECT DISTINCT c.name, d.path FROM z_pictures p JOIN z_picture_texts t"
            " ON t.source = p.source AND t.page = p.page JOIN documents d ON d.id = p.document_id"
            " JOIN collections c ON c.id = d.collection_id WHERE t.text IS NOT NULL"
            f" AND coalesce(p.read_by, '') <> t.read_by{condition} ORDER BY c.name, d.path",
            values,
        )


class PicturesWriter(Pictures):
    """Hands pictures out to those who read them, and stores what they have read."""

    def claim(
        self,
        read_by: str,
        *,
        now: int,
        until: int,
        collection_ids: Sequence[int] = (),
        but_not: Iterable[int] = (),
    ) -> PictureJob | None:
        """
        The next picture to be read, those of the newest files first; nobody else gets it.

        Args:
            read_by: What will read it.
            now, until: Seconds since 1970. A picture that was claimed until a time before ``now``
                is handed out again: its process has ended.
            collection_ids: Only of these collections; empty for all.
            but_not: Ids of documents to pass over.

        Returns:
            None if there is none, or others have claimed all that wait.
        """
        condition, values = self._sql.in_collections(collection_ids)
        passed_over = list(but_not)
        if passed_over:
            condition += f" AND NOT p.document_id {self._sql.among}"
            values.append(self._sql.array(passed_over))
        jobs = self._sql.all(
            PictureJob,
            "SELECT p.document_id, c.name, c.path, d.path, p.page, p.source"
            f" FROM {_WITH_TEXTS} JOIN documents d ON d.id = p.document_id"
            f" JOIN collections c ON c.id = d.collection_id WHERE {_WAITS}"
            f" AND coalesce(t.claimed_until, 0) <= ?{condition}"
            " ORDER BY d.modified_at DESC, p.document_id, p.page LIMIT 1",
            [read_by, now, *values],
        )
        if not jobs:
            return None
        [job] = jobs
        self._sql.run(
            "INSERT INTO z_picture_texts (source, page, read_by, claimed_until) VALUES (?, ?, ?, ?)"
            " ON CONFLICT (source, page) DO UPDATE SET claimed_until = excluded.claimed_until",
            [job.source, job.page, read_by, until],
        )
        return job

    def release(self, job: PictureJob) -> None:
        """Let others claim a picture that was not read."""
        self._sql.run(
            "UPDATE z_picture_texts SET claimed_until = NULL WHERE source = ? AND page = ?",
            [job.source, job.page],
        )

    def put(
        self, job: PictureJob, read_by: str, *, text: str | None = None, problem: str | None = None
    ) -> None:
        """
        Store what was read, or why nothing can be; an earlier text stays in the second case.

        Args:
            text: `PictureText.stored`.
        """
        self._sql.run(
            "UPDATE z_picture_texts SET read_by = ?, text = coalesce(?, text), problem = ?,"
            " claimed_until = NULL WHERE source = ? AND page = ?",
            [read_by, text, problem, job.source, job.page],
        )

    def put_texts(self, source: bytes, texts: Mapping[int, ReadPicture]) -> None:
        """Store what another database has of a file's pictures, by their pages."""
        self._sql.many(
            "INSERT INTO z_picture_texts (source, page, read_by, text) VALUES (?, ?, ?, ?)"
            " ON CONFLICT DO NOTHING",
            [(source, page, *read) for page, read in texts.items()],
        )

    def forget(self, collection_ids: Sequence[int] = ()) -> None:
        """Let pictures wait again, all or those of some collections; their texts are dropped."""
        condition, values = self._sql.in_collections(collection_ids)
        self._sql.run(
            "DELETE FROM z_picture_texts WHERE EXISTS (SELECT 1 FROM z_pictures p JOIN documents d"
            " ON d.id = p.document_id WHERE p.source = z_picture_texts.source"
            f" AND p.page = z_picture_texts.page{condition})",
            values,
        )


def put(sql: Sql, pictures: Mapping[int, Sequence[Picture]]) -> None:
    """Store the pictures of documents that have none stored; document id → pictures."""
    sql.many(
        "INSERT INTO z_pictures (document_id, page, source, read_by) VALUES (?, ?, ?, ?)",
        [(number, *picture) for number, each in pictures.items() for picture in each],
    )
