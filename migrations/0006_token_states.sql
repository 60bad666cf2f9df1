-- What late interaction compares: the states of the tokens of each embedded text, one bit per axis of a projection.

--: How the token states of a model are made into codes, one row per model that has some. recipe names the projection and
--: the form of the codes; code_bytes is the size of the code of one token; projection is empty for the default model,
--: whose projection is part of the program.
CREATE TABLE token_projections (
    id         INTEGER PRIMARY KEY,
    model_id   INTEGER NOT NULL UNIQUE REFERENCES models(id) ON DELETE CASCADE,
    recipe     TEXT NOT NULL,
    code_bytes INTEGER NOT NULL,
    projection BLOB NOT NULL
);

--: The token states of an embedded text: codes of code_bytes each, one for each distinct token that is kept. They come
--: and go with the vector in embeddings.
CREATE TABLE token_states (
    id           INTEGER PRIMARY KEY,
    embedding_id INTEGER NOT NULL REFERENCES embeddings(id) ON DELETE CASCADE,
    codes        BLOB NOT NULL
);
CREATE UNIQUE INDEX token_states_embedding ON token_states (embedding_id);

-- For a shell, where foreign keys are off.
CREATE TRIGGER embeddings_delete AFTER DELETE ON embeddings BEGIN
    DELETE FROM token_states WHERE embedding_id = old.id;
END;
CREATE TRIGGER models_delete AFTER DELETE ON models BEGIN
    DELETE FROM token_projections WHERE model_id = old.id;
END;
