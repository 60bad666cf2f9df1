-- The documents that changed last, of one collection or of all: without this index each answer
-- would read the whole table, with all texts.
CREATE INDEX documents_modified ON documents (collection_id, modified_at);
