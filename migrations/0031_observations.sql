-- Facts that notes state one by one, and links that say how two notes are related.

CREATE TABLE observations (
    -- The facts of notes: list items such as "- [decision] We use SQLite #db (2026-11-20; until 2027-01-01)".
    -- category is in lower case; tags are those of the fact and of the note's frontmatter, with blanks between, in
    -- lower case; noted is the day when the fact was noted and expires the last day when it holds, in ISO 8601;
    -- context is the rest of what stands in parentheses. line counts from 1. v_observations has the files.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        INTEGER NOT NULL,
    category    TEXT NOT NULL,
    text        TEXT NOT NULL,
    tags        TEXT NOT NULL,
    context     TEXT NOT NULL,
    noted       TEXT,
    expires     TEXT,
    PRIMARY KEY (document_id, line)
) WITHOUT ROWID;

CREATE INDEX observations_by_category ON observations (category);

CREATE TRIGGER documents_delete_observations AFTER DELETE ON documents BEGIN
    DELETE FROM observations WHERE document_id = old.id;
END;

CREATE VIEW v_observations AS
    -- Facts with the files and titles of their notes: SELECT title, text FROM v_observations WHERE category = 'decision'
    SELECT c.name || '/' || d.path AS file, d.title, o.line, o.category, o.text, o.tags, o.context, o.noted, o.expires
      FROM observations o JOIN documents d ON d.id = o.document_id JOIN collections c ON c.id = d.collection_id;

ALTER TABLE z_links ADD COLUMN relation TEXT;

DROP VIEW v_links;
DROP VIEW links;

CREATE VIEW links AS
-- Links as they are written; v_links has the files. target_key is the name of the target's file, as
-- documents.name_key; NULL for a web address, '' for a link inside the note. text is the alias of a
-- wikilink; the text of a Markdown link is in the document. relation is what the note is to the target, in
-- list items such as "- part_of [[Project]]".
SELECT l.document_id, l.seq, t.kind, t.target, t.target_key, l.text, l.heading, l.block, l.line, l.relation
FROM z_links l JOIN z_link_targets t ON t.id = l.target_id;

CREATE VIEW v_links AS
-- Links, and the files of the same collection that have the name in the link: several rows if there
-- are several files, of which the link leads to one; target_file is NULL if there is none.
SELECT c.name || '/' || d.path AS file,
       l.line,
       l.kind,
       l.target,
       l.text,
       l.heading,
       l.block,
       c.name || '/' || coalesce(iif(l.target = '', d.path, t.path), a.path) AS target_file,
       l.relation
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND +t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id;
