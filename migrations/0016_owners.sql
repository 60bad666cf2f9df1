-- A team's server holds folders of its members, which they push.
--: collections.owner: Whose folder it is, if another machine pushes it; else "".
ALTER TABLE collections ADD COLUMN owner TEXT NOT NULL DEFAULT '';
