-- generated: docs/generate_schema.py
CREATE TABLE "_sqlite_migrations" (
   "id" INTEGER PRIMARY KEY,
   "migration_set" TEXT,
   "name" TEXT,
   "applied_at" TEXT
);
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0001_schema', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0002_model_cache', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0003_pending_writes', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0004_plain_tables', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0005_vectors_kept', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0006_token_states', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0007_description', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0008_description_field', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0009_names', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0010_properties', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0011_changes', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0012_modified', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0013_vaults', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0014_chats', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0015_included', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0016_owners', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0017_common_words', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0018_access', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0019_common_beginnings', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0020_next_hash', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0021_for_people', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0022_change_numbers', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0023_replacements', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0024_stray_vectors', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0025_properties', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0026_links', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0027_pairs', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0028_anchors', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0029_pictures', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0030_tasks', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('qmd', '0031_observations', strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'));
CREATE UNIQUE INDEX "idx__sqlite_migrations_migration_set_name"
    ON "_sqlite_migrations" ("migration_set", "name");
CREATE TABLE "z_meta" (
    -- Facts about the file: versions of segmenter and parser, times of the last runs.
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE collections (
    -- Indexed directories, with the rules that say which files are documents. excluded counts the
    -- files that the rules leave out. included is 1 if searches that name no collection look in it.
    -- owner is whose folder it is, if another machine pushes it, else ''. is_vault is 1 if the
    -- folder has a folder .obsidian.
    id         INTEGER PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    path       TEXT NOT NULL,
    pattern    TEXT NOT NULL DEFAULT '**/*.md',
    ignore     TEXT NOT NULL DEFAULT '[]',
    excluded   TEXT NOT NULL DEFAULT '{}',
    created_at TEXT NOT NULL,
    updated_at TEXT,
    indexed_at TEXT
, is_vault INTEGER, included INTEGER NOT NULL DEFAULT 1, owner TEXT NOT NULL DEFAULT '');
CREATE TABLE contexts (
    -- What the user says about everything below a path prefix; if collection_id is NULL, about all
    -- collections. v_contexts has the names.
    id            INTEGER PRIMARY KEY,
    collection_id INTEGER REFERENCES collections(id) ON DELETE CASCADE,
    prefix        TEXT NOT NULL DEFAULT '',
    text          TEXT NOT NULL,
    created_at    TEXT NOT NULL
);
CREATE UNIQUE INDEX contexts_place ON contexts (ifnull(collection_id, 0), prefix);
CREATE TABLE documents (
    -- One row per file: its text, and the state of the file on the disk; v_documents has the names
    -- of the collections. tags is JSON, as v_documents has it. name_key is the file name in NFC,
    -- its letters folded to lower case, without .md or .markdown. hash is the SHA-256 of the text.
    -- body_start is where the text begins behind the frontmatter, in characters.
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
, description TEXT NOT NULL DEFAULT '', tags TEXT NOT NULL DEFAULT '[]');
CREATE UNIQUE INDEX documents_path ON documents (collection_id, path);
CREATE INDEX documents_hash ON documents (hash);
CREATE INDEX documents_name ON documents (name_key);
CREATE TABLE tags (
    -- Tags of a document, from frontmatter and text, without the "#".
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    tag         TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (document_id, tag)
) WITHOUT ROWID;
CREATE INDEX tags_tag ON tags (tag);
CREATE TABLE aliases (
    -- Other names of a document, from frontmatter.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    alias       TEXT NOT NULL COLLATE NOCASE,
    PRIMARY KEY (document_id, alias)
) WITHOUT ROWID;
CREATE TABLE chunks (
    -- A piece of a document: substr(text, start_char + 1, end_char - start_char); v_chunks has the
    -- text. Ends are exclusive, as in Python; lines count from 1. Ids are never reused. model_id is
    -- the model whose vector it has, NULL while it waits for one. hash is the hash of the embedded
    -- text: title, headings and text of the chunk. If only the title or the headings are others
    -- since, next_hash is that of the text to embed, and the old vector answers until then.
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
, next_model_id INTEGER, next_hash BLOB);
CREATE INDEX chunks_document ON chunks (document_id, seq);
CREATE INDEX chunks_waiting ON chunks (document_id) WHERE model_id IS NULL;
CREATE TABLE "z_searchable" (
    -- The text that the full-text index uses for a document, if that differs from the document's
    -- own: NULL means that the title, body, path, frontmatter or description is used unchanged.
    -- Runs of Chinese, Japanese and Korean characters are stored as overlapping pairs: "数据库" as "数据
    -- 据库 库". title also holds the file name and the aliases, if they have words that the title
    -- lacks. words holds the parts of CamelCase names.
    document_id INTEGER PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
    title       TEXT,
    headings    TEXT NOT NULL,
    body        TEXT,
    path        TEXT,
    front       TEXT,
    words       TEXT NOT NULL
, description TEXT, replacements /* JSON: what makes the body and the frontmatter of the document's own. Strings, each before the one in its place. */ TEXT, has_pairs /* 1 if the pairs are made of the document's own body and frontmatter, after the replacements. */ INTEGER);
CREATE TABLE "z_models" (
    -- An embedding model; vectors of different models never mix. The one with active = 1 answers,
    -- and the one with next = 1 takes over when it has all of its vectors.
    id          INTEGER PRIMARY KEY,
    name        TEXT NOT NULL,
    fingerprint TEXT NOT NULL UNIQUE,
    dimension   INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 0,
    created_at  TEXT NOT NULL
, next INTEGER NOT NULL DEFAULT 0, query_prefix TEXT NOT NULL DEFAULT '', passage_prefix TEXT NOT NULL DEFAULT '');
CREATE TABLE "z_embeddings" (
    -- Exact vectors by the hash of the embedded text (float16, unit norm): no text is embedded
    -- twice.
    id       INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL REFERENCES "z_models"(id) ON DELETE CASCADE,
    hash     BLOB NOT NULL,
    vector   BLOB NOT NULL
);
CREATE UNIQUE INDEX embeddings_hash ON "z_embeddings" (hash, model_id);
CREATE TABLE skipped_files (
    -- Files that match a collection's mask but are no documents, with the reason; v_skipped has the
    -- names.
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
CREATE TABLE revisions (
    -- What a tool did to a file, and the file before that; v_history has it in words. content is
    -- the earlier file; kind is 'content', or 'content, zlib' (compressed), or 'metadata' (of a
    -- photo), or 'none' (there was no file). hash is the SHA-256 of the earlier file, hash_after
    -- that of the new one. change_id is the row of changes.
    id         INTEGER PRIMARY KEY,
    path       TEXT NOT NULL,
    hash       TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    content    BLOB NOT NULL,
    tool       TEXT NOT NULL,
    created_at TEXT NOT NULL
, kind TEXT NOT NULL DEFAULT 'content', change_id INTEGER, action TEXT NOT NULL DEFAULT 'write', hash_after TEXT, moved_from TEXT);
CREATE INDEX revisions_path ON revisions (path, id);
CREATE TABLE "z_model_cache" (
    -- Answers of models: expansions (JSON), scores of passages (a number as text), vectors of
    -- questions (float32). hash is the hash of the input. The oldest rows are removed first; you
    -- may delete all of them at any time.
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    model      TEXT NOT NULL,
    hash       BLOB NOT NULL,
    value      BLOB NOT NULL,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX model_cache_hash ON "z_model_cache" (hash, kind, model);
CREATE INDEX model_cache_age ON "z_model_cache" (kind, id);
CREATE TABLE "z_pending_writes" (
    -- Temporary files of writes in progress. If a process is killed, the next one that opens the
    -- database for writing, or writes in the same directory, removes its files.
    temporary  TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE "z_vectors" (
    -- The vectors that a search scans for the nearest: one row per chunk and model,
    -- int8[dimension], 256 times the exact value, clipped to -63..63. The exact vectors are in
    -- z_embeddings; these rows can be computed from them at any time. During a change of the model
    -- there are rows of both models.
    id            INTEGER PRIMARY KEY,
    chunk_id      INTEGER NOT NULL REFERENCES chunks(id) ON DELETE CASCADE,
    model_id      INTEGER NOT NULL REFERENCES "z_models"(id) ON DELETE CASCADE,
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    embedding     BLOB NOT NULL
);
CREATE UNIQUE INDEX vectors_chunk ON "z_vectors" (chunk_id, model_id);
CREATE TABLE "z_token_projections" (
    -- How the token states of a model are made into codes, one row per model that has some. recipe
    -- names the projection and the form of the codes; code_bytes is the size of the code of one
    -- token; projection is empty for the default model, whose projection is part of the program.
    id         INTEGER PRIMARY KEY,
    model_id   INTEGER NOT NULL UNIQUE REFERENCES "z_models"(id) ON DELETE CASCADE,
    recipe     TEXT NOT NULL,
    code_bytes INTEGER NOT NULL,
    projection BLOB NOT NULL
);
CREATE TABLE "z_token_states" (
    -- The token states of an embedded text: codes of code_bytes each, one for each distinct token
    -- that is kept. They come and go with the vector in z_embeddings.
    id           INTEGER PRIMARY KEY,
    embedding_id INTEGER NOT NULL REFERENCES "z_embeddings"(id) ON DELETE CASCADE,
    codes        BLOB NOT NULL
);
CREATE UNIQUE INDEX token_states_embedding ON "z_token_states" (embedding_id);
CREATE VIRTUAL TABLE z_documents_fts USING fts5 /* content="documents". The full-text index, one row per document (rowid = documents.id), for v_hits. It stores no text but reads z_documents_fts_text, where a run of Chinese, Japanese or Korean characters is written as overlapping pairs: search for "数据 据库" to find 数据库. */ (
    title, headings, body, path, extra, description,
    content = 'z_documents_fts_text', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2'
);
INSERT INTO z_documents_fts (z_documents_fts, rank) VALUES ('automerge', 16);
INSERT INTO z_documents_fts (z_documents_fts, rank) VALUES ('hashsize', 8388608);
CREATE TABLE "z_names" (
    -- Names of a document besides that of its file: kind is "title" or "alias". name_key is the
    -- name in NFC, its letters folded to lower case. The table aliases has the aliases as they are
    -- written.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    kind        TEXT NOT NULL,
    name_key    TEXT NOT NULL,
    PRIMARY KEY (document_id, kind, name_key)
) WITHOUT ROWID
;
CREATE INDEX names_key ON "z_names" (name_key);
CREATE TABLE attachments (
    -- The other files of a collection, such as images: a note may embed them or link to them, and
    -- they are no documents themselves. Files in hidden and ignored folders are left out. name_key
    -- is as in documents.
    collection_id INTEGER NOT NULL REFERENCES collections(id) ON DELETE CASCADE,
    path          TEXT NOT NULL,
    name_key      TEXT NOT NULL,
    PRIMARY KEY (collection_id, path)
) WITHOUT ROWID
;
CREATE INDEX attachments_name ON attachments (name_key);
CREATE TABLE changes (
    -- One call of a tool that changed files; its files are the revisions with its id. session names
    -- the MCP session, the REST client or the process of the call; number_in_session counts its
    -- changes from 1, also those that are not kept any more. files is how many files were changed:
    -- with fewer revisions left, the change cannot be undone. undone_by is the change that undid
    -- this one.
    id                INTEGER PRIMARY KEY,
    tool              TEXT NOT NULL,
    session           TEXT NOT NULL,
    number_in_session INTEGER NOT NULL,
    created_at        TEXT NOT NULL,
    files             INTEGER NOT NULL DEFAULT 0,
    undone_by         INTEGER
, position /* The order of changes; the id of a new one is random. */ INTEGER NOT NULL DEFAULT 0);
CREATE INDEX changes_session ON changes (session, number_in_session);
CREATE INDEX revisions_change ON revisions (change_id);
CREATE INDEX revisions_moved_from ON revisions (moved_from) WHERE moved_from IS NOT NULL;
CREATE INDEX documents_modified ON documents (collection_id, modified_at);
CREATE TABLE chats (
    -- A conversation. id is random, and part of its address. mode is read or write. summary is what
    -- the model wrote of the first summarized turns, which do not fit into its window any more; ''
    -- if all fit. owner is the id of the token whose client began it; '' for the administrator.
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    mode       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    summary    TEXT NOT NULL DEFAULT '',
    summarized INTEGER NOT NULL DEFAULT 0
, owner TEXT NOT NULL DEFAULT '');
CREATE INDEX chats_updated ON chats (updated_at DESC);
CREATE TABLE chat_turns (
    -- A question with all that came of it; number counts from 1 within the conversation. status is
    -- running, done, stopped, failed, limit or interrupted. process is the one that runs the turn:
    -- its id, a dot, and when it started. events is what happened, as JSON, to be shown again;
    -- messages is what was said to the model and by it, as JSON. bytes is the length of both.
    id         INTEGER PRIMARY KEY,
    chat_id    TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    question   TEXT NOT NULL,
    answer     TEXT NOT NULL,
    status     TEXT NOT NULL,
    started_at TEXT NOT NULL,
    seconds    REAL NOT NULL,
    process    TEXT NOT NULL,
    events     TEXT NOT NULL,
    messages   TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    UNIQUE (chat_id, number)
);
CREATE INDEX chat_turns_running ON chat_turns (status) WHERE status = 'running';
CREATE TABLE "z_common_word_builds" (
    -- A run that computes z_common_words; finished is 0 until the last of its words is stored.
    -- lengths is uint32[highest document id + 1], the number of tokens of each document. All of it
    -- is computed from the full-text index; you may delete its rows at any time.
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    finished INTEGER NOT NULL DEFAULT 0,
    lengths  BLOB NOT NULL DEFAULT x''
);
CREATE TABLE "z_common_words" (
    -- The words that most documents hold, and those documents: the distances of their ids, and how
    -- often each holds the word, weighed by field, times ten. token is a token of the full-text
    -- index; a Chinese, Japanese or Korean character and "*" stand for all tokens that begin with
    -- it; "/" behind it, for the word outside paths. The numbers are uint8, uint16 or uint32: as
    -- many bytes as the column is long, divided by documents.
    build_id    INTEGER NOT NULL REFERENCES "z_common_word_builds"(id) ON DELETE CASCADE,
    token       TEXT NOT NULL,
    documents   INTEGER NOT NULL,
    distances   BLOB NOT NULL,
    frequencies BLOB NOT NULL,
    PRIMARY KEY (build_id, token)
);
CREATE TABLE "z_changed_documents" (
    -- Documents that were stored or removed since a build of z_common_words began; full text is
    -- asked for these.
    document_id INTEGER PRIMARY KEY,
    build_id    INTEGER NOT NULL
);
CREATE TABLE "z_access_tokens" (
    -- A token of a client. id is random, and never used again. hash is the SHA-256 of the secret,
    -- in hexadecimal; the secret itself is stored nowhere. expires_at is NULL if it never expires.
    -- last_used is the day (UTC) of its last use.
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    hash       TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used  TEXT
);
CREATE TABLE "z_access_scopes" (
    -- A collection that a token opens; may_write is 1 if its files may be written, too. A
    -- collection that is renamed keeps its tokens, and one that is removed loses them.
    token_id   TEXT NOT NULL REFERENCES "z_access_tokens" (id) ON DELETE CASCADE,
    collection TEXT NOT NULL,
    may_write  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (token_id, collection)
) WITHOUT ROWID;
CREATE TABLE audit (
    -- Who wrote what. actor is the name of a token, '' for the administrator and for programs on
    -- the server's machine. face is cli, mcp, rest, page or another part of the program; action is
    -- the tool or the command; target is a file or what else was changed. The oldest rows are
    -- removed first.
    id      INTEGER PRIMARY KEY,
    at      TEXT NOT NULL,
    actor   TEXT NOT NULL,
    face    TEXT NOT NULL,
    session TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT NOT NULL
);
CREATE INDEX audit_actor ON audit (actor, id);
CREATE INDEX chunks_outdated ON chunks (document_id) WHERE next_hash IS NOT NULL;
CREATE TABLE about (
    -- What this file is, and questions to begin with: read the row README.
    subject TEXT PRIMARY KEY,
    text    TEXT NOT NULL
);
INSERT INTO about VALUES ('README', 'This file is an index of folders of notes, made by qmd. The notes are the files in those folders: what is here of them can be made again. Tables and views whose names begin with z_ (and _sqlite_migrations) belong to the program: full text, vectors, models. All others are for people. Begin with the views: v_documents, v_hits, v_links, v_chunks, v_contexts, v_history, v_skipped. Each statement in .schema has a comment that explains its columns. Read as much as you like, also while qmd runs; to change something, change your files.');
INSERT INTO about VALUES ('find a word', 'SELECT file, title FROM v_hits WHERE v_hits.match MATCH ''word'' ORDER BY rank');
INSERT INTO about VALUES ('find a text as typed', 'SELECT file, title FROM v_documents WHERE text LIKE ''%数据库%''');
INSERT INTO about VALUES ('latest', 'SELECT file, title, tags, date FROM v_documents ORDER BY date DESC LIMIT 10');
INSERT INTO about VALUES ('tags', 'SELECT tag, count(*) FROM tags GROUP BY tag ORDER BY 2 DESC');
INSERT INTO about VALUES ('history', 'SELECT created_at, action, file, tool FROM v_history ORDER BY id DESC LIMIT 10');
INSERT INTO about VALUES ('what was left out', 'SELECT file, reason, detail FROM v_skipped');
CREATE VIEW v_documents AS
-- Documents, with the names of their collections. docid is the short name that qmd shows; date is
-- the date in the note, else that of the file; tags is a JSON list. To find a text as you type it,
-- Chinese too: WHERE text LIKE '%数据库%'. v_hits is faster, and ranks.
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
       d.tags,
       (SELECT count(*) FROM chunks k WHERE k.document_id = d.id) AS chunks,
       d.description,
       d.text
FROM documents d JOIN collections c ON c.id = d.collection_id;
CREATE VIEW v_hits AS
-- Full-text search by hand: SELECT file, title FROM v_hits WHERE v_hits.match MATCH 'word' ORDER BY
-- rank. It finds a Chinese word by its overlapping pairs: MATCH '"数据 据库"' for 数据库. beginning is the
-- first 200 characters below the frontmatter.
SELECT z_documents_fts AS match,
       rank,
       c.name || '/' || d.path AS file,
       d.title,
       d.modified_at,
       substr(d.text, d.body_start + 1, 200) AS beginning
FROM z_documents_fts
JOIN documents d ON d.id = z_documents_fts.rowid
JOIN collections c ON c.id = d.collection_id;
CREATE VIEW v_chunks AS
-- The pieces of documents that are embedded, with their text; embedded is 1 if a piece has its
-- vector.
SELECT k.id,
       c.name || '/' || d.path AS file,
       k.seq,
       k.start_line,
       k.end_line - 1 AS last_line,
       k.heading_path,
       k.model_id IS NOT NULL AS embedded,
       substr(d.text, k.start_char + 1, k.end_char - k.start_char) AS text
FROM chunks k
JOIN documents d ON d.id = k.document_id
JOIN collections c ON c.id = d.collection_id;
CREATE VIEW v_skipped AS
-- Files that were skipped, and why.
SELECT c.name || '/' || s.path AS file, s.reason, s.detail, s.bytes
FROM skipped_files s JOIN collections c ON c.id = s.collection_id;
CREATE VIEW v_contexts AS
-- What the user says about everything below a place; place is a collection, or a folder or a file
-- in it, or '' for all collections.
SELECT coalesce(c.name || iif(x.prefix = '', '', '/' || x.prefix), '') AS place,
       c.name AS collection,
       x.prefix AS path,
       x.text,
       x.created_at
FROM contexts x LEFT JOIN collections c ON c.id = x.collection_id;
CREATE VIEW v_history AS
-- What tools did to files, in that order. text is the file before that; NULL if there was none, if
-- it was a photo, or if it is stored compressed, as those of more than 10 MB. moved_from is where
-- the file lay before a move; undone_by is the change that undid this one.
SELECT r.id,
       r.created_at,
       r.action,
       coalesce((SELECT c.name || substr(r.path, length(c.path) + 1) FROM collections c
                 WHERE r.path > c.path || '/' AND r.path < c.path || '0'
                 ORDER BY length(c.path) DESC LIMIT 1), r.path) AS file,
       coalesce((SELECT c.name || substr(r.moved_from, length(c.path) + 1) FROM collections c
                 WHERE r.moved_from > c.path || '/' AND r.moved_from < c.path || '0'
                 ORDER BY length(c.path) DESC LIMIT 1), r.moved_from) AS moved_from,
       r.tool,
       r.change_id AS change,
       g.undone_by,
       iif(r.kind = 'content', CAST(r.content AS TEXT), NULL) AS text
FROM revisions r LEFT JOIN changes g ON g.id = r.change_id;
CREATE TRIGGER documents_leave BEFORE DELETE ON documents BEGIN
    DELETE FROM z_searchable WHERE document_id = old.id;
END;
CREATE TRIGGER collections_delete AFTER DELETE ON collections BEGIN
    DELETE FROM documents WHERE collection_id = old.id;
    DELETE FROM contexts WHERE collection_id = old.id;
    DELETE FROM skipped_files WHERE collection_id = old.id;
END;
CREATE TRIGGER chunks_delete AFTER DELETE ON chunks BEGIN
    DELETE FROM z_vectors WHERE chunk_id = old.id;
END;
CREATE TRIGGER embeddings_delete AFTER DELETE ON z_embeddings BEGIN
    DELETE FROM z_token_states WHERE embedding_id = old.id;
END;
CREATE TRIGGER models_delete AFTER DELETE ON z_models BEGIN
    DELETE FROM z_token_projections WHERE model_id = old.id;
END;
CREATE TRIGGER searchable_delete BEFORE DELETE ON z_searchable BEGIN
    INSERT INTO z_documents_fts (z_documents_fts, rowid, title, headings, body, path, extra, description)
    SELECT 'delete', id, title, headings, body, path, extra, description
    FROM z_documents_fts_text WHERE id = old.document_id;
END;
CREATE TRIGGER documents_update BEFORE UPDATE OF title, description, text, body_start, path ON documents BEGIN
    DELETE FROM z_searchable WHERE document_id = old.id;
END;
CREATE TRIGGER documents_delete_names AFTER DELETE ON documents BEGIN
    DELETE FROM z_names WHERE document_id = old.id;
END;
CREATE TRIGGER collections_delete_attachments AFTER DELETE ON collections BEGIN
    DELETE FROM attachments WHERE collection_id = old.id;
END;
CREATE TRIGGER searchable_insert_changed AFTER INSERT ON z_searchable
WHEN EXISTS (SELECT 1 FROM z_common_word_builds) BEGIN
    INSERT OR REPLACE INTO z_changed_documents (document_id, build_id)
    SELECT new.document_id, max(id) FROM z_common_word_builds;
END;
CREATE TRIGGER searchable_delete_changed AFTER DELETE ON z_searchable
WHEN EXISTS (SELECT 1 FROM z_common_word_builds) BEGIN
    INSERT OR REPLACE INTO z_changed_documents (document_id, build_id)
    SELECT old.document_id, max(id) FROM z_common_word_builds;
END;
CREATE UNIQUE INDEX changes_position ON changes (position);
CREATE TABLE z_property_keys (
    -- The keys of z_properties.
    id  INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE
);
CREATE TABLE z_properties (
    -- What the view properties shows. value is the text as written; text is NULL where it is value
    -- in lower case, kind where it is 'text'. The index of texts has only their beginning.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    key_id      INTEGER NOT NULL,
    kind        TEXT,
    text        TEXT,
    value       TEXT NOT NULL,
    number      REAL,
    date        TEXT,
    beginning   TEXT GENERATED ALWAYS AS (substr(coalesce(text, lower(value)), 1, 16)) VIRTUAL,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID;
CREATE VIEW properties AS
-- The values of a document's properties: frontmatter and inline fields, which documents.properties
-- has whole. A list has one row per element, and a key inside another is written "book.author". key
-- and text are folded: without letter case, a blank in a key as "-". value is the text as written,
-- NULL where it is the same. number and date (ISO 8601, as written in the note, a month as its first
-- day) are set where the value is one. Long values are cut. beginning is that of text, as the index
-- of texts has it.
SELECT p.document_id,
       p.seq,
       k.key,
       coalesce(p.kind, 'text') AS kind,
       coalesce(p.text, lower(p.value)) AS text,
       nullif(p.value, coalesce(p.text, lower(p.value))) AS value,
       p.number,
       p.date,
       p.beginning
FROM z_properties p JOIN z_property_keys k ON k.id = p.key_id;
CREATE INDEX properties_text ON z_properties (key_id, beginning);
CREATE INDEX properties_number ON z_properties (key_id, number) WHERE number IS NOT NULL;
CREATE INDEX properties_date ON z_properties (key_id, date) WHERE date IS NOT NULL;
CREATE TRIGGER documents_delete_properties AFTER DELETE ON documents BEGIN
    DELETE FROM z_properties WHERE document_id = old.id;
END;
CREATE TABLE z_link_targets (
    -- What links lead to, as it is written: the columns of the view links. Each is stored once, and
    -- as long as a link has it; hash is the CRC-32 of the target.
    id         INTEGER PRIMARY KEY,
    hash       INTEGER NOT NULL,
    kind       TEXT NOT NULL,
    target     TEXT NOT NULL,
    target_key TEXT
);
CREATE TABLE z_links (
    -- What the view links shows.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    target_id   INTEGER NOT NULL,
    line        INTEGER NOT NULL,
    text        TEXT,
    heading     TEXT,
    block       TEXT, relation TEXT,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID;
CREATE INDEX link_targets_hash ON z_link_targets (hash);
CREATE INDEX links_target ON z_links (target_id);
CREATE INDEX link_targets_key ON z_link_targets (target_key) WHERE target_key IS NOT NULL;
CREATE TRIGGER documents_delete AFTER DELETE ON documents BEGIN
    DELETE FROM chunks WHERE document_id = old.id;
    DELETE FROM tags WHERE document_id = old.id;
    DELETE FROM aliases WHERE document_id = old.id;
    DELETE FROM z_links WHERE document_id = old.id;
END;
CREATE TRIGGER links_delete AFTER DELETE ON z_links
WHEN NOT EXISTS (SELECT 1 FROM z_links WHERE target_id = old.target_id) BEGIN
    DELETE FROM z_link_targets WHERE id = old.target_id;
END;
CREATE VIEW z_documents_fts_text AS
-- The text that the full-text index is built from. It is for FTS5, not for people.
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, iif(s.replacements IS NULL AND s.has_pairs IS NULL, substr(d.text, d.body_start + 1), (
           WITH RECURSIVE replaced (position, text) AS (
               SELECT 0, substr(d.text, d.body_start + 1)
               UNION ALL
               SELECT position + 2,
                      replace(text, json_extract(s.replacements, '$[' || position || ']'),
                              json_extract(s.replacements, '$[' || (position + 1) || ']'))
               FROM replaced WHERE position < json_array_length(s.replacements)
           ), whole (text) AS MATERIALIZED (
               SELECT text FROM replaced ORDER BY position DESC LIMIT 1
           ), pieces (start, piece) AS (
               SELECT 1, substr(text, 1, 513) FROM whole
               UNION ALL
               SELECT start + 512, substr((SELECT text FROM whole), start + 512, 513)
               FROM pieces WHERE length(piece) = 513
           ), places (place) AS MATERIALIZED (
               SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < 512
           )
           SELECT iif(s.has_pairs IS NULL, (SELECT text FROM whole), coalesce(group_concat(
               CASE WHEN substr(piece, place, 2) GLOB '[一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯][一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯]'
                    THEN ' ' || substr(piece, place, 2) || ' '
                    WHEN substr(piece, place, 1) GLOB '[一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯]'
                    THEN ' ' || substr(piece, place, 1) || ' '
                    ELSE substr(piece, place, 1) END, ''), ''))
           FROM pieces CROSS JOIN places
               ON s.has_pairs IS NOT NULL AND place <= length(piece)
       ))) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, iif(s.replacements IS NULL AND s.has_pairs IS NULL, substr(d.text, 1, d.body_start), (
           WITH RECURSIVE replaced (position, text) AS (
               SELECT 0, substr(d.text, 1, d.body_start)
               UNION ALL
               SELECT position + 2,
                      replace(text, json_extract(s.replacements, '$[' || position || ']'),
                              json_extract(s.replacements, '$[' || (position + 1) || ']'))
               FROM replaced WHERE position < json_array_length(s.replacements)
           ), whole (text) AS MATERIALIZED (
               SELECT text FROM replaced ORDER BY position DESC LIMIT 1
           ), pieces (start, piece) AS (
               SELECT 1, substr(text, 1, 513) FROM whole
               UNION ALL
               SELECT start + 512, substr((SELECT text FROM whole), start + 512, 513)
               FROM pieces WHERE length(piece) = 513
           ), places (place) AS MATERIALIZED (
               SELECT 1 UNION ALL SELECT place + 1 FROM places WHERE place < 512
           )
           SELECT iif(s.has_pairs IS NULL, (SELECT text FROM whole), coalesce(group_concat(
               CASE WHEN substr(piece, place, 2) GLOB '[一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯][一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯]'
                    THEN ' ' || substr(piece, place, 2) || ' '
                    WHEN substr(piece, place, 1) GLOB '[一-鿿ぁ-ゖゝ-ゟァ-ヺー-ヿ가-힣㐀-䶿々-〇〡-〩〱-〵〸-〼ㄅ-ㄯㆠ-ㆿㇰ-ㇿꀀ-ꒌ豈-﫿𠀀-𮯯𮯰-𮹝𰀀-𲎯]'
                    THEN ' ' || substr(piece, place, 1) || ' '
                    ELSE substr(piece, place, 1) END, ''), ''))
           FROM pieces CROSS JOIN places
               ON s.has_pairs IS NOT NULL AND place <= length(piece)
       ))) || char(10) || s.words AS extra,
       coalesce(s.description, d.description) AS description
FROM z_searchable s JOIN documents d ON d.id = s.document_id;
CREATE TABLE anchors (
    -- Places of a document's file, such as the pages of a PDF, at which a part of its text begins; the part
    -- ends where the next one begins. kind is page, slide, sheet, chapter, cell, message or line; label is the
    -- number or name as people count, shown what the file itself calls it, if that differs. line is the first
    -- line of the part, from 1. Files that are text have none.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    kind        TEXT NOT NULL,
    label       TEXT NOT NULL,
    shown       TEXT,
    line        INTEGER NOT NULL,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID;
CREATE TRIGGER documents_delete_anchors AFTER DELETE ON documents BEGIN
    DELETE FROM anchors WHERE document_id = old.id;
END;
CREATE TABLE z_pictures (
    -- The pages of a document's file that are pictures without text. page is 1 for the first, and for a photo.
    -- source is a hash of the file's bytes. read_by names what read the text that the document has of the page;
    -- it is NULL while the document has none.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page        INTEGER NOT NULL,
    source      BLOB NOT NULL,
    read_by     TEXT,
    PRIMARY KEY (document_id, page)
) WITHOUT ROWID;
CREATE INDEX z_pictures_source ON z_pictures (source, page);
CREATE TRIGGER documents_delete_pictures AFTER DELETE ON documents BEGIN
    DELETE FROM z_pictures WHERE document_id = old.id;
END;
CREATE TABLE z_picture_texts (
    -- What was read from the page of a file with these bytes, by what: a JSON object with the lines, in the order of
    -- the page, and the degrees by which the page was turned. Without a text, problem says why it cannot be read;
    -- without a problem, too, a process reads it until claimed_until (seconds since 1970), then others may.
    source        BLOB NOT NULL,
    page          INTEGER NOT NULL,
    read_by       TEXT NOT NULL,
    text          TEXT,
    problem       TEXT,
    claimed_until INTEGER,
    PRIMARY KEY (source, page)
) WITHOUT ROWID;
CREATE TABLE tasks (
    -- The tasks of notes: list items that begin with a box or with TODO. status is open, doing, done or cancelled;
    -- tags are those of the task and of the note's frontmatter, with blanks between, in lower case; priority is 1
    -- (highest) to 5; due, scheduled, start and finished are days in ISO 8601. line counts from 1. v_tasks has the
    -- files.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        INTEGER NOT NULL,
    status      TEXT NOT NULL,
    text        TEXT NOT NULL,
    tags        TEXT NOT NULL,
    priority    INTEGER,
    due         TEXT,
    scheduled   TEXT,
    start       TEXT,
    finished    TEXT,
    PRIMARY KEY (document_id, line)
) WITHOUT ROWID;
CREATE INDEX tasks_by_due ON tasks (status, due);
CREATE TRIGGER documents_delete_tasks AFTER DELETE ON documents BEGIN
    DELETE FROM tasks WHERE document_id = old.id;
END;
CREATE VIEW v_tasks AS
    -- Tasks with the files of their notes: SELECT file, text, due FROM v_tasks WHERE status = 'open' ORDER BY due
    SELECT c.name || '/' || d.path AS file, t.line, t.status, t.text, t.tags, t.priority, t.due, t.scheduled, t.start,
           t.finished
      FROM tasks t JOIN documents d ON d.id = t.document_id JOIN collections c ON c.id = d.collection_id;
CREATE TABLE observations (
    -- The facts of notes: list items such as "- [decision] We use SQLite #db (2026-11-20; until 2027-01-01)".
    -- category is in lower case; tags are those of the fact and of the note's frontmatter, with blanks between, in
    -- lower case; noted is the day when the fact was noted and expires the last day when it holds, in ISO 8601;
    -- context is the rest of what stands in parentheses. line counts from 1. v_observations has the files.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        INTEGER NOT NULL,
    category    TEXT NOT NULL,
    text        TEXT NOT NULL,
    tags        TEXT NOT NULL,
    context     TEXT NOT NULL,
    noted       TEXT,
    expires     TEXT,
    PRIMARY KEY (document_id, line)
) WITHOUT ROWID;
CREATE INDEX observations_by_category ON observations (category);
CREATE TRIGGER documents_delete_observations AFTER DELETE ON documents BEGIN
    DELETE FROM observations WHERE document_id = old.id;
END;
CREATE VIEW v_observations AS
    -- Facts with the files and titles of their notes: SELECT title, text FROM v_observations WHERE category = 'decision'
    SELECT c.name || '/' || d.path AS file, d.title, o.line, o.category, o.text, o.tags, o.context, o.noted, o.expires
      FROM observations o JOIN documents d ON d.id = o.document_id JOIN collections c ON c.id = d.collection_id;
CREATE VIEW links AS
-- Links as they are written; v_links has the files. target_key is the name of the target's file, as
-- documents.name_key; NULL for a web address, '' for a link inside the note. text is the alias of a
-- wikilink; the text of a Markdown link is in the document. relation is what the note is to the target, in
-- list items such as "- part_of [[Project]]".
SELECT l.document_id, l.seq, t.kind, t.target, t.target_key, l.text, l.heading, l.block, l.line, l.relation
FROM z_links l JOIN z_link_targets t ON t.id = l.target_id;
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
       c.name || '/' || coalesce(iif(l.target = '', d.path, t.path), a.path) AS target_file,
       l.relation
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND +t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id;
