-- A chunk keeps its vector while its document's title or its headings are read otherwise, until the new one is made.
ALTER TABLE chunks ADD COLUMN next_hash bytea;
COMMENT ON COLUMN chunks.next_hash IS
    'The hash of the text that is to be embedded in place of the one that has the hash in "hash": the title or the headings in front of the chunk are others now, and its own text is the same. Until then the vector of "hash" answers. NULL for almost all chunks.';
CREATE INDEX chunks_outdated ON chunks (document_id) WHERE next_hash IS NOT NULL;
