-- With them a search reads nothing but this index: it need not look up each document's length, nor the places of a token
-- that may be in a field that does not count.
ALTER TABLE postings ADD COLUMN length integer, ADD COLUMN fields smallint;
UPDATE postings p SET length = t.length,
    fields = (SELECT bit_or(1 << (place >> 26)) FROM unnest(p.places) place)
FROM document_tokens t WHERE t.document_id = p.document_id;
ALTER TABLE postings ALTER COLUMN length SET NOT NULL, ALTER COLUMN fields SET NOT NULL,
    DROP CONSTRAINT postings_pkey, ADD PRIMARY KEY (token, document_id) INCLUDE (weight, length, fields);
COMMENT ON TABLE postings IS
    'Which documents hold a token, and where. token is the stem of a word as SQLite''s FTS5 makes it (porter, without accents); of more than 400 characters the first, and a hash of all. places are field * 2^26 + position, ascending; fields are 0 title, 1 headings, 2 body, 3 path, 4 extra, 5 description. weight is the number of places, weighted by field, as bm25 counts it; length is the number of tokens of the document; the column fields has the bit 2^field for each field that holds the token. Try: SELECT d.path FROM postings p JOIN documents d ON d.id = p.document_id WHERE p.token = ''backup'' ORDER BY weight DESC';
