"""Bring folders and notes from other programs, and a whole knowledge base to another machine."""
