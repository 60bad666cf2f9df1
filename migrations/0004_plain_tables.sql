-- Only ordinary tables, FTS5 and views: every tool that opens SQLite files can open, count and browse this one.

--: The vectors that a search scans for the nearest: one row per chunk and model, int8[dimension], 256 times the exact
--: value, clipped to -63..63. The exact vectors are in embeddings; these rows can be computed from them at any time.
--: During a change of the model there are rows of both models.
CREATE TABLE vectors (
    id            INTEGER PRIMARY KEY,
    chunk_id      INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    model_id      INTEGER NOT NULL REFERENCES models(id) ON DELETE CASCADE,
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    embedding     BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_chunk ON vectors (chunk_id, model_id);
-- For a shell, where foreign keys are off.
CREATE TRIGGER chunks_delete AFTER DELETE ON chunks BEGIN
    DELETE FROM vectors WHERE chunk_id = old.id;
END;

-- Datasette and sqlite-utils look for content="documents" in the text of this statement: then they offer to search
-- the table documents. FTS5 itself does not see the comment; it reads the view.
DROP TRIGGER searchable_insert;
DROP TRIGGER searchable_delete;
DROP TABLE documents_fts;
DROP VIEW v_searchable;

--: The text that the full-text index is built from. It is for FTS5, not for people.
CREATE VIEW documents_fts_text AS
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, substr(d.text, d.body_start + 1)) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, substr(d.text, 1, d.body_start)) || char(10) || s.words AS extra
FROM searchable s JOIN documents d ON d.id = s.document_id;

--: The full-text index, one row per document (rowid = documents.id). It stores no text but reads documents_fts_text,
--: so search for Chinese in the form that it has there: "数据 据库".
CREATE VIRTUAL TABLE documents_fts USING fts5 /* content="documents" */ (
    title, headings, body, path, extra,
    content = 'documents_fts_text', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
CREATE TRIGGER searchable_insert AFTER INSERT ON searchable BEGIN
    INSERT INTO documents_fts (rowid, title, headings, body, path, extra)
    SELECT id, title, headings, body, path, extra FROM documents_fts_text WHERE id = new.document_id;
END;
CREATE TRIGGER searchable_delete BEFORE DELETE ON searchable BEGIN
    INSERT INTO documents_fts (documents_fts, rowid, title, headings, body, path, extra)
    SELECT 'delete', id, title, headings, body, path, extra FROM documents_fts_text WHERE id = old.document_id;
END;
-- As in 0001.
INSERT INTO documents_fts (documents_fts, rank) VALUES ('hashsize', 8388608);
INSERT INTO documents_fts (documents_fts, rank) VALUES ('automerge', 16);
INSERT INTO documents_fts (documents_fts) VALUES ('rebuild');

DROP VIEW v_documents;
DROP VIEW v_hits;

--: Documents in a form for people; tags are JSON. The text is in the table documents.
CREATE VIEW v_documents AS
SELECT d.id,
       c.name AS collection,
       d.path,
       c.name || '/' || d.path AS file,
       c.path || '/' || d.path AS absolute_path,
       '#' || substr(d.hash, 1, 6) AS docid,
       d.title,
       coalesce(d.date, d.modified_at) AS date,
       d.modified_at,
       d.bytes,
       (SELECT json_group_array(tag) FROM tags t WHERE t.document_id = d.id) AS tags,
       (SELECT count(*) FROM chunks k WHERE k.document_id = d.id) AS chunks
FROM documents d JOIN collections c ON c.id = d.collection_id;

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
