-- The ids of new changes are random, so that a client cannot tell from its own how much changes elsewhere.
ALTER TABLE changes ADD COLUMN position /* The order of changes; the id of a new one is random. */ INTEGER NOT NULL DEFAULT 0;
UPDATE changes SET position = id;
CREATE UNIQUE INDEX changes_position ON changes (position);
