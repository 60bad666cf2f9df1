-- Tasks of notes, with their days and priority.
CREATE TABLE tasks (
    document_id bigint NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        integer NOT NULL,
    status      text COLLATE "C" NOT NULL,
    text        text COLLATE "C" NOT NULL,
    tags        text COLLATE "C" NOT NULL,
    priority    integer,
    due         text COLLATE "C",
    scheduled   text COLLATE "C",
    start       text COLLATE "C",
    finished    text COLLATE "C",
    PRIMARY KEY (document_id, line)
);
CREATE INDEX tasks_by_due ON tasks (status, due);
COMMENT ON TABLE tasks IS
    'The tasks of notes: list items that begin with a box or with TODO. status is open, doing, done or cancelled; tags are those of the task and of the note''s frontmatter, with blanks between, in lower case; priority is 1 (highest) to 5; due, scheduled, start and finished are days in ISO 8601. line counts from 1.';
