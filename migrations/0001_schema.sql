-- The first schema. Lines starting with "--:" are the descriptions that docs/schema.md prints.

--: Settings of the file itself: versions of the segmenter and the parser, times of the last runs.
CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;

--: A directory that is indexed, and which of its files are documents.
CREATE TABLE collections (
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    path       TEXT NOT NULL,
    pattern    TEXT NOT NULL DEFAULT '**/*.md',
    ignore     TEXT NOT NULL DEFAULT '[]',
    excluded   TEXT NOT NULL DEFAULT '{}',
    created_at TEXT NOT NULL,
    updated_at TEXT,
    indexed_at TEXT
);

--: What a person says about everything below a path prefix; no collection means all of them.
CREATE TABLE contexts (
    id            INTEGER PRIMARY KEY,
    collection_id INTEGER REFERENCES collections(id) ON DELETE CASCADE,
    prefix        TEXT NOT NULL DEFAULT '',
    text          TEXT NOT NULL,
    created_at    TEXT NOT NULL
);
CREATE UNIQUE INDEX contexts_place ON contexts (ifnull(collection_id, 0), prefix);

--: One file: its decoded text, and what identifies its state on the disk. name_key is the file's name in lower
--: case without its suffix, as links.target_key.
CREATE TABLE documents (
    id             INTEGER PRIMARY KEY,
    collection_id  INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    path           TEXT NOT NULL,
    name_key       TEXT NOT NULL,
    title          TEXT NOT NULL,
    hash           TEXT NOT NULL,
    date           TEXT,
    modified_at    TEXT NOT NULL,
    bytes          INTEGER NOT NULL,
    mtime_ns       INTEGER NOT NULL,
    inode          INTEGER NOT NULL,
    device         INTEGER NOT NULL,
    encoding       TEXT NOT NULL,
    parser_version INTEGER NOT NULL,
    body_start     INTEGER NOT NULL,
    properties     TEXT NOT NULL DEFAULT '{}',
    warnings       TEXT NOT NULL DEFAULT '[]',
    indexed_at     TEXT NOT NULL,
    text           TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_path ON documents (collection_id, path);
CREATE INDEX documents_hash ON documents (hash);
CREATE INDEX documents_name ON documents (name_key);

--: Tags of a document, from frontmatter and text, without the "#".
CREATE TABLE tags (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    tag         TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (document_id, tag)
) WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);

--: Other names of a document, from frontmatter.
CREATE TABLE aliases (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    alias       TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (document_id, alias)
) WITHOUT ROWID;

--: Links as written; target_key is the target's file name in lower case without its suffix, NULL for a web address.
--: text is the alias of a wikilink; that of a Markdown link stands in the document.
CREATE TABLE links (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    target      TEXT NOT NULL,
    target_key  TEXT,
    text        TEXT,
    heading     TEXT,
    block       TEXT,
    line        INTEGER NOT NULL,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID;

--: A piece of a document: substr(text, start_char + 1, end_char - start_char). Ends lie behind the piece, as in
--: Python; lines count from 1. Ids are never reused.
CREATE TABLE chunks (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id  INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq          INTEGER NOT NULL,
    start_char   INTEGER NOT NULL,
    end_char     INTEGER NOT NULL,
    start_byte   INTEGER NOT NULL,
    end_byte     INTEGER NOT NULL,
    start_line   INTEGER NOT NULL,
    end_line     INTEGER NOT NULL,
    heading_path TEXT NOT NULL,
    hash         BLOB NOT NULL,
    model_id     INTEGER
);
CREATE INDEX chunks_document ON chunks (document_id, seq);
CREATE INDEX chunks_waiting ON chunks (document_id) WHERE model_id IS NULL;

--: What full text holds of a document, where that differs from the document itself: NULL is the title, the body,
--: the path or the frontmatter as it stands there. Runs of Chinese, Japanese and Korean characters are written as
--: overlapping pairs: "数据库" as "数据 据库 库". words are the parts of CamelCase names.
CREATE TABLE searchable (
    document_id INTEGER PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
    title       TEXT,
    headings    TEXT NOT NULL,
    body        TEXT,
    path        TEXT,
    front       TEXT,
    words       TEXT NOT NULL
);

--: The text that is indexed, whole.
CREATE VIEW v_searchable AS
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, substr(d.text, d.body_start + 1)) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, substr(d.text, 1, d.body_start)) || char(10) || s.words AS extra
FROM searchable s JOIN documents d ON d.id = s.document_id;

