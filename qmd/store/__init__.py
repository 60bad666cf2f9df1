"""
The database: `open_store` opens one, `Store` reads and writes it.

    with store.reading() as reader: reader.documents.by_path("notes", "a.md")
    store.write(lambda writer: writer.collections.remove("notes"))

Each capability of `Reader` and `Writer` is a class in `sql`, whose statements serve both engines;
`sqlite` and `postgres` have what differs by nature. Nobody above this package imports those: what
concerns files of databases, `copies` and `rescue`, is named here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.store import postgres as postgres
    from qmd.store import scoped as scoped
    from qmd.store import sqlite as sqlite
    from qmd.store import store as store
    from qmd.store.postgres.processes import ChangeFeed as ChangeFeed
    from qmd.store.postgres.processes import SharedLock as SharedLock
    from qmd.store.reader import Reader as Reader
    from qmd.store.reader import Writer as Writer
    from qmd.store.sql.filters import Selection as Selection
    from qmd.store.sqlite import copies as copies
    from qmd.store.sqlite import rescue as rescue
    from qmd.store.store import Store as Store
    from qmd.store.store import open_store as open_store

__getattr__ = lazy.load(
    __name__,
    attributes={
        "ChangeFeed": "qmd.store.postgres.processes",
        "Reader": "qmd.store.reader",
        "Selection": "qmd.store.sql.filters",
        "SharedLock": "qmd.store.postgres.processes",
        "Store": "qmd.store.store",
        "Writer": "qmd.store.reader",
        "open_store": "qmd.store.store",
    },
    libraries={"copies": "qmd.store.sqlite.copies", "rescue": "qmd.store.sqlite.rescue"},
)
