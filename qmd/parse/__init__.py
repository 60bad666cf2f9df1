"""Bytes → document → chunks; pure, no input or output."""
