"""
The store in a PostgreSQL database, with psycopg 3.

psycopg is an optional dependency, the extra ``postgres``. Importing this package raises StoreError
where it is missing.
"""

from __future__ import annotations

from qmd.errors import StoreError

try:
    import psycopg  # noqa: F401
except ImportError as error:
    from qmd.system import installation

    raise StoreError(
        f"PostgreSQL needs the package psycopg, which cannot be imported: {error}.",
        hint=installation.current().install("psycopg[binary]"),
    ) from error
