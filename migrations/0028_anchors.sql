-- Places of files that were converted to text, such as the pages of a PDF.

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
