-- Full text: an index of tokens with their places, so that phrases, prefixes and fields are found exactly as SQLite's
-- FTS5 finds them, and bm25 has its numbers. tsvector has neither: it keeps 256 places of a token, and 1 MB a row.

CREATE TABLE postings (
    token       text COLLATE "C" NOT NULL,
    document_id bigint NOT NULL,
    weight      double precision NOT NULL,
    places      integer[] NOT NULL,
    PRIMARY KEY (token, document_id) INCLUDE (weight)
);
COMMENT ON TABLE postings IS
    'Which documents hold a token, and where. token is the stem of a word as SQLite''s FTS5 makes it (porter, without accents); of more than 400 characters the first, and a hash of all. places are field * 2^26 + position, ascending; fields are 0 title, 1 headings, 2 body, 3 path, 4 extra, 5 description. weight is the number of places, weighted by field, as bm25 counts it. Try: SELECT d.path FROM postings p JOIN documents d ON d.id = p.document_id WHERE p.token = ''backup'' ORDER BY weight DESC';

CREATE TABLE document_tokens (
    document_id bigint PRIMARY KEY REFERENCES documents(id) ON DELETE CASCADE,
    length      integer NOT NULL,
    tokens      text[] NOT NULL
);
COMMENT ON TABLE document_tokens IS
    'How many tokens a document has in all fields (length), and which: each of them has a row in postings.';

CREATE TABLE full_text_totals (
    only_row  boolean PRIMARY KEY DEFAULT true CHECK (only_row),
    documents bigint NOT NULL DEFAULT 0,
    length    bigint NOT NULL DEFAULT 0
);
INSERT INTO full_text_totals DEFAULT VALUES;
COMMENT ON TABLE full_text_totals IS 'How many rows document_tokens has, and the sum of their lengths.';

-- What a document leaves takes its rows in postings with it.
CREATE FUNCTION qmd_forget_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM postings p USING old_rows o, unnest(o.tokens) t (token)
    WHERE p.token = t.token AND p.document_id = o.document_id;
    UPDATE full_text_totals SET
        documents = documents - (SELECT count(*) FROM old_rows),
        length = length - (SELECT coalesce(sum(o.length), 0) FROM old_rows o)
    WHERE EXISTS (SELECT 1 FROM old_rows);
    RETURN NULL;
END
$$;
CREATE TRIGGER document_tokens_delete AFTER DELETE ON document_tokens
REFERENCING OLD TABLE AS old_rows FOR EACH STATEMENT EXECUTE FUNCTION qmd_forget_postings();

-- A text changed by hand leaves the full text until the next 'qmd index' reads its file again.
CREATE FUNCTION qmd_leave_full_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM document_tokens WHERE document_id = old.id;
    RETURN NULL;
END
$$;
CREATE TRIGGER documents_update AFTER UPDATE OF title, description, text, body_start, path ON documents
FOR EACH ROW EXECUTE FUNCTION qmd_leave_full_text();
