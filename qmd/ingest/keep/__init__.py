"""Keep the index in line with the disk, in one process of all that have the database open."""
