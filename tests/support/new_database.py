"""
New databases as copies of one that the program has made.

Thousands of tests begin with a new database. The program takes 15 ms of CPU to make it, a copy
takes 1. A process that a test starts makes it itself, and so do the tests of migrations.
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
    """

    def __init__(self) -> None:
        self.is_on = True

    def start(self, directory: Path) -> None:
        """``directory`` is where tests write."""
        first = directory / "new.sqlite"
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
        copy = directory / f"{threading.get_ident()}.sqlite"
        copy.write_bytes(content)
        try:
            os.link(copy, path)
        finally:
            copy.unlink()
