"""
Translates match expressions into SQL over ``postings``.

Each phrase becomes a query of its documents, with the sum of the weights of its occurrences; the
operators become INTERSECT, UNION and EXCEPT of these.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from qmd.store.match import Expression, Phrase
from qmd.store.postgres.postings import FIELD_BITS, FIELDS, LONGEST, stored_token
from qmd.store.sqlite.common_words import WEIGHTS
from qmd.store.sqlite.tokenizer import tokens

_OPERATORS = {"all": " INTERSECT ", "any": " UNION ", "but not": " EXCEPT "}
#: Sorts behind every token that begins with what stands before it.
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
        leaves: For each phrase a query of ``document_id`` and ``weight``, with its values.
        scored: The numbers of the phrases that a matching document can hold.
        documents: A query of ``document_id`` over the leaves, which are named ``l0``, ``l1``, …
    """

    leaves: list[tuple[str, list[object]]] = field(default_factory=list)
    scored: list[int] = field(default_factory=list)
    documents: str = ""

    @property
    def with_clause(self) -> str:
        """The leaves as common table expressions; it takes `values`."""
        named = (
            f"l{number} AS MATERIALIZED ({sql})" for number, (sql, _) in enumerate(self.leaves)
        )
        return "WITH " + ", ".join(named)

    @property
    def values(self) -> list[object]:
        return [value for _, values in self.leaves for value in values]


def translate(expression: Expression) -> MatchQuery:
    query = MatchQuery()
    query.documents = _documents(expression, query, is_scored=True)
    return query


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
    """A query of the documents that hold a phrase, with ``document_id`` and ``weight``."""
    words = tokens(phrase.text)
    if not words:
        return "SELECT 0::bigint AS document_id, 0::double precision AS weight WHERE false", []
    values: list[object] = []
    if len(words) == 1 and not phrase.fields:
        condition = _condition(words[0], phrase.prefix, values)
        if not phrase.prefix:
            return f"SELECT document_id, weight FROM postings WHERE {condition}", values
        return (
            "SELECT document_id, sum(weight) AS weight FROM postings"
            f" WHERE {condition} GROUP BY document_id",
            values,
        )
    sql = (
        "SELECT document_id, sum((%s::double precision[])[(place >> %s) + 1]) AS weight"
        f" FROM ({_places(words, phrase.prefix, values)}) p"
    )
    if phrase.fields:
        sql += " WHERE place >> %s = ANY(%s::integer[])"
        values += [FIELD_BITS, sorted(FIELDS.index(name) for name in phrase.fields)]
    return f"{sql} GROUP BY document_id", [list(WEIGHTS), FIELD_BITS, *values]


def _condition(word: str, prefix: bool, values: list[object]) -> str:
    if not prefix:
        values.append(stored_token(word))
        return "token = %s"
    beginning = word[:LONGEST]
    values += [beginning, beginning + _LAST]
    return "token >= %s AND token < %s"


def _places(words: tuple[str, ...], prefix: bool, values: list[object]) -> str:
    """
    A query of ``document_id`` and ``place`` of the first word of each occurrence.

    The documents that hold all words come first, by the index; then their places are joined. Sets
    are joined, because a function that compares the places of one document takes 30 us a call.
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
        tables.append(f"postings p{number}{same}")
        columns.append(f"p{number}.places AS places{number}")
    holding = (
        f"SELECT document_id, {', '.join(columns)} FROM {' JOIN '.join(tables)}"
        f" WHERE {' AND '.join(conditions)}"
    )
    joined = " JOIN ".join(
        f"(SELECT document_id, unnest(places{number}) - {number} AS place FROM holding) w{number}"
        + (" USING (document_id, place)" if number else "")
        for number in range(len(words))
    )
    distinct = "DISTINCT " if prefix else ""  # several tokens may begin with the last word
    places = f"SELECT {distinct}document_id, place FROM {joined}"
    return f"WITH holding AS MATERIALIZED ({holding}) {places}"


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
        f" (SELECT 1 FROM postings p WHERE p.token = a.token LIMIT {_COUNTED}) c) AS rows"
        " FROM unnest(%s::text[]) WITH ORDINALITY a (token, position)),"
        " rare AS MATERIALIZED (SELECT token FROM asked ORDER BY rows, shift LIMIT 2),"
        " holding AS MATERIALIZED (SELECT document_id FROM postings"
        " WHERE token = (SELECT min(token) FROM rare) INTERSECT SELECT document_id FROM postings"
        " WHERE token = (SELECT max(token) FROM rare)),"
        " places AS MATERIALIZED (SELECT document_id, place FROM (SELECT p.document_id,"
        " unnest(p.places) - a.shift::integer AS place FROM asked a CROSS JOIN holding"
        " JOIN postings p ON p.token = a.token AND p.document_id = holding.document_id) w"
        f" GROUP BY document_id, place HAVING count(*) = {len(whole)})"
        " SELECT document_id, place FROM places"
    )
    if not prefix:
        return whole_words
    condition = _condition(words[-1], True, values).replace("token", "p.token")
    return (
        f"{whole_words} WHERE EXISTS (SELECT 1 FROM postings p WHERE {condition}"
        " AND p.document_id = places.document_id"
        f" AND places.place + {len(whole)} = ANY(p.places))"
    )
