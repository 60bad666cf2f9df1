"""Bytes → document → chunks; pure, no input or output."""

PARSER_VERSION: int = 2
"""Raised whenever the same bytes give another result; stored documents are then parsed anew."""
