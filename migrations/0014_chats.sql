-- Conversations with the agent, and their turns.

--: A conversation. id is random, and part of its address. mode is read or write. summary is what the model wrote of the
--: first summarized turns, which do not fit into its window any more; '' if all fit.
CREATE TABLE chats (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    mode       TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    summary    TEXT NOT NULL DEFAULT '',
    summarized INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX chats_updated ON chats (updated_at DESC);

--: A question with all that came of it; number counts from 1 within the conversation. status is running, done, stopped,
--: failed, limit or interrupted. process is the one that runs the turn: its id, a dot, and when it started. answer is
--: the text of the answer, for searches. events is what happened, as JSON, to be shown again; messages is what was said
--: to the model and by it, as JSON, from which the conversation goes on. bytes is the length of both.
CREATE TABLE chat_turns (
    id         INTEGER PRIMARY KEY,
    chat_id    TEXT NOT NULL REFERENCES chats (id) ON DELETE CASCADE,
    number     INTEGER NOT NULL,
    question   TEXT NOT NULL,
    answer     TEXT NOT NULL,
    status     TEXT NOT NULL,
    started_at TEXT NOT NULL,
    seconds    REAL NOT NULL,
    process    TEXT NOT NULL,
    events     TEXT NOT NULL,
    messages   TEXT NOT NULL,
    bytes      INTEGER NOT NULL,
    UNIQUE (chat_id, number)
);
CREATE INDEX chat_turns_running ON chat_turns (status) WHERE status = 'running';
