-- A person may leave a collection out of the searches that name none, such as an archive.
--: collections.included: 1 if searches that name no collection look in it.
ALTER TABLE collections ADD COLUMN included INTEGER NOT NULL DEFAULT 1;
