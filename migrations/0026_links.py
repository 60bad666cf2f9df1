"""What many links lead to is stored once, with the key of its file; ``links`` is a view."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

BEFORE = (
    "DROP VIEW IF EXISTS v_links",
    "DROP TRIGGER documents_delete",
    "DROP INDEX IF EXISTS links_target",
    "ALTER TABLE links RENAME TO links_before",
    """
CREATE TABLE z_link_targets (
    -- What links lead to, as it is written: the columns of the view links. Each is stored once, and
    -- as long as a link has it; hash is the CRC-32 of the target.
    id         INTEGER PRIMARY KEY,
    hash       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    target     TEXT NOT NULL,
    target_key TEXT
)""",
    """
CREATE TABLE z_links (
    -- What the view links shows.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    target_id   INTEGER NOT NULL,
    line        INTEGER NOT NULL,
    text        TEXT,
    heading     TEXT,
    block       TEXT,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID""",
)
AFTER = (
    "CREATE INDEX link_targets_hash ON z_link_targets (hash)",
    """
INSERT INTO z_links (document_id, seq, target_id, line, text, heading, block)
SELECT b.document_id, b.seq, t.id, b.line, b.text, b.heading, b.block
FROM links_before b
CROSS JOIN z_link_targets t ON t.hash = qmd_crc32(b.target) AND t.target = b.target
    AND t.kind = b.kind AND t.target_key IS b.target_key
ORDER BY b.document_id, b.seq""",
    "DROP TABLE links_before",
    "CREATE INDEX links_target ON z_links (target_id)",
    "CREATE INDEX link_targets_key ON z_link_targets (target_key) WHERE target_key IS NOT NULL",
    """
CREATE TRIGGER documents_delete AFTER DELETE ON documents BEGIN
    DELETE FROM chunks WHERE document_id = old.id;
    DELETE FROM tags WHERE document_id = old.id;
    DELETE FROM aliases WHERE document_id = old.id;
    DELETE FROM z_links WHERE document_id = old.id;
END""",
    """
CREATE TRIGGER links_delete AFTER DELETE ON z_links
WHEN NOT EXISTS (SELECT 1 FROM z_links WHERE target_id = old.target_id) BEGIN
    DELETE FROM z_link_targets WHERE id = old.target_id;
END""",
    """
CREATE VIEW links AS
-- Links as they are written; v_links has the files. target_key is the name of the target's file, as
-- documents.name_key; NULL for a web address, '' for a link inside the note. text is the alias of a
-- wikilink; the text of a Markdown link is in the document.
SELECT l.document_id, l.seq, t.kind, t.target, t.target_key, l.text, l.heading, l.block, l.line
FROM z_links l JOIN z_link_targets t ON t.id = l.target_id""",
    """
CREATE VIEW v_links AS
-- Links, and the files of the same collection that have the name in the link: several rows if there
-- are several files, of which the link leads to one; target_file is NULL if there is none.
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
LEFT JOIN documents t ON t.name_key = l.target_key AND +t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id""",
)


def migrate(db: Database) -> None:
    for statement in BEFORE:
        db.execute(statement)
    # Only while this runs; the file itself needs no function.
    db.conn.create_function("qmd_crc32", 1, lambda text: zlib.crc32(text.encode()))
    db.execute(
        "INSERT INTO z_link_targets (hash, kind, target, target_key)"
        " SELECT qmd_crc32(target), kind, target, target_key"
        " FROM (SELECT DISTINCT kind, target, target_key FROM links_before) ORDER BY target"
    )
    for statement in AFTER:
        db.execute(statement)
    db.conn.create_function("qmd_crc32", 1, None)
