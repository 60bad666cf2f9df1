"""Folders of other machines: the server keeps a copy of each, which is a collection."""
