-- Each key is stored once, and the text of a property once: the index of texts has only their beginnings.

DROP TRIGGER documents_delete_properties;
ALTER TABLE properties RENAME TO properties_before;

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

INSERT INTO z_property_keys (key) SELECT DISTINCT key FROM properties_before ORDER BY key;
INSERT INTO z_properties (document_id, seq, key_id, kind, text, value, number, date)
SELECT document_id, seq, (SELECT id FROM z_property_keys k WHERE k.key = b.key), nullif(kind, 'text'),
       -- Only of ASCII: some SQLite libraries know the lower case of other letters, too.
       CASE WHEN length(CAST(coalesce(value, text) AS BLOB)) > length(coalesce(value, text))
            OR text <> lower(coalesce(value, text)) THEN text END,
       coalesce(value, text), number, date
FROM properties_before b ORDER BY document_id, seq;
DROP TABLE properties_before;

CREATE INDEX properties_text ON z_properties (key_id, beginning);
CREATE INDEX properties_number ON z_properties (key_id, number) WHERE number IS NOT NULL;
CREATE INDEX properties_date ON z_properties (key_id, date) WHERE date IS NOT NULL;

-- As documents_delete does for the other tables.
CREATE TRIGGER documents_delete_properties AFTER DELETE ON documents BEGIN
    DELETE FROM z_properties WHERE document_id = old.id;
END;
