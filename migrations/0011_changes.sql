-- Which call of which tool changed which files, so that a change can be undone.

--: One call of a tool that changed files; its files are the revisions with its id. session names the MCP session, the
--: REST client or the process of the call; number_in_session counts its changes from 1, also those that are not kept any
--: more. files is how many files were changed: with fewer revisions left, the change cannot be undone. undone_by is the
--: change that undid this one.
CREATE TABLE changes (
    id                INTEGER PRIMARY KEY,
    tool              TEXT NOT NULL,
    session           TEXT NOT NULL,
    number_in_session INTEGER NOT NULL,
    created_at        TEXT NOT NULL,
    files             INTEGER NOT NULL DEFAULT 0,
    undone_by         INTEGER
);
CREATE INDEX changes_session ON changes (session, number_in_session);

-- change_id is NULL for revisions of earlier versions. action is create, write, move or delete. hash is that of the
-- content before, and hash_after of the content after ('' if there is no file). moved_from is the earlier path of a
-- file that was moved to path. A revision of the kind 'none' holds no content.
ALTER TABLE revisions ADD COLUMN change_id INTEGER;
ALTER TABLE revisions ADD COLUMN action TEXT NOT NULL DEFAULT 'write';
ALTER TABLE revisions ADD COLUMN hash_after TEXT;
ALTER TABLE revisions ADD COLUMN moved_from TEXT;
CREATE INDEX revisions_change ON revisions (change_id);
CREATE INDEX revisions_moved_from ON revisions (moved_from) WHERE moved_from IS NOT NULL;