--: Full text, one row a document (rowid = documents.id). It keeps no text of its own but reads v_searchable, so
--: search for Chinese as it is written there: "数据 据库".
CREATE VIRTUAL TABLE documents_fts USING fts5 (
    title, headings, body, path, extra,
    content = 'v_searchable', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
-- What goes into the index and what is taken out of it are read from the same view, so they are the same.
CREATE TRIGGER searchable_insert AFTER INSERT ON searchable BEGIN
    INSERT INTO documents_fts (rowid, title, headings, body, path, extra)
    SELECT id, title, headings, body, path, extra FROM v_searchable WHERE id = new.document_id;
END;
CREATE TRIGGER searchable_delete BEFORE DELETE ON searchable BEGIN
    INSERT INTO documents_fts (documents_fts, rowid, title, headings, body, path, extra)
    SELECT 'delete', id, title, headings, body, path, extra FROM v_searchable WHERE id = old.document_id;
END;
-- A text changed by hand leaves the full text until the next 'qmd index' reads its file again.
CREATE TRIGGER documents_update BEFORE UPDATE OF title, text, body_start, path ON documents BEGIN
    DELETE FROM searchable WHERE document_id = old.id;
END;
-- New terms gather in memory up to this size: one batch of the indexer is written as one segment,
-- not as several that must be merged again (a third less time in SQLite for 10,000 documents).
INSERT INTO documents_fts (documents_fts, rank) VALUES ('hashsize', 8388608);
-- Merge sixteen segments at once instead of four: a fifth less time for a first index, and searches as fast.
INSERT INTO documents_fts (documents_fts, rank) VALUES ('automerge', 16);

--: An embedding model; vectors of different models never mix.
CREATE TABLE models (
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    dimension   INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 0,
    created_at  TEXT NOT NULL
);

--: Vectors by the hash of the embedded text (float16, unit norm): what was embedded once is never embedded again.
CREATE TABLE embeddings (
    id       INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL REFERENCES models(id) ON DELETE CASCADE,
    hash     BLOB NOT NULL,
    vector   BLOB NOT NULL
);
CREATE UNIQUE INDEX embeddings_hash ON embeddings (hash, model_id);

--: Files that match a collection's mask and still are no documents, with the reason.
CREATE TABLE skipped_files (
    collection_id  INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    path           TEXT NOT NULL,
    reason         TEXT NOT NULL,
    detail         TEXT NOT NULL,
    bytes          INTEGER,
    mtime_ns       INTEGER,
    inode          INTEGER,
    device         INTEGER,
    parser_version INTEGER,
    PRIMARY KEY (collection_id, path)
) WITHOUT ROWID;

--: Earlier contents of files that a tool replaced.
CREATE TABLE revisions (
    id         INTEGER PRIMARY KEY,
    path       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    content    BLOB NOT NULL,
    tool       TEXT NOT NULL,
    created_at TEXT NOT NULL
);
CREATE INDEX revisions_path ON revisions (path, id);

-- A row deleted by hand leaves nothing behind, also in a shell, where foreign keys are off: the
-- next document may get the same id.
CREATE TRIGGER documents_leave BEFORE DELETE ON documents BEGIN
    DELETE FROM searchable WHERE document_id = old.id;
END;
CREATE TRIGGER documents_delete AFTER DELETE ON documents BEGIN
    DELETE FROM chunks WHERE document_id = old.id;
    DELETE FROM tags WHERE document_id = old.id;
    DELETE FROM aliases WHERE document_id = old.id;
    DELETE FROM links WHERE document_id = old.id;
END;
CREATE TRIGGER collections_delete AFTER DELETE ON collections BEGIN
    DELETE FROM documents WHERE collection_id = old.id;
    DELETE FROM contexts WHERE collection_id = old.id;
    DELETE FROM skipped_files WHERE collection_id = old.id;
END;

--: Documents as people think of them.
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
       (SELECT group_concat(tag, ', ') FROM tags t WHERE t.document_id = d.id) AS tags,
       (SELECT count(*) FROM chunks k WHERE k.document_id = d.id) AS chunks,
       d.text
FROM documents d JOIN collections c ON c.id = d.collection_id;

--: Full-text search by hand: SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'word' ORDER BY rank.
CREATE VIEW v_hits AS
SELECT documents_fts AS match,
       rank,
       c.name || '/' || d.path AS file,
       d.title,
       d.modified_at,
       d.text
FROM documents_fts
JOIN documents d ON d.id = documents_fts.rowid
JOIN collections c ON c.id = d.collection_id;

--: Chunks with their text.
CREATE VIEW v_chunks AS
SELECT k.id,
       c.name || '/' || d.path AS file,
       k.seq,
       k.start_line,
       k.end_line - 1 AS last_line,
       k.heading_path,
       k.model_id IS NOT NULL AS embedded,
       substr(d.text, k.start_char + 1, k.end_char - k.start_char) AS text
FROM chunks k JOIN documents d ON d.id = k.document_id JOIN collections c ON c.id = d.collection_id;

--: Links and the documents of the same collection they may lead to; target_file is NULL where there is none.
CREATE VIEW v_links AS
SELECT c.name || '/' || d.path AS file,
       l.line,
       l.kind,
       l.target,
       l.text,
       l.heading,
       l.block,
       c.name || '/' || t.path AS target_file
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND t.collection_id = d.collection_id;

--: What was left out, and why.
CREATE VIEW v_skipped AS
SELECT c.name || '/' || s.path AS file, s.reason, s.detail, s.bytes
FROM skipped_files s JOIN collections c ON c.id = s.collection_id;
