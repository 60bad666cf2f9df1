-- For clients with a token: which documents are of a collection, and how long they are, without reading their rows.
CREATE INDEX documents_of_collection ON documents (collection_id, id);
CREATE INDEX document_tokens_length ON document_tokens (document_id) INCLUDE (length);
