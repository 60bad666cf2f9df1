-- Tokens that open a part of the knowledge base to a client, and a log of who wrote what.

--: A token of a client. id is random, and never used again. hash is the SHA-256 of the secret, in hexadecimal; the
--: secret itself is stored nowhere. expires_at is NULL if it never expires. last_used is the day (UTC) of its last use.
CREATE TABLE access_tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    hash       TEXT NOT NULL UNIQUE,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    last_used  TEXT
);

--: A collection that a token opens; may_write is 1 if its files may be written, too. A collection that is renamed keeps
--: its tokens, and one that is removed loses them.
CREATE TABLE access_scopes (
    token_id   TEXT NOT NULL REFERENCES access_tokens (id) ON DELETE CASCADE,
    collection TEXT NOT NULL,
    may_write  INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (token_id, collection)
) WITHOUT ROWID;

--: Who wrote what. actor is the name of a token, '' for the administrator and for programs on the server's machine.
--: face is cli, mcp, rest, page or another part of the program; action is the tool or the command; target is a file or what else
--: was changed. The oldest rows are removed first.
CREATE TABLE audit (
    id      INTEGER PRIMARY KEY,
    at      TEXT NOT NULL,
    actor   TEXT NOT NULL,
    face    TEXT NOT NULL,
    session TEXT NOT NULL,
    action  TEXT NOT NULL,
    target  TEXT NOT NULL
);
CREATE INDEX audit_actor ON audit (actor, id);

-- A conversation belongs to the client that began it.
--: chats.owner: the id of the token whose client began the conversation; '' for the administrator.
ALTER TABLE chats ADD COLUMN owner TEXT NOT NULL DEFAULT '';
