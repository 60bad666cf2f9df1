-- Facts that notes state one by one, and links that say how two notes are related.
CREATE TABLE observations (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        integer NOT NULL,
    category    text COLLATE "C" NOT NULL,
    text        text COLLATE "C" NOT NULL,
    tags        text COLLATE "C" NOT NULL,
    context     text COLLATE "C" NOT NULL,
    noted       text COLLATE "C",
    expires     text COLLATE "C",
    PRIMARY KEY (document_id, line)
);
CREATE INDEX observations_by_category ON observations (category);
COMMENT ON TABLE observations IS
    'The facts of notes: list items such as "- [decision] We use SQLite #db (2026-11-20; until 2027-01-01)". category is in lower case; tags are those of the fact and of the note''s frontmatter, with blanks between, in lower case; noted is the day when the fact was noted and expires the last day when it holds, in ISO 8601; context is the rest of what stands in parentheses. line counts from 1.';

ALTER TABLE links ADD COLUMN relation text;
COMMENT ON COLUMN links.relation IS
    'What the note is to the target, in list items such as "- part_of [[Project]]".';
CREATE OR REPLACE VIEW v_links AS
SELECT c.name || '/' || d.path AS file,
       l.line,
       l.kind,
       l.target,
       l.text,
       l.heading,
       l.block,
       c.name || '/' || coalesce(CASE WHEN l.target = '' THEN d.path ELSE t.path END, a.path) AS target_file,
       l.relation
FROM links l
JOIN documents d ON d.id = l.document_id
JOIN collections c ON c.id = d.collection_id
LEFT JOIN documents t ON t.name_key = l.target_key AND t.collection_id = d.collection_id
LEFT JOIN attachments a
    ON t.id IS NULL AND a.name_key = l.target_key AND a.collection_id = d.collection_id;
