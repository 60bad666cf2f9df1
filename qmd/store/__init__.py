"""All the SQL: one file, one writer thread, read-only readers."""
