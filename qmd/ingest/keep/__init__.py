"""The index kept true to the disk, by one process of all that have the database open."""
