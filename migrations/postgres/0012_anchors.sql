-- Places of files that were converted to text, such as the pages of a PDF.
CREATE TABLE anchors (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    seq         integer NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    label       text COLLATE "C" NOT NULL,
    shown       text COLLATE "C",
    line        integer NOT NULL,
    PRIMARY KEY (document_id, seq)
);
COMMENT ON TABLE anchors IS
    'Places of a document''s file, such as the pages of a PDF, at which a part of its text begins; the part ends where the next one begins. kind is page, slide, sheet, chapter, cell, message or line; label is the number or name as people count, shown what the file itself calls it, if that differs. line is the first line of the part, from 1. Files that are text have none.';
