-- A document with a few words such as C++ has these words replaced, instead of its text stored once more.
ALTER TABLE z_searchable ADD COLUMN replacements /* JSON: what makes the body and the frontmatter of the document's own. Strings, each before the one in its place. */ TEXT;

DROP VIEW IF EXISTS z_documents_fts_text;
CREATE VIEW z_documents_fts_text AS
-- The text that the full-text index is built from. It is for FTS5, not for people.
SELECT d.id,
       coalesce(s.title, d.title) AS title,
       s.headings,
       coalesce(s.body, iif(s.replacements IS NULL, substr(d.text, d.body_start + 1), (
           WITH RECURSIVE replaced (position, text) AS (
               SELECT 0, substr(d.text, d.body_start + 1)
               UNION ALL
               SELECT position + 2,
                      replace(text, json_extract(s.replacements, '$[' || position || ']'),
                              json_extract(s.replacements, '$[' || (position + 1) || ']'))
               FROM replaced WHERE position < json_array_length(s.replacements)
           )
           SELECT text FROM replaced ORDER BY position DESC LIMIT 1
       ))) AS body,
       coalesce(s.path, d.path) AS path,
       coalesce(s.front, iif(s.replacements IS NULL, substr(d.text, 1, d.body_start), (
           WITH RECURSIVE replaced (position, text) AS (
               SELECT 0, substr(d.text, 1, d.body_start)
               UNION ALL
               SELECT position + 2,
                      replace(text, json_extract(s.replacements, '$[' || position || ']'),
                              json_extract(s.replacements, '$[' || (position + 1) || ']'))
               FROM replaced WHERE position < json_array_length(s.replacements)
           )
           SELECT text FROM replaced ORDER BY position DESC LIMIT 1
       ))) || char(10) || s.words AS extra,
       coalesce(s.description, d.description) AS description
FROM z_searchable s JOIN documents d ON d.id = s.document_id;
