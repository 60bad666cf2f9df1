"""Metadata of photos: read, planned, and written by exiftool."""
