-- Which documents changed, so that each server tells its clients what others have changed.
CREATE TABLE document_changes (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       text NOT NULL,
    collection text COLLATE "C" NOT NULL,
    path       text COLLATE "C" NOT NULL,
    previous   text COLLATE "C",
    writer     text NOT NULL
);
COMMENT ON TABLE document_changes IS
    'The latest changes of documents, in the order of their commits: added, updated, moved (from the path previous; NULL if its collection changed, too) or removed. writer is the setting qmd.writer of the session that made it, random for each process. A commit that adds rows notifies the channel qmd_changes, with the name of the schema. The latest 100,000 rows are kept, and up to 1,000 more.';

CREATE FUNCTION qmd_note_change() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    is_gone boolean := TG_OP = 'DELETE';
    is_moved boolean := TG_OP = 'UPDATE' AND (old.collection_id, old.path) <> (new.collection_id, new.path);
BEGIN
    INSERT INTO document_changes (kind, collection, path, previous, writer)
    SELECT CASE WHEN is_gone THEN 'removed' WHEN is_moved THEN 'moved' WHEN TG_OP = 'UPDATE' THEN 'updated' ELSE 'added' END,
           c.name, CASE WHEN is_gone THEN old.path ELSE new.path END,
           CASE WHEN is_moved AND old.collection_id = new.collection_id THEN old.path END,
           coalesce(current_setting('qmd.writer', true), '')
    FROM collections c
    WHERE c.id = CASE WHEN is_gone THEN old.collection_id ELSE new.collection_id END;
    RETURN NULL;
END
$$;
CREATE TRIGGER documents_added AFTER INSERT OR DELETE ON documents
FOR EACH ROW EXECUTE FUNCTION qmd_note_change();
CREATE TRIGGER documents_changed AFTER UPDATE OF collection_id, path, hash ON documents
FOR EACH ROW WHEN ((old.collection_id, old.path, old.hash) IS DISTINCT FROM (new.collection_id, new.path, new.hash))
EXECUTE FUNCTION qmd_note_change();

-- The documents of a collection that goes, while its name is there; all have another name after a rename.
CREATE FUNCTION qmd_note_collection() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO document_changes (kind, collection, path, writer)
    SELECT CASE TG_OP WHEN 'DELETE' THEN 'removed' ELSE 'moved' END,
           CASE TG_OP WHEN 'DELETE' THEN old.name ELSE new.name END, d.path,
           coalesce(current_setting('qmd.writer', true), '')
    FROM documents d WHERE d.collection_id = old.id;
    RETURN CASE TG_OP WHEN 'DELETE' THEN old ELSE new END;
END
$$;
CREATE TRIGGER collections_removed BEFORE DELETE ON collections
FOR EACH ROW EXECUTE FUNCTION qmd_note_collection();
CREATE TRIGGER collections_renamed BEFORE UPDATE OF name ON collections
FOR EACH ROW WHEN (old.name <> new.name) EXECUTE FUNCTION qmd_note_collection();

-- PostgreSQL sends one notification for each commit, however many statements ask for it.
CREATE FUNCTION qmd_notify_of_changes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('qmd_changes', TG_TABLE_SCHEMA);
    IF EXISTS (SELECT 1 FROM new_rows WHERE id % 1000 = 0) THEN
        DELETE FROM document_changes WHERE id <= (SELECT max(id) FROM new_rows) - 100000;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER document_changes_notify AFTER INSERT ON document_changes
REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION qmd_notify_of_changes();
