"""Stores what full text searches, and searches it: expressions go in, ids with bm25 come out."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

from qmd.store.full_text import (
    BM25_B,
    BM25_K1,
    FIELDS,
    WEIGHTS,
    Expression,
    FullText,
    Phrase,
    frequencies_of,
)
from qmd.store.postgres.library import Connection, copy
from qmd.store.sql import Sql
from qmd.store.sql.filters import Selection
from qmd.store.sqlite.fts5 import tokens, tokens_of
from qmd.values import NewDocument


def full_text(sql: Sql) -> FullText:
    """What searches the snapshot of a connection."""
    return PostgresFullText(sql)


class PostgresFullText(FullText):
    """`FullText` in PostgreSQL."""

    def document_count(self) -> int:
        return self._sql.number("SELECT documents FROM z_full_text_totals")

    def terms(self, beginning: str, most: int) -> dict[str, int]:
        rows = self._sql.run(
            "SELECT token, count(*) FROM z_postings WHERE token >= ? AND token < ?"
            " GROUP BY token ORDER BY token LIMIT ?",
            [beginning, f"{beginning}\U0010ffff", most],
        )
        return dict(rows.fetchall())

    def search(
        self, match: Expression, selection: Selection, limit: int | None
    ) -> list[tuple[int, float]]:
        condition = "" if selection.is_all else (
            f" WHERE document_id IN (SELECT d.id FROM documents d WHERE {selection.sql})"
        )  # fmt: skip
        query = translate(match)
        scored, values = self._scored(query, condition, selection.values)
        leaves = query.with_clause(are_kept=True)
        return self._sql.run(
            f"{leaves} {scored} ORDER BY score DESC, document_id LIMIT ?",
            [*query.values, *values, limit],
        ).fetchall()

    def _scored(
        self, query: MatchQuery, condition: str, values: Sequence[object]
    ) -> tuple[str, list[object]]:
        """
        A query of ``document_id`` and bm25 as ``score``, over the leaves; and its values.

        It is FTS5's: https://sqlite.org/fts5.html#the_bm25_function

        Args:
            condition: " WHERE " and what a ``document_id`` must fulfil, or nothing; and its values.
        """
        documents, mean_length = self._totals
        terms = [
            f"(SELECT greatest(ln((? - count(*) + 0.5) / (count(*) + 0.5::float8)), 0.000001)"
            f" FROM l{n}) * l{n}.weight * {BM25_K1 + 1}::float8 / (l{n}.weight"
            f" + {BM25_K1 * (1 - BM25_B)}::float8 + {BM25_K1 * BM25_B}::float8 * l{n}.length / ?)"
            for n in query.scored
        ]
        numbers: list[object] = [float(documents), mean_length] * len(terms)
        if len(terms) == 1 and len(query.leaves) == 1:
            sql = f"SELECT document_id, {terms[0]} AS score FROM l0{condition}"
            return sql, [*numbers, *values]
        # One sum of the rows of all leaves. A join would depend on how many rows the server
        # expects: where it expects one and there are thousands, it compares each with each.
        rows = " UNION ALL ".join(
            f"SELECT document_id, {term} AS term FROM l{n}"
            for n, term in zip(query.scored, terms, strict=True)
        )
        if not query.is_any:
            # The server cannot turn this form into a join, either.
            matching = (
                "EXISTS (SELECT 1 FROM m) AND (document_id IN (SELECT document_id FROM m)) IS TRUE"
            )
            condition = f"{condition} AND {matching}" if condition else f" WHERE {matching}"
        sql = f"SELECT document_id, sum(term) AS score FROM ({rows}) t{condition} GROUP BY 1"
        return sql, [*numbers, *values]

    @cached_property
    def _totals(self) -> tuple[int, float]:
        """
        How many documents there are, and the mean number of their tokens.

        In a scope the server counts them.
        """
        documents, length = self._sql.first("SELECT documents, length FROM z_full_text_totals")
        return int(documents), float(length) / max(documents, 1) or 1.0

    def frequencies(
        self, match: Expression, ids: Sequence[int], held: int, total: int
    ) -> dict[int, float]:
        if isinstance(match, Phrase):
            _, mean_length = self._totals
            sql, values = leaf(match)
            rows = self._sql.run(
                f"SELECT document_id, weight, length FROM ({sql}) l WHERE document_id = ANY(?)",
                [*values, list(ids)],
            )
            return {
                document_id: weight / (BM25_K1 * (1 - BM25_B + BM25_B * length / mean_length))
                for document_id, weight, length in rows
            }
        query = translate(match)
        scored, numbers = self._scored(query, " WHERE document_id = ANY(?)", [list(ids)])
        scores = self._sql.run(
            f"{query.with_clause(are_kept=True)} {scored}", [*query.values, *numbers]
        ).fetchall()
        return frequencies_of(scores, held, total)

    def count(self, match: Expression, most: int) -> int:
        query = translate(match)
        sql = "SELECT count(*) FROM (SELECT 1 FROM m LIMIT ?) c"
        leaves = query.with_clause(are_kept=False)
        return self._sql.number(f"{leaves} {sql}", [*query.values, most])

    def matching_ids(self, match: Expression) -> list[int]:
        query = translate(match)
        return self._sql.column(
            f"{query.with_clause(are_kept=False)} SELECT document_id FROM m ORDER BY document_id",
            query.values,
        )


# --- searching --------------------------------------------------------------------------
# An expression becomes SQL over ``z_postings``: each phrase a query of its documents, with the sum
# of the weights of its occurrences; the operators INTERSECT, UNION and EXCEPT of these.

_OPERATORS = {"all": " INTERSECT ", "any": " UNION ", "but not": " EXCEPT "}
#: Sorts after every token that begins with what stands before it.
_LAST = "\U0010ffff"
#: From so many words on, a phrase is looked up word by word: the server takes 60 ms to plan joins
#: of eight.
_MANY = 4
#: So many rows of a word are counted at most, to find the rarest words of a phrase.
_COUNTED = 1000
T = TypeVar("T")


@dataclass(slots=True)
class MatchQuery:
    """
    A match expression as SQL.

    Attributes:
        leaves: For each phrase a query of ``document_id``, ``weight`` and ``length``, with its
            values.
        scored: The numbers of the phrases that a matching document can hold.
        documents: A query of ``document_id`` over the leaves, which are named ``l0``, ``l1``, …
        is_any: Whether a document matches that holds any of the phrases.
    """

    leaves: list[tuple[str, list[object]]] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    documents: str = ""
    is_any: bool = False

    def with_clause(self, *, are_kept: bool) -> str:
        """
        The leaves, and the matching documents as ``m``, as common table expressions.

        It takes `values`.

        ``are_kept``: the server keeps their rows, because they are read more than once.
        """
        kept = "MATERIALIZED" if are_kept else "NOT MATERIALIZED"
        named = [f"l{number} AS {kept} ({sql})" for number, (sql, _) in enumerate(self.leaves)]
        return f"WITH {', '.join(named)}, m AS {kept} ({self.documents})"

    @property
    def values(self) -> list[object]:
        return [value for _, values in self.leaves for value in values]


def translate(expression: Expression) -> MatchQuery:
    query = MatchQuery()
    query.documents = _documents(expression, query, is_scored=True)
    query.is_any = _is_any(expression)
    return query


def _is_any(expression: Expression) -> bool:
    if isinstance(expression, Phrase):
        return True
    return expression.operator == "any" and all(map(_is_any, expression.parts))


def _documents(expression: Expression, query: MatchQuery, *, is_scored: bool) -> str:
    if isinstance(expression, Phrase):
        number = len(query.leaves)
        query.leaves.append(leaf(expression))
        if is_scored:
            query.scored.append(number)
        return f"SELECT document_id FROM l{number}"
    parts = []
    for position, part in enumerate(expression.parts):
        is_excluded = expression.operator == "but not" and position > 0
        sql = _documents(part, query, is_scored=is_scored and not is_excluded)
        parts.append(f"({sql})")
    return _OPERATORS[expression.operator].join(parts)


def leaf(phrase: Phrase) -> tuple[str, list[object]]:
    """
    A query of the documents that hold a phrase, each once.

    Its columns are ``document_id``, ``weight`` (of all occurrences) and ``length`` (of the
    document, in tokens).
    """
    words = tokens(phrase.text)
    if not words:
        return (
            "SELECT 0::bigint AS document_id, 0::double precision AS weight, 0 AS length"
            " WHERE false",
            [],
        )
    fields = sorted(FIELDS.index(name) for name in phrase.fields)
    values: list[object] = []
    if len(words) == 1:
        return _of_word(words[0], phrase.prefix, fields, values), values
    places = _places(words, phrase.prefix, values)
    return _weighted(places, fields, values)


def _of_word(word: str, prefix: bool, fields: list[int], values: list[object]) -> str:
    """A leaf for a single word. Where all its places count, the index has what is asked."""
    condition = _condition(word, prefix, values)
    sql = f"SELECT document_id, weight, length FROM z_postings WHERE {condition}"
    if fields:
        included = field_bits(fields)
        excluded = field_bits(range(len(FIELDS))) ^ included
        sql += " AND fields & ? = 0"
        values.append(excluded)
        some_values: list[object] = []
        some = (
            "SELECT document_id, length, unnest(places) AS place FROM z_postings"
            f" WHERE {_condition(word, prefix, some_values)}"
            " AND fields & ? <> 0 AND fields & ? <> 0"
        )
        weighted, weighted_values = _weighted(some, fields, [*some_values, excluded, included])
        sql = f"{sql} UNION ALL {weighted}"
        values += weighted_values
    if not prefix:
        return sql
    return (
        "SELECT document_id, sum(weight) AS weight, max(length) AS length"
        f" FROM ({sql}) w GROUP BY document_id"
    )


def _weighted(places: str, fields: list[int], values: list[object]) -> tuple[str, list[object]]:
    """A leaf of a query of ``document_id``, ``length`` and ``place``; no fields for all."""
    sql = (
        "SELECT document_id, sum((?::double precision[])[(place >> ?) + 1]) AS weight,"
        f" max(length) AS length FROM ({places}) p"
    )
    values = [list(WEIGHTS), FIELD_BITS, *values]
    if fields:
        sql += " WHERE place >> ? = ANY(?::integer[])"
        values += [FIELD_BITS, fields]
    return f"{sql} GROUP BY document_id", values


def _condition(word: str, prefix: bool, values: list[object]) -> str:
    if not prefix:
        values.append(stored_token(word))
        return "token = ?"
    beginning = word[:LONGEST]
    values += [beginning, beginning + _LAST]
    return "token >= ? AND token < ?"


def _places(words: tuple[str, ...], prefix: bool, values: list[object]) -> str:
    """
    A query of ``document_id``, ``length`` and ``place`` of the first word of each occurrence.

    The documents that hold all words come first, by the index; then their places are compared, as
    sets of all documents, because a function that compares those of one takes 30 us a call. They
    are not joined: see `PostgresFullText._scored`. With a prefix, a document comes once for each
    token that begins with it, and so do its places.
    """
    if len(words) - prefix >= _MANY:
        return _places_of_many(words, prefix, values)
    last = len(words) - 1
    conditions, tables, columns = [], [], []
    for number, word in enumerate(words):
        is_prefix = prefix and number == last
        condition = _condition(word, is_prefix, values)
        conditions.append(condition.replace("token", f"p{number}.token"))
        same = " USING (document_id)" if number else ""
        tables.append(f"z_postings p{number}{same}")
        columns.append(f"p{number}.places AS places{number}")
    holding = (
        f"SELECT document_id, p0.length, {', '.join(columns)} FROM {' JOIN '.join(tables)}"
        f" WHERE {' AND '.join(conditions)}"
    )
    every = " UNION ALL ".join(
        f"SELECT document_id, length, unnest(places{number}) - {number} AS place,"
        f" {1 << number} AS bit FROM holding"
        for number in range(len(words))
    )
    return (
        f"WITH holding AS MATERIALIZED ({holding}) SELECT document_id, length, place"
        f" FROM ({every}) w GROUP BY document_id, length, place"
        f" HAVING bit_or(bit) = {(1 << len(words)) - 1}"
    )


def _places_of_many(words: tuple[str, ...], prefix: bool, values: list[object]) -> str:
    """
    As `_places`, for phrases of so many words that a plan of all joins takes longer than they do.

    The documents that hold the two rarest words come first, then all places of the words in these.
    The place of an occurrence is counted once for each word.
    """
    whole = [stored_token(word) for word in (words[:-1] if prefix else words)]
    values.append(whole)
    whole_words = (
        "WITH asked AS MATERIALIZED (SELECT token, position - 1 AS shift, (SELECT count(*) FROM"
        f" (SELECT 1 FROM z_postings p WHERE p.token = a.token LIMIT {_COUNTED}) c) AS rows"
        " FROM unnest(?::text[]) WITH ORDINALITY a (token, position)),"
        " rare AS MATERIALIZED (SELECT token FROM asked ORDER BY rows, shift LIMIT 2),"
        " holding AS MATERIALIZED (SELECT document_id FROM z_postings"
        " WHERE token = (SELECT min(token) FROM rare) INTERSECT SELECT document_id FROM z_postings"
        " WHERE token = (SELECT max(token) FROM rare)),"
        " places AS MATERIALIZED (SELECT document_id, length, place FROM (SELECT p.document_id,"
        " p.length, unnest(p.places) - a.shift::integer AS place FROM asked a CROSS JOIN holding"
        " JOIN z_postings p ON p.token = a.token AND p.document_id = holding.document_id) w"
        f" GROUP BY document_id, length, place HAVING count(*) = {len(whole)})"
        " SELECT document_id, length, place FROM places"
    )
    if not prefix:
        return whole_words
    condition = _condition(words[-1], True, values).replace("token", "p.token")
    return (
        f"{whole_words} WHERE EXISTS (SELECT 1 FROM z_postings p WHERE {condition}"
        " AND p.document_id = places.document_id"
        f" AND places.place + {len(whole)} = ANY(p.places))"
    )


# --- storing ----------------------------------------------------------------------------
# Tokens are those that SQLite's FTS5 makes of a text, with their places, so stems and accents are
# the same in both engines. Texts are split into words here, and FTS5 tells the tokens of each new
# word.

#: A place is the number of the field, shifted by this, plus the position in the field.
FIELD_BITS = 26
#: Characters of the longest token that is stored whole: an index of PostgreSQL has 2,704 bytes.
LONGEST = 400
#: Before and after these characters a token of FTS5 ends, whatever it is.
WORDS = re.compile(r"[^\x00-/:-@\[-`{-\x7f\s]+")
#: A word of these characters is one token, as it is; half of the words of Chinese texts occur once.
OWN_TOKEN = re.compile("[\u3041-\u3096\u30a1-\u30fa\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3]{1,400}")
#: Characters of words whose tokens are kept from batch to batch; they take ten times as many bytes.
_KEPT = 400_000
#: So many documents are split into words at once.
_AT_ONCE = 16
#: Word → its tokens, separated by blanks.
_kept_tokens: dict[str, str] = {}
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
    postings: list[str] = []
    rows: list[str] = []
    total = 0
    for document_id, fields in zip(ids, _tokens_by_field(documents), strict=True):
        places = _places_by_token(fields)
        length = sum(map(len, fields))
        total += length
        postings += _posting_lines(document_id, length, places)
        # In quotation marks, because an array reads null as no text.
        array = f'{{"{quoted}"}}' if (quoted := '","'.join(places)) else "{}"
        rows.append(f"{document_id}\t{length}\t{array}\n")
    postings.sort()  # the index takes in neighbours one after the other
    copy(connection, "z_postings (token, document_id, weight, length, fields, places)", postings)
    copy(connection, "z_document_tokens (document_id, length, tokens)", rows)
    connection.execute(
        "UPDATE z_full_text_totals SET documents = documents + %s, length = length + %s",
        [len(documents), total],
    )


def write_out(connection: Connection, ids: Sequence[int]) -> None:
    """Nothing to do, unlike in SQLite: the tokens of a document are deleted by its id."""


def _tokens_by_field(
    documents: Sequence[tuple[int, NewDocument]],
) -> Iterator[list[list[str]]]:
    """Of each document the tokens of each field. Those of all at once would take much memory."""
    for start in range(0, len(documents), _AT_ONCE):
        some = documents[start : start + _AT_ONCE]
        yield from stored_tokens([_fields(document) for _, document in some])
    with _lock:
        if sum(map(len, _kept_tokens)) > _KEPT:
            _kept_tokens.clear()


def stored_tokens(texts: Sequence[Sequence[str]]) -> list[list[list[str]]]:
    """
    The tokens of each text of each document, in order, as ``z_postings`` has them.

    FTS5 is asked for those of a word that was not met before.
    """
    words = [[WORDS.findall(text) for text in fields] for fields in texts]
    with _lock:
        distinct: set[str] = set()
        for each in words:
            distinct.update(*each)
        is_own = OWN_TOKEN.fullmatch
        new = [word for word in distinct if word not in _kept_tokens and not is_own(word)]
        _kept_tokens.update(zip(new, map(_stored, tokens_of(new)), strict=True))
        token_of = _kept_tokens.get
        return [
            [" ".join(map(token_of, field, field)).split() for field in fields] for fields in words
        ]


def _stored(tokens: str) -> str:
    if len(tokens) <= LONGEST:
        return tokens
    return " ".join(map(stored_token, tokens.split()))


def _places_by_token(fields: Sequence[Sequence[str]]) -> dict[str, list[int]]:
    """The places of each token of a document, ascending."""
    places: dict[str, list[int]] = {}
    for number, tokens_of_field in enumerate(fields):
        for place, token in enumerate(tokens_of_field, number << FIELD_BITS):
            if token in places:
                places[token].append(place)
            else:
                places[token] = [place]
    return places


def _posting_lines(document_id: int, length: int, places: Mapping[str, Sequence[int]]) -> list[str]:
    """
    Rows of ``z_postings`` in the format of COPY.

    Nothing is to be escaped: of ASCII, tokens have only letters and digits.
    """
    lines: list[str] = []
    # What stands before a place that is the only one of its token, as those of most are.
    before = [
        f"\t{document_id}\t{weight}\t{length}\t{1 << number}\t{{"
        for number, weight in enumerate(WEIGHTS)
    ]
    for token, of_token in places.items():
        if len(of_token) == 1:
            place = of_token[0]
            lines.append(f"{token}{before[place >> FIELD_BITS]}{place}}}\n")
            continue
        weight, bits = 0.0, 0
        for place in of_token:
            number = place >> FIELD_BITS
            weight += WEIGHTS[number]
            bits |= 1 << number
        written = ",".join(map(str, of_token))
        lines.append(f"{token}\t{document_id}\t{weight}\t{length}\t{bits}\t{{{written}}}\n")
    return lines


def field_bits(fields: Iterable[int]) -> int:
    """The numbers of fields as the column ``fields`` has them: the bit 2^number for each."""
    bits = 0
    for number in fields:
        bits |= 1 << number
    return bits


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
