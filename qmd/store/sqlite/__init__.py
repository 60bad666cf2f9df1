"""The store in one SQLite file: each class implements a protocol of `qmd.store`."""
