-- The table common_words has the beginnings of words, too. A table without them would be read as if no other word
-- began so; the next 'qmd index' or the server computes it anew.
DELETE FROM common_words;
DELETE FROM common_word_builds;
DELETE FROM changed_documents;
