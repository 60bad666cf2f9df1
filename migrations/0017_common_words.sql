-- Very many documents hold some words, and full text scores each of them for a search. So a large database has,
-- for each such word, how often each document holds it: see store/sqlite/common_words.py.

--: A run that computes common_words; finished is 0 until the last of its words is stored. lengths is uint32[highest
--: document id + 1], the number of tokens of each document. All of it is computed from the full-text index; you may
--: delete its rows at any time.
CREATE TABLE common_word_builds (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    finished INTEGER NOT NULL DEFAULT 0,
    lengths  BLOB NOT NULL DEFAULT x''
);

--: The words that most documents hold, and those documents: the distances of their ids, and how often each holds
--: the word, weighed by field, times ten. token is a token of the full-text index; a Chinese, Japanese or
--: Korean character and "*" stand for all tokens that begin with it; "/" behind it, for the word outside paths. The numbers are uint8, uint16 or uint32: as many
--: bytes as the column is long, divided by documents.
CREATE TABLE common_words (
    build_id    INTEGER NOT NULL REFERENCES common_word_builds(id) ON DELETE CASCADE,
    token       TEXT NOT NULL,
    documents   INTEGER NOT NULL,
    distances   BLOB NOT NULL,
    frequencies BLOB NOT NULL,
    PRIMARY KEY (build_id, token)
);

--: Documents that were stored or removed since a build of common_words began; full text is asked for these.
CREATE TABLE changed_documents (
    document_id INTEGER PRIMARY KEY,
    build_id    INTEGER NOT NULL
);
CREATE TRIGGER searchable_insert_changed AFTER INSERT ON searchable
WHEN EXISTS (SELECT 1 FROM common_word_builds) BEGIN
    INSERT OR REPLACE INTO changed_documents (document_id, build_id)
    SELECT new.document_id, max(id) FROM common_word_builds;
END;
CREATE TRIGGER searchable_delete_changed AFTER DELETE ON searchable
WHEN EXISTS (SELECT 1 FROM common_word_builds) BEGIN
    INSERT OR REPLACE INTO changed_documents (document_id, build_id)
    SELECT old.document_id, max(id) FROM common_word_builds;
END;
