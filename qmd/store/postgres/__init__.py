"""
The store in a PostgreSQL database, with psycopg 3.

psycopg is an optional dependency, the extra ``postgres``. Importing this package raises StoreError
where it is missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy, system
from qmd.errors import StoreError

if TYPE_CHECKING:
    from qmd.store.postgres import processes as processes
    from qmd.store.postgres import replicated as replicated
    from qmd.store.postgres import scope as scope
    from qmd.store.postgres import store as store
    from qmd.store.postgres import vectors as vectors

__getattr__ = lazy.load(__name__)

try:
    import psycopg  # noqa: F401
except ImportError as error:
    raise StoreError(
        f"PostgreSQL needs the package psycopg, which cannot be imported: {error}.",
        hint=system.installation.current().install("psycopg[binary]"),
    ) from error
