"""The query language: parse a string into terms, exclusions and tags."""
