-- Pages that are pictures, such as those of a scan, and the text that was read from them.
CREATE TABLE z_pictures (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    page        integer NOT NULL,
    source      bytea NOT NULL,
    read_by     text COLLATE "C",
    PRIMARY KEY (document_id, page)
);
CREATE INDEX z_pictures_source ON z_pictures (source, page);
COMMENT ON TABLE z_pictures IS
    'The pages of a document''s file that are pictures without text. page is 1 for the first, and for a photo. source is a hash of the file''s bytes. read_by names what read the text that the document has of the page; it is NULL while the document has none.';

CREATE TABLE z_picture_texts (
    source        bytea NOT NULL,
    page          integer NOT NULL,
    read_by       text COLLATE "C" NOT NULL,
    text          text,
    problem       text,
    claimed_until bigint,
    PRIMARY KEY (source, page)
);
COMMENT ON TABLE z_picture_texts IS
    'What was read from the page of a file with these bytes, by what: a JSON object with the lines, in the order of the page, and the degrees by which the page was turned. Without a text, problem says why it cannot be read; without a problem, too, a process reads it until claimed_until (seconds since 1970), then others may.';
