-- The values of properties become rows, so that an index can answer "status:draft" and "rating:>4".
-- Documents that are stored already get theirs when the parser's new version reads them again.

--: The values of a document's properties: frontmatter and inline fields, which documents.properties has whole. A list
--: has one row per element, and a key inside another is written "book.author". key and text are folded: without letter
--: case, a blank in a key as "-". value is the text as written, NULL where it is the same. number and date (ISO 8601,
--: as written in the note, a month as its first day) are set where the value is one. Long values are cut.
CREATE TABLE properties (
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         INTEGER NOT NULL,
    key         TEXT NOT NULL,
    kind        TEXT NOT NULL,
    text        TEXT NOT NULL,
    value       TEXT,
    number      REAL,
    date        TEXT,
    PRIMARY KEY (document_id, seq)
) WITHOUT ROWID;
CREATE INDEX properties_text ON properties (key, text);
CREATE INDEX properties_number ON properties (key, number) WHERE number IS NOT NULL;
CREATE INDEX properties_date ON properties (key, date) WHERE date IS NOT NULL;

-- As documents_delete does for the other tables.
CREATE TRIGGER documents_delete_properties AFTER DELETE ON documents BEGIN
    DELETE FROM properties WHERE document_id = old.id;
END;
