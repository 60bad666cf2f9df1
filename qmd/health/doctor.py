"""Runs the checks of `qmd doctor` on this installation and this database."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import QmdError, StoreError
from qmd.health import clients, keeping, machine, models
from qmd.models.backends import Backends
from qmd.models.embedder_choice import EmbedderChoice
from qmd.values import Check, Progress

if TYPE_CHECKING:
    from qmd.store import Store
    from qmd.values import ProgressCallback


def examine(
    store: Store,
    choice: EmbedderChoice,
    backends: Backends,
    home: Path,
    exiftool: str | Path | None = None,
    *,
    version: str,
    progress: ProgressCallback | None = None,
) -> list[Check]:
    """
    Run all checks, and return also those that report no problem.

    Models at servers are tested with a small request, and what AI clients start is started.
    """
    checks: list[Check] = []
    for findings in (
        machine.python(),
        _engine(store),
        _database(store, progress),
        _collections(store),
        models.examine(store, choice, backends),
        keeping.examine(store),
        machine.parser(),
        machine.exiftool(store, exiftool),
        machine.port(store.location),
        clients.examine(store.location, home, version),
    ):
        try:
            checks.extend(findings)
        except StoreError as error:  # a damaged part must not stop the other checks
            checks.append(Check("database", "error", str(error), error.hint))
    return checks


def _engine(store: Store) -> Iterator[Check]:
    is_file = isinstance(store.location, Path)
    yield Check("sqlite" if is_file else "postgresql", "ok", store.engine())
    vectors = "sqlite-vec" if is_file else "pgvector"
    with store.reading() as reader:
        try:
            engine = reader.vectors.require_engine()
        except QmdError as error:
            yield Check(vectors, "warning", str(error), error.hint)
        else:
            yield Check(vectors, "ok", engine)


def _database(store: Store, progress: ProgressCallback | None) -> Iterator[Check]:
    def tick(done: int, total: int, subject: str) -> None:
        if progress is not None:
            progress(Progress("check", done, total, subject))

    with store.reading() as reader:
        problems = reader.upkeep.problems(tick)
        applied = reader.upkeep.migrations()
        size = reader.upkeep.size_bytes()
    yield Check("schema", "ok", f"{store.location} ({size:,} bytes), migration {applied[-1]}")
    if problems:
        message = "The database is damaged: " + "; ".join(problems)
        yield Check("integrity", "error", message, store.damage_hint)
    else:
        is_file = isinstance(store.location, Path)
        sound = "SQLite finds no damage" if is_file else "The server checks its own pages"
        yield Check("integrity", "ok", sound)


def _collections(store: Store) -> Iterator[Check]:
    with store.reading() as reader:
        stored_collections = reader.collections.all()
        skipped = reader.files.all_skips()
    if not stored_collections:
        yield Check(
            "collections", "warning", "There is no collection.", "qmd collection add FOLDER"
        )
    for collection in stored_collections:
        name = f"collection {collection.name}"
        if not Path(collection.path).is_dir():
            yield Check(
                name,
                "error",
                f"Its directory {collection.path} is not there.",
                "Mount its disk, or 'qmd collection remove' it and add it where it is now.",
            )
        elif collection.last_indexed is None:
            message = "It has not been indexed to the end yet."
            yield Check(name, "warning", message, f"qmd index -c {collection.name}")
        else:
            yield Check(name, "ok", f"{collection.documents} documents from {collection.path}")
    if skipped:
        message = f"{len(skipped)} files could not be read as documents."
        yield Check(
            "skipped files",
            "warning",
            message,
            "qmd status lists them; qmd why FILE explains one.",
        )
