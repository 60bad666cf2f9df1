"""
The database: `open_store` opens one, `Store` reads and writes it.

    with store.reading() as reader: reader.documents.by_path("notes", "a.md")
    store.write(lambda writer: writer.collections.remove("notes"))

Each capability of `Reader` and `Writer` is a class in `sql`, whose statements serve both engines;
`sqlite` and `postgres` have what differs by nature. Nobody above this package imports those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.store import scoped_store
    from qmd.store.opening import open_store
    from qmd.store.reader import Reader, Writer
    from qmd.store.selection import Selection
    from qmd.store.store import Store

__all__ = ["Reader", "Selection", "Store", "Writer", "open_store", "scoped_store"]

__getattr__ = lazy.load(
    __name__,
    modules=("scoped_store",),
    attributes={
        "Reader": "qmd.store.reader",
        "Selection": "qmd.store.selection",
        "Store": "qmd.store.store",
        "Writer": "qmd.store.reader",
        "open_store": "qmd.store.opening",
    },
)
