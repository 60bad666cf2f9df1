"""
Keys for names: of titles and aliases, of files that are no documents, and of the targets of links.

SQLite can neither fold the case of all letters nor normalise Unicode, so the keys are made here,
by the functions of the running program. The next ``qmd index`` fills ``attachments``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.values.text import fold, link_key, name_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlite_utils import Database

ROWS_AT_ONCE = 2000

TABLES = [
    """\
--: Names of a document besides that of its file: kind is "title" or "alias". name_key is the name
--: in NFC, its letters folded to lower case. The table aliases has the aliases as they are written.
CREATE TABLE names (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    name_key    TEXT NOT NULL,
    PRIMARY KEY (document_id, kind, name_key)
) WITHOUT ROWID
""",
    "CREATE INDEX names_key ON names (name_key)",
    """\
--: The other files of a collection, such as images: a note may embed them or link to them, and they
--: are no documents themselves. Files in hidden and ignored folders are left out. name_key is as in
--: documents.
CREATE TABLE attachments (
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    path          TEXT NOT NULL,
    name_key      TEXT NOT NULL,
    PRIMARY KEY (collection_id, path)
) WITHOUT ROWID
""",
    "CREATE INDEX attachments_name ON attachments (name_key)",
    "CREATE INDEX links_target ON links (target_key)",
    # For a shell, where foreign keys are off.
    """\
CREATE TRIGGER documents_delete_names AFTER DELETE ON documents BEGIN
    DELETE FROM names WHERE document_id = old.id;
END
""",
    """\
CREATE TRIGGER collections_delete_attachments AFTER DELETE ON collections BEGIN
    DELETE FROM attachments WHERE collection_id = old.id;
END
""",
    "DROP VIEW IF EXISTS v_links",
    """\
--: Links, and the files of the same collection that have the name in the link: several rows if
--: there are several files, of which the link leads to one; target_file is NULL if there is none.
CREATE VIEW v_links AS
SELECT c.name || '/' || d.path AS file,
       l.line,
       l.kind,
       l.target,
       l.text,
       l.heading,
       l.block,
       c.name || '/' || coalesce(iif(l.target = '', d.path, t.path), a.path) AS target_file
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id
""",
]


def migrate(db: Database) -> None:
    for statement in TABLES:
        db.execute(statement)
    last = 0
    while True:
        rows = db.execute(
            "SELECT id, path, name_key, title FROM documents WHERE id > ? ORDER BY id LIMIT ?",
            [last, ROWS_AT_ONCE],
        ).fetchall()
        if not rows:
            break
        first, last = last, rows[-1][0]
        # A document whose key stays is not written: its row holds its text, too.
        keys = [(name_key(path), row_id, old) for row_id, path, old, _ in rows]
        db.conn.executemany(
            "UPDATE documents SET name_key = ? WHERE id = ?",
            [(new, row_id) for new, row_id, old in keys if new != old],
        )
        _add_names(db, "title", [(row_id, title) for row_id, _, _, title in rows])
        _set_link_keys(db, first, last)
    _add_names(db, "alias", db.execute("SELECT document_id, alias FROM aliases").fetchall())


def _add_names(db: Database, kind: str, names: Sequence[tuple[int, str]]) -> None:
    db.conn.executemany(
        "INSERT OR IGNORE INTO names (document_id, kind, name_key) VALUES (?, ?, ?)",
        [(document_id, kind, fold(name)) for document_id, name in names],
    )


def _set_link_keys(db: Database, first: int, last: int) -> None:
    """Set the keys of the links of documents with ``first < id <= last``."""
    rows = db.execute(
        "SELECT document_id, seq, kind, target, target_key FROM links"
        " WHERE document_id > ? AND document_id <= ?",
        [first, last],
    ).fetchall()
    keys = [
        (link_key(kind, target), document_id, seq, old)
        for document_id, seq, kind, target, old in rows
    ]
    db.conn.executemany(
        "UPDATE links SET target_key = ? WHERE document_id = ? AND seq = ?",
        [(new, document_id, seq) for new, document_id, seq, old in keys if new != old],
    )
