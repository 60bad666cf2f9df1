"""Retrieval by words, from full text."""
