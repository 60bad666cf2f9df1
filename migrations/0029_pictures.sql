-- Pages that are pictures, such as those of a scan, and the text that was read from them.

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
