"""
Tokens with their places, as SQLite's FTS5 makes them of a text.

A full-text index in memory is the tokenizer, so stems and accents are the same in both engines.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from functools import cache

from qmd.store.full_text import FIELDS, WEIGHTS
from qmd.store.postgres.library import SUBSTITUTE, Connection
from qmd.store.sqlite import library as sqlite
from qmd.store.sqlite.fts5 import TOKENIZE
from qmd.values import NewDocument

#: A place is the number of the field, shifted by this, plus the position in the field.
FIELD_BITS = 26
#: Characters of the longest token that is stored whole: an index of PostgreSQL has 2,704 bytes.
LONGEST = 400
_WEIGHT_OF = dict(zip(FIELDS, WEIGHTS, strict=True))
_NUMBER_OF = {field: number << FIELD_BITS for number, field in enumerate(FIELDS)}
_COPIED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": SUBSTITUTE})
#: So many lines are sent at once, some 100 KB.
_LINES = 2_000
_lock = threading.Lock()


def stored_token(token: str) -> str:
    """The form in which ``z_postings`` has a token."""
    if len(token) <= LONGEST:
        return token
    return token[:LONGEST] + hashlib.sha256(token.encode()).hexdigest()


def put(connection: Connection, documents: Sequence[tuple[int, NewDocument]]) -> None:
    """Store the tokens of documents by id, in place of what there was of them."""
    if not documents:
        return
    ids = [document_id for document_id, _ in documents]
    connection.execute("DELETE FROM z_document_tokens WHERE document_id = ANY(%s)", [ids])
    lengths = dict.fromkeys(ids, 0)
    tokens: dict[int, list[str]] = {document_id: [] for document_id in ids}
    entries = list(_postings(documents))
    for _, document_id, places, _ in entries:
        lengths[document_id] += len(places)
    columns = "token, document_id, weight, length, fields, places"
    with connection.cursor() as cursor:
        with cursor.copy(f"COPY z_postings ({columns}) FROM STDIN") as postings:
            lines: list[str] = []
            for token, document_id, places, weight in entries:
                stored = stored_token(token)
                lines.append(
                    f"{_copied(stored)}\t{document_id}\t{weight!r}\t{lengths[document_id]}"
                    f"\t{_fields_of(places)}\t{{{','.join(map(str, places))}}}\n"
                )
                if len(lines) == _LINES:
                    postings.write("".join(lines))
                    lines.clear()
                tokens[document_id].append(stored)
            postings.write("".join(lines))
        with cursor.copy("COPY z_document_tokens (document_id, length, tokens) FROM STDIN") as rows:
            for document_id, length in lengths.items():
                array = ",".join(f'"{_quoted(token)}"' for token in tokens[document_id])
                rows.write(f"{document_id}\t{length}\t{{{_copied(array)}}}\n")
    connection.execute(
        "UPDATE z_full_text_totals SET documents = documents + %s, length = length + %s",
        [len(lengths), sum(lengths.values())],
    )


def field_bits(fields: Iterable[int]) -> int:
    """The numbers of fields as the column ``fields`` has them: the bit 2^number for each."""
    bits = 0
    for number in fields:
        bits |= 1 << number
    return bits


def _fields_of(places: Sequence[int]) -> int:
    first, last = places[0] >> FIELD_BITS, places[-1] >> FIELD_BITS
    if first == last:  # of nearly all tokens
        return 1 << first
    return field_bits(place >> FIELD_BITS for place in places)


def _copied(text: str) -> str:
    """A text in the format of COPY, which psycopg writes in eight times the time."""
    return text if text.isalnum() else text.translate(_COPIED)


def _quoted(token: str) -> str:
    """A token within the quotation marks of an array."""
    return token if token.isalnum() else token.replace("\\", "\\\\").replace('"', '\\"')


def _postings(
    documents: Sequence[tuple[int, NewDocument]],
) -> Iterator[tuple[str, int, list[int], float]]:
    """Token, document, places and weight; sorted by token, the places of a document together."""
    with _lock:
        with _index() as index:
            index.execute("INSERT INTO texts (texts) VALUES ('delete-all')")
            index.execute("BEGIN")  # otherwise each document becomes a segment of the index
            index.executemany(
                "INSERT INTO texts (rowid, title, headings, body, path, extra, description)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                [(document_id, *_fields(document)) for document_id, document in documents],
            )
        key: tuple[str, int] | None = None
        places: list[int] = []
        weight = 0.0
        # FTS5 has them in this order; it does not say so of documents, and SQLite would sort all.
        rows = index.execute("SELECT term, doc, col, offset FROM tokens ORDER BY term")
        for term, document_id, field, position in rows:
            if (term, document_id) != key:
                if key is not None:
                    yield *key, sorted(places), weight
                key, places, weight = (term, document_id), [], 0.0
            places.append(_NUMBER_OF[field] + position)
            weight += _WEIGHT_OF[field]
        if key is not None:
            yield *key, sorted(places), weight


def _fields(document: NewDocument) -> tuple[str, ...]:
    """The texts in the order of `FIELDS`, as the view z_documents_fts_text of the SQLite file."""
    parsed, entry = document.parsed, document.fulltext

    def text(segmented: str | None, unchanged: str) -> str:
        return unchanged if segmented is None else segmented

    return (
        text(entry.title, parsed.title),
        entry.headings,
        text(entry.body, parsed.text[parsed.body_start :]),
        text(entry.path, document.path),
        text(entry.front, parsed.text[: parsed.body_start]) + "\n" + entry.words,
        text(entry.description, parsed.description),
    )


@cache
def _index() -> sqlite.Connection:
    connection = sqlite.dbapi.connect(
        ":memory:", factory=sqlite.Connection, isolation_level=None, check_same_thread=False
    )
    fields = ", ".join(FIELDS)
    connection.execute(
        f"CREATE VIRTUAL TABLE texts USING fts5 ({fields}, content='', tokenize='{TOKENIZE}')"
    )
    connection.execute("CREATE VIRTUAL TABLE tokens USING fts5vocab (texts, instance)")
    return connection
