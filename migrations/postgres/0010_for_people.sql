-- Names that tell machinery: tables of the program alone get the prefix z_, as in a database file, which puts them
-- behind the others in every list.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'access_scopes', 'access_tokens', 'document_changes', 'document_tokens', 'embeddings', 'full_text_totals',
        'meta', 'model_cache', 'models', 'names', 'pending_writes', 'postings', 'token_projections', 'token_states',
        'vectors'
    ] LOOP
        -- vectors is there only if the server has pgvector; a table of this name in another schema is not ours.
        EXECUTE format('ALTER TABLE IF EXISTS %I.%I RENAME TO %I', current_schema(), name, 'z_' || name);
    END LOOP;
END
$$;
COMMENT ON TABLE z_postings IS
    'Which documents hold a token, and where. token is the stem of a word as SQLite''s FTS5 makes it (porter, without accents); of more than 400 characters the first, and a hash of all. places are field * 2^26 + position, ascending; fields are 0 title, 1 headings, 2 body, 3 path, 4 extra, 5 description. weight is the number of places, weighted by field, as bm25 counts it; length is the number of tokens of the document; the column fields has the bit 2^field for each field that holds the token. Try: SELECT d.path FROM z_postings p JOIN documents d ON d.id = p.document_id WHERE p.token = ''backup'' ORDER BY weight DESC';
COMMENT ON TABLE z_document_tokens IS
    'How many tokens a document has in all fields (length), and which: each of them has a row in z_postings.';
COMMENT ON TABLE z_full_text_totals IS 'How many rows z_document_tokens has, and the sum of their lengths.';
COMMENT ON TABLE z_token_states IS
    'The token states of an embedded text: codes of code_bytes each, one for each distinct token that is kept. They come and go with the vector in z_embeddings.';

CREATE OR REPLACE FUNCTION qmd_forget_postings() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM z_postings p USING old_rows o, unnest(o.tokens) t (token)
    WHERE p.token = t.token AND p.document_id = o.document_id;
    UPDATE z_full_text_totals SET
        documents = documents - (SELECT count(*) FROM old_rows),
        length = length - (SELECT coalesce(sum(o.length), 0) FROM old_rows o)
    WHERE EXISTS (SELECT 1 FROM old_rows);
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION qmd_leave_full_text() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM z_document_tokens WHERE document_id = old.id;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION qmd_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_gone boolean := TG_OP = 'DELETE';
    is_moved boolean := TG_OP = 'UPDATE' AND (old.collection_id, old.path) <> (new.collection_id, new.path);
BEGIN
    INSERT INTO z_document_changes (kind, collection, path, previous, writer)
    SELECT CASE WHEN is_gone THEN 'removed' WHEN is_moved THEN 'moved' WHEN TG_OP = 'UPDATE' THEN 'updated' ELSE 'added' END,
           c.name, CASE WHEN is_gone THEN old.path ELSE new.path END,
           CASE WHEN is_moved AND old.collection_id = new.collection_id THEN old.path END,
           coalesce(current_setting('qmd.writer', true), '')
    FROM collections c
    WHERE c.id = CASE WHEN is_gone THEN old.collection_id ELSE new.collection_id END;
    RETURN NULL;
END
$$;
CREATE OR REPLACE FUNCTION qmd_note_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO z_document_changes (kind, collection, path, writer)
    SELECT CASE TG_OP WHEN 'DELETE' THEN 'removed' ELSE 'moved' END,
           CASE TG_OP WHEN 'DELETE' THEN old.name ELSE new.name END, d.path,
           coalesce(current_setting('qmd.writer', true), '')
    FROM documents d WHERE d.collection_id = old.id;
    RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END;
END
$$;
CREATE OR REPLACE FUNCTION qmd_notify_of_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('qmd_changes', TG_TABLE_SCHEMA);
    IF EXISTS (SELECT 1 FROM new_rows WHERE id % 1000 = 0) THEN
        DELETE FROM z_document_changes WHERE id <= (SELECT max(id) FROM new_rows) - 100000;
    END IF;
    RETURN NULL;
END
$$;
