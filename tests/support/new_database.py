"""
New databases as copies of one that the program has made.

Thousands of tests begin with a new database. The program takes 15 ms of CPU to make it, a copy
takes 1. Tests of the migrations, and of what happens while they run, are marked ``migrates``.
"""

from __future__ import annotations

import contextlib
import os
import threading
from pathlib import Path
from typing import Any

from qmd import KnowledgeBase
from qmd.store.sqlite.store import SqliteStore


class NewDatabases:
    """
    Makes new databases of this process copies, from `start` on.

    Attributes:
        is_on: False lets the store make them, as outside the tests.
        directory: Where the first one is; empty before `start`.
    """

    def __init__(self) -> None:
        self.is_on = True
        self.directory = ""

    def start(self, directory: Path) -> None:
        """``directory`` is where tests write. A fork begins with the database of its parent."""
        self.directory = str(directory)
        first = directory / "new.sqlite"
        if not first.exists():
            with KnowledgeBase.open(first, create=True):
                pass
        content = first.read_bytes()
        begin = SqliteStore.__init__

        def begun(store: SqliteStore, path: Path, *, create: bool = False, **options: Any) -> None:
            if self.is_on and create and not options.get("read_only"):
                _put(content, path, directory)
            begin(store, path, create=create, **options)

        SqliteStore.__init__ = begun  # type: ignore[method-assign]


def _put(content: bytes, path: Path, directory: Path) -> None:
    """In one step, and only where nothing is; elsewhere the store does what it always does."""
    with contextlib.suppress(OSError, ValueError):  # the second: a path that no system has
        if os.path.lexists(path) or os.path.lexists(f"{path}-wal"):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        copy = directory / f"{os.getpid()}-{threading.get_ident()}.sqlite"
        copy.write_bytes(content)
        try:
            os.link(copy, path)
        finally:
            copy.unlink()


new_databases = NewDatabases()
