"""
Documents get the column ``description``, filled from the frontmatter that is stored.

The parser and the segmenter of the running program are used: where a later version changes them,
the next ``qmd index`` parses all documents again.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from qmd.parse.document import find_description
from qmd.parse.segment import segment
from qmd.values.text import replace_halves

if TYPE_CHECKING:
    from sqlite_utils import Database

ROWS_AT_ONCE = 2000


def migrate(db: Database) -> None:
    db.execute("ALTER TABLE documents ADD COLUMN description TEXT NOT NULL DEFAULT ''")
    db.execute("ALTER TABLE searchable ADD COLUMN description TEXT")
    last = 0
    while True:
        rows = db.execute(
            "SELECT id, properties FROM documents WHERE id > ? AND properties <> '{}'"
            " ORDER BY id LIMIT ?",
            [last, ROWS_AT_ONCE],
        ).fetchall()
        if not rows:
            break
        last = rows[-1][0]
        described = [(row_id, find_description(json.loads(stored))) for row_id, stored in rows]
        # A shell may have stored half of a surrogate pair as an escape.
        _fill(db, [(row_id, replace_halves(description)) for row_id, description in described])
    # A program of 1.1.0 that still runs writes documents of parser version 2 without a description.
    # So the version of those that have theirs is raised, and the next index parses the others.
    for table in ("documents", "skipped_files"):
        db.execute(
            f"UPDATE {table} SET parser_version = parser_version + 1000"
            " WHERE parser_version BETWEEN 2000 AND 2999"
        )
    # The next index parses these again, too: photos, whose stored properties lack the description,
    # and documents with a date such as 202503011015, which was read as milliseconds, a day of 1976.
    db.execute(
        "UPDATE documents SET parser_version = 0"
        " WHERE properties LIKE '{\"kind\": \"%' OR date LIKE '1976-%T%'"
    )


def _fill(db: Database, described: list[tuple[int, str]]) -> None:
    filled = [(description, row_id) for row_id, description in described if description]
    db.conn.executemany("UPDATE documents SET description = ? WHERE id = ?", filled)
    segmented = [(segment(description), row_id) for description, row_id in filled]
    db.conn.executemany(
        "UPDATE searchable SET description = ? WHERE document_id = ?",
        [new for new, old in zip(segmented, filled, strict=True) if new != old],
    )
