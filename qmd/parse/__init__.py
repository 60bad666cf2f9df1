"""Parses the bytes of a file into a document and its chunks, without input or output."""

PARSER_VERSION: int = 4
"""To be raised when the same bytes give another result; stored documents are then parsed anew."""
