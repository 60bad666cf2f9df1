-- What models said, and one set of vectors being made while another answers.

--: What models said to questions: expansions (JSON), scores of passages (a number as text), vectors of questions
--: (float32). hash is made of what was asked. The oldest go first; all of it may be deleted at any time.
CREATE TABLE model_cache (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    model      TEXT NOT NULL,
    hash       BLOB NOT NULL,
    value      BLOB NOT NULL,
    created_at TEXT NOT NULL
);
CREATE UNIQUE INDEX model_cache_hash ON model_cache (hash, kind, model);
CREATE INDEX model_cache_age ON model_cache (kind, id);

-- The model whose vectors are being made while those of the active one answer has next = 1.
ALTER TABLE models ADD COLUMN next INTEGER NOT NULL DEFAULT 0;
-- What was put in front of a question and of a passage.
ALTER TABLE models ADD COLUMN query_prefix TEXT NOT NULL DEFAULT '';
ALTER TABLE models ADD COLUMN passage_prefix TEXT NOT NULL DEFAULT '';
-- The vectors made for the next model; taken over into model_id when all are there.
ALTER TABLE chunks ADD COLUMN next_model_id INTEGER;
