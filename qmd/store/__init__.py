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
    from qmd.store import postgres, scoped, sqlite, store
    from qmd.store.postgres.processes import ChangeFeed, SharedLock
    from qmd.store.reader import Reader, Writer
    from qmd.store.sql.filters import Selection
    from qmd.store.sqlite import copies, rescue
    from qmd.store.store import Store, open_store

__all__ = [
    "ChangeFeed",
    "Reader",
    "Selection",
    "SharedLock",
    "Store",
    "Writer",
    "copies",
    "open_store",
    "postgres",
    "rescue",
    "scoped",
    "sqlite",
    "store",
]

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
