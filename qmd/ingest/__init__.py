"""Find changed files, parse and store them, and embed their chunks."""
