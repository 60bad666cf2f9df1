"""The numbered migrations of this program, and what a database that had some of them is to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from qmd import system
from qmd.errors import QmdError, SchemaTooNewError, StoreError
from qmd.values.location import DatabaseLocation


def migrations_folder(engine: str = "") -> Path:
    """
    Where the migrations are: in the package when installed, beside it in a checkout.

    ``engine``: the folder of those that are not SQLite's.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "migrations" / engine, package.parent / "migrations" / engine):
        if folder.is_dir():
            return folder
    raise StoreError(
        "The migrations are missing from this installation.",
        hint=system.installation.current().reinstall(),
    )


def available(folder: Path) -> list[str]:
    """The names of all migrations in a folder, in order."""
    return sorted(
        path.stem
        for path in folder.iterdir()
        if path.suffix in {".sql", ".py"} and path.stem[:4].isdigit()
    )


def is_current(
    done: Sequence[str],
    names: Sequence[str],
    location: DatabaseLocation,
    damaged: Callable[[], QmdError],
) -> bool:
    """
    Whether a database has had all migrations.

    Args:
        done: Those that it records.
        names: Those of this program.
        damaged: Makes the error that is raised if no program has applied just these.

    Raises:
        SchemaTooNewError: A newer qmd has written this database.
    """
    newer = [name for name in done if name not in names]
    if not all(map(_is_name, done)) or (not newer and done != names[: len(done)]):
        raise damaged()
    if newer:
        raise SchemaTooNewError(
            f"The database {location} was written by a newer qmd (it has migration {newer[-1]}).",
            hint=f"Upgrade this one: {system.installation.current().upgrade()}. If it was upgraded"
            " while a program ran, start that again.",
        )
    return done == names


def _is_name(name: object) -> bool:
    return isinstance(name, str) and name[:4].isdigit() and name[4:5] == "_" and name.isprintable()
