"""Retrieval by meaning, from vectors."""
