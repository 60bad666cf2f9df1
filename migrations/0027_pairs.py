"""
Full text of Chinese, Japanese and Korean documents keeps no second copy of their text.

The view that FTS5 reads makes the overlapping pairs of the text itself. The program hands new
documents to FTS5 as it has segmented them, so the view is only read when one is taken out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite_utils import Database

#: The characters of `qmd.parse.segment` that form pairs, as GLOB has a class.
CJK = (
    "[\u4e00-\u9fff\u3041-\u3096\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\uac00-\ud7a3"
    "\u3400-\u4dbf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3105-\u312f"
    "\u31a0-\u31bf\u31f0-\u31ff\ua000-\ua48c\uf900-\ufaff"
    "\U00020000-\U0002ebef\U0002ebf0-\U0002ee5d\U00030000-\U000323af]"
)
#: Characters that are cut off at once: SQLite counts them from the beginning of a text.
AT_ONCE = 512

VIEW = """
CREATE VIEW z_documents_fts_text AS
-- The text that the full-text index is built from. It is for FTS5, not for people.
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, {body}) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, {front}) || char(10) || s.words AS extra,
       coalesce(s.description, d.description) AS description
FROM z_searchable s JOIN documents d ON d.id = s.document_id"""
#: The text of a document with the replacements of its row, and with pairs if the row says so.
SEGMENTED = """iif(s.replacements IS NULL AND s.has_pairs IS NULL, {text}, (
           WITH RECURSIVE replaced (position, text) AS (
               SELECT 0, {text}
               UNION ALL
               SELECT position + 2,
                      replace(text, json_extract(s.replacements, '$[' || position || ']'),
                              json_extract(s.replacements, '$[' || (position + 1) || ']'))
               FROM replaced WHERE position < json_array_length(s.replacements)
           ), whole (text) AS MATERIALIZED (
               SELECT text FROM replaced ORDER BY position DESC LIMIT 1
           ), pieces (start, piece) AS (
               SELECT 1, substr(text, 1, {more}) FROM whole
               UNION ALL
               SELECT start + {some}, substr((SELECT text FROM whole), start + {some}, {more})
               FROM pieces WHERE length(piece) = {more}
           ), places (place) AS MATERIALIZED (
               SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < {some}
           )
           SELECT iif(s.has_pairs IS NULL, (SELECT text FROM whole), coalesce(group_concat(
               CASE WHEN substr(piece, place, 2) GLOB '{cjk}{cjk}'
                    THEN ' ' || substr(piece, place, 2) || ' '
                    WHEN substr(piece, place, 1) GLOB '{cjk}'
                    THEN ' ' || substr(piece, place, 1) || ' '
                    ELSE substr(piece, place, 1) END, ''), ''))
           FROM pieces CROSS JOIN places
               ON s.has_pairs IS NOT NULL AND place <= length(piece)
       ))"""


def migrate(db: Database) -> None:
    db.execute(
        "ALTER TABLE z_searchable ADD COLUMN has_pairs"
        " /* 1 if the pairs are made of the document's own body and frontmatter, after the"
        " replacements. */ INTEGER"
    )
    db.execute("DROP TRIGGER searchable_insert")
    db.execute("DROP VIEW z_documents_fts_text")
    body, front = (
        SEGMENTED.format(text=text, cjk=CJK, some=AT_ONCE, more=AT_ONCE + 1)
        for text in ("substr(d.text, d.body_start + 1)", "substr(d.text, 1, d.body_start)")
    )
    db.execute(VIEW.format(body=body, front=front))
