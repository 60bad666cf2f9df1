-- The description of a document is a field of full text of its own.

-- IF EXISTS: people may have dropped or renamed a view or a trigger.
DROP TRIGGER IF EXISTS searchable_insert;
DROP TRIGGER IF EXISTS searchable_delete;
DROP TRIGGER IF EXISTS documents_update;
DROP VIEW IF EXISTS v_hits;
DROP TABLE documents_fts;
DROP VIEW IF EXISTS documents_fts_text;

--: The text that the full-text index is built from. It is for FTS5, not for people.
CREATE VIEW documents_fts_text AS
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, substr(d.text, d.body_start + 1)) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, substr(d.text, 1, d.body_start)) || char(10) || s.words AS extra,
       coalesce(s.description, d.description) AS description
FROM searchable s JOIN documents d ON d.id = s.document_id;

--: The full-text index, one row per document (rowid = documents.id). It stores no text but reads documents_fts_text,
--: so search for Chinese in the form that it has there: "数据 据库".
CREATE VIRTUAL TABLE documents_fts USING fts5 /* content="documents" */ (
    title, headings, body, path, extra, description,
    content = 'documents_fts_text', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER searchable_insert AFTER INSERT ON searchable BEGIN
    INSERT INTO documents_fts (rowid, title, headings, body, path, extra, description)
    SELECT id, title, headings, body, path, extra, description
    FROM documents_fts_text WHERE id = new.document_id;
END;
CREATE TRIGGER searchable_delete BEFORE DELETE ON searchable BEGIN
    INSERT INTO documents_fts (documents_fts, rowid, title, headings, body, path, extra, description)
    SELECT 'delete', id, title, headings, body, path, extra, description
    FROM documents_fts_text WHERE id = old.document_id;
END;
-- As in 0001, with the description.
CREATE TRIGGER documents_update BEFORE UPDATE OF title, description, text, body_start, path ON documents BEGIN
    DELETE FROM searchable WHERE document_id = old.id;
END;
INSERT INTO documents_fts (documents_fts, rank) VALUES ('hashsize', 8388608);
INSERT INTO documents_fts (documents_fts, rank) VALUES ('automerge', 16);
INSERT INTO documents_fts (documents_fts) VALUES ('rebuild');
-- One segment instead of several: a search looks its words up in every one.
INSERT INTO documents_fts (documents_fts) VALUES ('optimize');

-- As in 0004; it reads documents_fts.
--: Full-text search by hand: SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'word' ORDER BY rank.
--: beginning is the first 200 characters below the frontmatter.
CREATE VIEW v_hits AS
SELECT documents_fts AS match,
       rank,
       c.name || '/' || d.path AS file,
       d.title,
       d.modified_at,
       substr(d.text, d.body_start + 1, 200) AS beginning
FROM documents_fts
JOIN documents d ON d.id = documents_fts.rowid
JOIN collections c ON c.id = d.collection_id;
