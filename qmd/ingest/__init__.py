"""Disk → store: scan, index, embed."""
