"""Find documents by their names."""
