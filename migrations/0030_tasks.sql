-- Tasks of notes, with their days and priority.

CREATE TABLE tasks (
    -- The tasks of notes: list items that begin with a box or with TODO. status is open, doing, done or cancelled;
    -- tags are those of the task and of the note's frontmatter, with blanks between, in lower case; priority is 1
    -- (highest) to 5; due, scheduled, start and finished are days in ISO 8601. line counts from 1. v_tasks has the
    -- files.
    document_id INTEGER NOT NULL REFERENCES documents(id) ON DELETE CASCADE,
    line        INTEGER NOT NULL,
    status      TEXT NOT NULL,
    text        TEXT NOT NULL,
    tags        TEXT NOT NULL,
    priority    INTEGER,
    due         TEXT,
    scheduled   TEXT,
    start       TEXT,
    finished    TEXT,
    PRIMARY KEY (document_id, line)
) WITHOUT ROWID;

CREATE INDEX tasks_by_due ON tasks (status, due);

CREATE TRIGGER documents_delete_tasks AFTER DELETE ON documents BEGIN
    DELETE FROM tasks WHERE document_id = old.id;
END;

CREATE VIEW v_tasks AS
    -- Tasks with the files of their notes: SELECT file, text, due FROM v_tasks WHERE status = 'open' ORDER BY due
    SELECT c.name || '/' || d.path AS file, t.line, t.status, t.text, t.tags, t.priority, t.due, t.scheduled, t.start,
           t.finished
      FROM tasks t JOIN documents d ON d.id = t.document_id JOIN collections c ON c.id = d.collection_id;
