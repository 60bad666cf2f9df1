"""Stores what full text searches, and searches it: expressions go in, ids with bm25 come out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from time import monotonic
from typing import TYPE_CHECKING

from qmd import libraries
from qmd.store import sqlite
from qmd.store.full_text import Expression, FullText, Phrase, frequencies_of
from qmd.store.sql import SQLITE, Sql
from qmd.store.sql.documents import Documents
from qmd.store.sql.filters import Selection
from qmd.store.sqlite.fts5 import BM25, CommonWords, render, totals
from qmd.store.sqlite.library import Connection, ReadingConnection
from qmd.values.text import in_pairs

if TYPE_CHECKING:
    from qmd.store.sqlite.common_word_scores import CommonWordScores, Matches
    from qmd.values import FullTextEntry, NewDocument


#: An expression whose common words are in more documents than this is evaluated by the table
#: ``z_common_words``. It takes FTS5 about 20 ms to score as many; loading numpy takes longer.
MANY = 20_000
#: FTS5 takes 0.1 us a document to tell the frequencies of a word.
MANY_FREQUENCIES = 20_000
#: Filters are looked up for each matching document if there are no more of them than this.
FEW = 5000
#: If an expression matches more documents than this, they are scored, the latest stored first,
#: for at most `DEADLINE_S` seconds.
MANY_SCORED = 150_000
DEADLINE_S = 0.4
SCORED_AT_ONCE = 2000
#: So many counts stay with a connection while nothing changes.
MOST_COUNTED = 1000


def full_text(sql: Sql) -> FullText:
    """What searches the snapshot of a connection."""
    if sql.is_scoped:
        return sqlite.scope.ScopedFullText(sql)
    return SqliteFullText(sql)


class SqliteFullText(FullText):
    """`FullText` in SQLite."""

    def __init__(self, sql: Sql, *, many: int = MANY) -> None:
        super().__init__(sql)
        self._connection: Connection = sql.connection
        self._many = many
        self._common_words: CommonWords | None = None
        self._common_word_scores: CommonWordScores | None = None
        #: The expression that was searched for last, and the bm25 of its best documents.
        self._scored: tuple[Expression, dict[int, float]] | None = None
        self._counted: dict[tuple[str, int], int] | None = None

    def document_count(self) -> int:
        return totals(self._connection).documents

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        self._connection.execute(
            "CREATE VIRTUAL TABLE IF NOT EXISTS temp.z_vocabulary"
            " USING fts5vocab('main', 'z_documents_fts', 'row')"
        )
        rows = self._connection.execute(
            "SELECT term, doc FROM temp.z_vocabulary WHERE term >= ? AND term < ? LIMIT ?",
            [beginning, f"{beginning}\U0010ffff", most],
        )
        return dict(rows.fetchall())

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        common = self._common()
        if common.cost(match) > self._many:
            return self._best(self._scores().evaluate(match), selection, limit)
        if limit is not None and self._are_too_many(match):
            return self._search_in_time(match, selection, limit)
        # ORDER BY bm25() LIMIT keeps a heap of the best; ORDER BY rank sorts everything.
        rows = self._connection.execute(
            f"SELECT rowid, {BM25} AS score FROM z_documents_fts"
            f" WHERE z_documents_fts MATCH ?{self._condition(match, selection)}"
            " ORDER BY score, rowid LIMIT ?",
            [render(match), *selection.values, -1 if limit is None else limit],
        )
        best = [(document_id, -score) for document_id, score in rows]
        if isinstance(self._connection, ReadingConnection):  # else it may be changed meanwhile
            self._scored = match, dict(best)
        return best

    def _are_too_many(self, match: Expression) -> bool:
        """Whether more documents match than can be scored in a moment."""
        if self.document_count() <= MANY_SCORED:
            return False
        return self.count(match, MANY_SCORED + 1) > MANY_SCORED

    def _common(self) -> CommonWords:
        if self._common_words is None:
            self._common_words = CommonWords(self._sql)
        return self._common_words

    def _scores(self) -> CommonWordScores:
        if self._common_word_scores is None:
            self._common_word_scores = sqlite.common_word_scores.CommonWordScores(self._common())
        return self._common_word_scores

    def _condition(self, match: Expression, where: Selection) -> str:
        """The condition that a match is one of the selected documents; it takes their values."""
        if where.is_all:
            return ""
        if not where.short_ids and self.count(match, FEW + 1) <= FEW:
            document = "SELECT 1 FROM documents d WHERE d.id = z_documents_fts.rowid"
            return f" AND EXISTS ({document} AND ({where.sql}))"
        # The sign keeps SQLite from beginning the whole search anew for each of the ids.
        return f" AND +rowid IN ({where.ids})"

    def _search_in_time(
        self, match: Expression, where: Selection, limit: int
    ) -> list[tuple[int, float]]:
        """As `search`; what cannot be scored in `DEADLINE_S` is left out."""
        deadline = monotonic() + DEADLINE_S
        rows = self._connection.execute(
            f"SELECT {BM25}, rowid FROM z_documents_fts"
            f" WHERE z_documents_fts MATCH ?{self._condition(match, where)} ORDER BY rowid DESC",
            [render(match), *where.values],
        )
        best: list[tuple[float, int]] = []
        while batch := rows.fetchmany(SCORED_AT_ONCE):
            best = sorted([*best, *batch])[:limit]
            if monotonic() > deadline:
                self.is_incomplete = True
                break
        rows.close()
        return [(document_id, -score) for score, document_id in best]

    def _best(
        self, matches: Matches, where: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        """The best of scored documents that pass a filter; ties by document id."""
        size = len(matches.ids) if limit is None else limit
        tested = 2 * size
        while (
            not where.is_all and limit is not None and tested <= FEW and tested < len(matches.ids)
        ):
            best = matches.best(tested)
            passing_ids = self._selected([document_id for document_id, _ in best], where)
            passing = [row for row in best if row[0] in passing_ids]
            if len(passing) >= limit:
                return passing[:limit]
            tested *= 4
        if not where.is_all:
            matches = matches.among(Documents(self._sql).selected_ids(where))
        return matches.best(size)

    def _selected(self, document_ids: list[int], where: Selection) -> set[int]:
        ids = self._sql.column(
            "SELECT d.id FROM json_each(?) j CROSS JOIN documents d ON d.id = j.value"
            f" WHERE {where.sql}",
            [SQLITE.array(document_ids), *where.values],
        )
        return {*ids}

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        common = self._common()
        if isinstance(match, Phrase) and common.documents(match) > MANY_FREQUENCIES:
            changed = set(ids) & set(common.changed_ids())
            of_changed = self._frequencies(match, sorted(changed), held, total) if changed else {}
            return self._scores().frequencies(match, ids, of_changed)
        return self._frequencies(match, ids, held, total)

    def _frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        # FTS5 gives no frequencies, but its bm25 of one expression. A search for one word has it.
        searched, scores = self._scored or (None, {})
        if searched == match and all(document_id in scores for document_id in ids):
            return frequencies_of(((each, scores[each]) for each in ids), held, total)
        # The sign keeps SQLite from beginning the whole search anew for each of the ids.
        rows = self._connection.execute(
            f"SELECT rowid, -{BM25} FROM z_documents_fts"
            " WHERE z_documents_fts MATCH ? AND +rowid IN (SELECT value FROM json_each(?))",
            [render(match), SQLITE.array(ids)],
        )
        return frequencies_of(rows, held, total)

    def count(self, match: Expression, most: int) -> int:
        # FTS5 counts 30 documents in a microsecond. The number of a common word is that of the
        # build, of which some documents may have changed.
        common = self._common().documents(match) if isinstance(match, Phrase) else 0
        if common > self._many:
            return min(common, most)
        text = render(match)
        counted = self._counts()
        if (text, most) not in counted:
            row = self._connection.execute(
                "SELECT count(*) FROM"
                " (SELECT 1 FROM z_documents_fts WHERE z_documents_fts MATCH ? LIMIT ?)",
                [text, most],
            ).fetchone()
            counted[text, most] = int(row[0])
        return counted[text, most]

    def _counts(self) -> dict[tuple[str, int], int]:
        """
        What was counted of this state of the database, so that more may be added.

        Many questions have the same words, and those that most documents hold take longest.
        """
        connection = self._connection
        if not isinstance(connection, ReadingConnection):
            return {}  # a transaction changes what it counts
        if self._counted is None:
            state = connection.state()
            before, self._counted = connection.counted or (None, {})
            if before != state or len(self._counted) > MOST_COUNTED:
                self._counted = {}
                connection.counted = state, self._counted
        return self._counted

    def matching_ids(self, match: Expression) -> list[int]:
        return self._sql.column(
            "SELECT rowid FROM z_documents_fts WHERE z_documents_fts MATCH ? ORDER BY rowid",
            [render(match)],
        )


_COLUMNS = (
    "title", "headings", "body", "path", "front", "words", "description", "replacements",
    "has_pairs",
)  # fmt: skip
#: Rows in one statement; some SQLite libraries take 999 values at most.
_ROWS_AT_ONCE = 96


def put(connection: Connection, documents: Sequence[tuple[int, NewDocument]]) -> None:
    """
    Store what is searched of documents by id; replacing them has taken their old rows out.

    The index gets the texts from here: the view ``z_documents_fts_text`` would have to make them
    again. Its words are the same, so a trigger takes a document out by the view (`write_out`).

    Before each statement with triggers FTS5 writes the terms that it has gathered as a segment,
    which is merged with others later. So the rows come first, and many in one statement.
    """
    marks = f"({', '.join('?' * (1 + len(_COLUMNS)))})"
    for start in range(0, len(documents), _ROWS_AT_ONCE):
        rows = documents[start : start + _ROWS_AT_ONCE]
        connection.execute(
            f"INSERT INTO z_searchable (document_id, {', '.join(_COLUMNS)})"
            f" VALUES {', '.join([marks] * len(rows))}",
            [value for number, document in rows for value in (number, *_row(document.fulltext))],
        )
    connection.executemany(
        "INSERT INTO z_documents_fts (rowid, title, headings, body, path, extra, description)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        _indexed(documents),
    )


def write_out(connection: Connection, ids: Iterable[int]) -> None:
    """
    Store in full what is searched of documents that are about to change or to go.

    Triggers then take their words out by the view ``z_documents_fts_text``. It would have to make
    the pairs of Chinese, for which SQLite takes a hundred times as long as Python.
    """
    rows = connection.execute(
        "SELECT s.document_id, s.replacements, substr(d.text, d.body_start + 1),"
        " substr(d.text, 1, d.body_start) FROM z_searchable s JOIN documents d"
        " ON d.id = s.document_id WHERE s.has_pairs AND s.body IS NULL"
        " AND s.document_id IN (SELECT value FROM json_each(?))",
        [SQLITE.array(ids)],
    ).fetchall()
    connection.executemany(
        "UPDATE z_searchable SET body = ?, front = ? WHERE document_id = ?",
        [
            (*(_in_full(text, replacements) for text in texts), number)
            for number, replacements, *texts in rows
        ],
    )


def _in_full(text: str, replacements: str | None) -> str:
    """What the view makes of a text: with the replacements, then in pairs."""
    words = iter(libraries.json.loads(replacements or "[]"))
    for word, form in zip(words, words, strict=True):
        text = text.replace(word, form)
    return in_pairs(text)


def _row(entry: FullTextEntry) -> tuple[str | int | None, ...]:
    """The columns of an entry: its body and frontmatter, or what makes them of the document's."""
    body, front = entry.body, entry.front
    if entry.replacements or entry.has_pairs:
        body = front = None
    replacements = None
    if entry.replacements:
        replacements = libraries.json.dumps(entry.replacements, ensure_ascii=False)
    return (
        entry.title,
        entry.headings,
        body,
        entry.path,
        front,
        entry.words,
        entry.description,
        replacements,
        1 if entry.has_pairs else None,
    )


def _indexed(documents: Sequence[tuple[int, NewDocument]]) -> Iterator[tuple[object, ...]]:
    """The columns of the index; those of the view, with the same words."""
    for number, document in documents:
        parsed, entry = document.parsed, document.fulltext
        front = parsed.text[: parsed.body_start] if entry.front is None else entry.front
        yield (
            number,
            parsed.title if entry.title is None else entry.title,
            entry.headings,
            parsed.text[parsed.body_start :] if entry.body is None else entry.body,
            document.path if entry.path is None else entry.path,
            f"{front}\n{entry.words}",
            parsed.description if entry.description is None else entry.description,
        )
