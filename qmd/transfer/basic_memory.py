"""
Reads the projects of basic-memory from its ``config.json``.

Checked with version 0.24.1. Up to 0.18 a project was its path alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from qmd.transfer.foreign_file import absolute, entries, read_json
from qmd.values.imports import ImportPlan, NotTaken, PlannedCollection


def find_file(environ: Mapping[str, str], home: Path) -> Path:
    """The path of the configuration file, by the rules of basic-memory; it may be missing."""
    if directory := environ.get("BASIC_MEMORY_CONFIG_DIR"):
        return Path(directory, "config.json")
    if directory := environ.get("XDG_CONFIG_HOME"):
        file = Path(directory, "basic-memory", "config.json")
        if file.is_file():  # earlier versions did not look there
            return file
    return home / ".basic-memory" / "config.json"


def read(file: Path) -> ImportPlan:
    """
    What the configuration file says.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of basic-memory.
    """
    collections: list[PlannedCollection] = []
    not_taken: list[NotTaken] = []
    for name, entry in entries(read_json(file).get("projects"), file).items():
        path = _path(entry)
        if path is None:
            not_taken.append(NotTaken(name, "The project has no folder on this machine."))
        else:
            collections.append(PlannedCollection(name, path))
    return ImportPlan(
        str(file), tuple(collections), not_taken=tuple(not_taken), names_are_free=True
    )


def _path(entry: object) -> str | None:
    """The local folder of a project; None for one that is only in the cloud."""
    if isinstance(entry, str):
        return absolute(entry)
    if not isinstance(entry, dict):
        return None
    names = ("local_sync_path", "cloud_sync_path", "path")
    paths = (entry[name] for name in names if isinstance(entry.get(name), str))
    return next((path for path in map(absolute, paths) if path is not None), None)
