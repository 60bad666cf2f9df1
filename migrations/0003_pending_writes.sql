--: Temporary files of writes that are under way. What a killed process left behind is removed by the next that
--: opens the database for writing, or writes in the same directory.
CREATE TABLE pending_writes (
    temporary  TEXT PRIMARY KEY,
    created_at TEXT NOT NULL
) WITHOUT ROWID;

-- What a revision holds: 'content', the whole file; 'metadata', what a photo said of itself.
ALTER TABLE revisions ADD COLUMN kind TEXT NOT NULL DEFAULT 'content';
