-- Where a Markdown link leads depends on whether the folder is an Obsidian vault.
--: collections.is_vault: Whether the folder was an Obsidian vault (with a folder .obsidian) when it was scanned last; NULL before.
ALTER TABLE collections ADD COLUMN is_vault INTEGER;
