"""Moves and renames notes, and rewrites the links that would lose their target."""
