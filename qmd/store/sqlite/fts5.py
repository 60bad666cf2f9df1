"""
Speaks FTS5: its expressions and its tokens, and the common words for which a table answers instead.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from functools import cache, lru_cache
from itertools import groupby
from operator import itemgetter

from qmd.records import NamedTuple
from qmd.store.full_text import CONTENT_FIELDS, WEIGHTS, Expression, Phrase
from qmd.store.sql import Row, Sql
from qmd.store.sqlite.library import Connection, dbapi

#: https://sqlite.org/fts5.html#full_text_query_syntax
_OPERATORS = {"all": " AND ", "any": " OR ", "but not": " NOT "}
#: As in the statement that creates ``z_documents_fts`` (docs/schema.md).
TOKENIZE = "porter unicode61 remove_diacritics 2"
#: The rank of a row that `z_documents_fts` finds: below 0, the best first.
BM25 = f"bm25(z_documents_fts, {', '.join(map(str, WEIGHTS))})"
_lock = threading.Lock()


def render(expression: Expression) -> str:
    """An expression as FTS5 reads it; every text is quoted, so that no text is syntax."""
    if isinstance(expression, Phrase):
        return _phrase(expression)
    return _OPERATORS[expression.operator].join(map(_operand, expression.parts))


def _phrase(phrase: Phrase) -> str:
    quoted = '"' + phrase.text.replace('"', '""') + '"' + (" *" if phrase.prefix else "")
    return f"{{{' '.join(phrase.fields)}}} : {quoted}" if phrase.fields else quoted


def _operand(expression: Expression) -> str:
    """In brackets, but for a phrase in any field, which needs none."""
    text = render(expression)
    return text if isinstance(expression, Phrase) and not expression.fields else f"({text})"


@lru_cache(maxsize=4096)
def tokens(text: str) -> tuple[str, ...]:
    """The tokens of a text, in order: ``Running dogs`` gives ``run``, ``dog``."""
    return tuple(tokens_of([text])[0].split())


def tokens_of(texts: Iterable[str]) -> list[str]:
    """The tokens of each text, in order, separated by blanks, which no token has."""
    with _lock:
        connection = _index()
        connection.execute("BEGIN")
        try:
            every = [""] * connection.executemany(
                "INSERT INTO texts (rowid, text) VALUES (?, ?)", enumerate(texts)
            ).rowcount
            rows = connection.execute("SELECT doc, term FROM tokens ORDER BY doc, offset")
            for number, of_text in groupby(rows, itemgetter(0)):
                every[number] = " ".join([token for _, token in of_text])
        finally:
            connection.execute("ROLLBACK")
    return every


@cache
def _index() -> Connection:
    """A full-text index in memory: it makes the tokens."""
    connection = dbapi.connect(
        ":memory:", factory=Connection, isolation_level=None, check_same_thread=False
    )
    connection.execute(
        f"CREATE VIRTUAL TABLE texts USING fts5 (text, content = '', tokenize = '{TOKENIZE}')"
    )
    connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
    return connection


# --- common words -----------------------------------------------------------------------
# FTS5 counts the documents that match in 30 ns each, but it scores them in a microsecond each, all
# of them, to find the best ten. So a large database stores in ``z_common_words`` which documents
# hold its most common words, and how often. An expression of several words is evaluated leaf by
# leaf: common words from this table, all others by full text
# (`qmd.store.sqlite.common_word_scores`).
#
# The table is a snapshot. Documents that were changed since are looked up in full text.

#: ``z_common_words.frequencies`` are sums of weights times this number, so they are whole.
WEIGHT_SCALE = 10
#: What ends the name of the beginning of a word, which stands for all tokens that begin so.
BEGINS = "*"
#: What ends the name of a word that is looked for in all fields but the path, if that differs.
OUTSIDE_PATHS = "/"
#: The characters from here on are Chinese, Japanese or Korean ones, or signs.
FIRST_CJK = "\u2e80"


class Totals(NamedTuple):
    """How many documents the full-text index has, and the mean number of their tokens."""

    documents: int
    mean_tokens: float


def totals(connection: Connection, table: str = "z_documents_fts_data") -> Totals:
    """Read the record of averages of the full-text index; it costs nothing, however many."""
    row = connection.execute(f"SELECT block FROM {table} WHERE id = 1").fetchone()
    documents, *column_tokens = varints(row[0] if row else b"") or [0]
    return Totals(documents, sum(column_tokens) / documents if documents else 0.0)


def varints(data: bytes) -> list[int]:
    """The numbers of a record: seven bits in a byte, the last byte of a number below 128."""
    numbers, value, length = [], 0, 0
    for byte in data:
        length += 1
        if length == 9:  # the ninth byte has eight bits
            numbers.append(value << 8 | byte)
            value = length = 0
            continue
        value = value << 7 | byte & 127
        if byte < 128:
            numbers.append(value)
            value = length = 0
    return numbers


def token_of(phrase: Phrase) -> str | None:
    """The token under which ``z_common_words`` has a phrase; None if it cannot have it."""
    if phrase.fields not in ((), CONTENT_FIELDS):
        return None
    stored = tokens(phrase.text)
    if len(stored) != 1 or (phrase.fields and stored[0] < FIRST_CJK):
        return None
    return stored[0] + BEGINS if phrase.prefix else stored[0]


class CommonWords:
    """The finished build of ``z_common_words`` in one snapshot; `build_id` is None without one."""

    def __init__(self, sql: Sql) -> None:
        self.connection: Connection = sql.connection
        row = self.connection.execute(
            "SELECT max(id) FROM z_common_word_builds WHERE finished"
        ).fetchone()
        self.build_id: int | None = row[0]
        self._changed: list[int] | None = None

    def documents(self, phrase: Phrase) -> int:
        """How many documents hold a common word, nearly; 0 for other words and phrases."""
        token = None if self.build_id is None else token_of(phrase)
        if token is None:
            return 0
        row = self.row(phrase, token, "documents")
        return 0 if row is None else int(row[0])

    def row(self, phrase: Phrase, token: str, columns: str) -> Row | None:
        """The row of a word; that of the word outside paths, if the phrase asks for it."""
        names = self._names(token) if phrase.prefix else [token]
        if phrase.fields:
            names = [each for name in names for each in (name + OUTSIDE_PATHS, name)]
        for name in names:
            row: Row | None = self.connection.execute(
                f"SELECT {columns} FROM z_common_words WHERE build_id = ? AND token = ?",
                [self.build_id, name],
            ).fetchone()
            if row is not None:
                return row
        return None

    def _names(self, beginning: str) -> list[str]:
        """
        The names that a beginning may have in the table.

        All terms that begin with ``gree`` may begin with ``green``. Then only that is there, as
        the first of those that begin so.
        """
        begins = beginning.removesuffix(BEGINS)
        row = self.connection.execute(
            "SELECT token FROM z_common_words WHERE build_id = ? AND token >= ?"
            " ORDER BY token LIMIT 1",
            [self.build_id, begins],
        ).fetchone()
        if row is None or not row[0].startswith(begins):
            return []
        word = row[0].rstrip(BEGINS + OUTSIDE_PATHS)
        return [word + BEGINS, word]

    def cost(self, match: Expression) -> int:
        """How many documents with common words FTS5 would have to score, at most."""
        if self.build_id is None:
            return 0
        if isinstance(match, Phrase):
            return self.documents(match)
        if match.operator == "but not":
            return self.cost(match.parts[0])
        costs = [self.cost(part) for part in match.parts]
        return sum(costs) if match.operator == "any" else min(costs)

    def changed_ids(self) -> list[int]:
        """The documents of which only full text knows."""
        if self._changed is None:
            rows = self.connection.execute(
                "SELECT document_id FROM z_changed_documents WHERE build_id >= ?", [self.build_id]
            )
            self._changed = [document_id for (document_id,) in rows]
        return self._changed
