"""
Reads which folders other programs know on this machine: what an import of each takes.

basic-memory (checked with version 0.24.1) keeps its projects in ``config.json``; up to 0.18 a
project was its path alone. Obsidian keeps its vaults in ``obsidian.json``. `qmd.transfer.tobi` has
the program that knows more than folders.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from qmd.errors import NotFoundError
from qmd.transfer import tobi
from qmd.transfer.foreign_file import absolute, entries, read_json
from qmd.values.imports import ImportPlan, NotTaken, PlannedCollection

Program = Literal["tobi", "basic-memory", "obsidian"]
"""tobi/qmd, the program of the same name on npm; basic-memory; Obsidian."""


class _Folders(NamedTuple):
    """
    How a program keeps its folders.

    Attributes:
        places: Where its file may be: the first that is there, or else the last.
        key: What holds the folders in it, by their names.
        paths: The keys of the path of a folder, of which the first counts.
        is_named: Whether the names are for people.
        missing: Why a folder is not taken that has no path here.
    """

    places: Callable[[Mapping[str, str], Path], Sequence[Path]]
    key: str
    paths: tuple[str, ...]
    is_named: bool
    missing: str


def plan(program: Program, file: Path | None, environ: Mapping[str, str], home: Path) -> ImportPlan:
    """
    What a program has, in its file; None for the place where the program keeps it.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of the program.
    """
    if program == "tobi":
        return tobi.plan(file, environ, home)
    return read(program, file or _file(program, environ, home))


def read(program: Program, file: Path) -> ImportPlan:
    """The folders that a file names, the one that was opened last first. Raises as `plan`."""
    about = _PROGRAMS[program]
    collections: list[PlannedCollection] = []
    not_taken: list[NotTaken] = []
    folders = entries(read_json(file).get(about.key), file)
    for name, entry in sorted(folders.items(), key=lambda item: -_opened(item[1])):
        path = _path(entry, about.paths)
        if path is not None:
            collections.append(PlannedCollection(name if about.is_named else None, path))
        else:
            subject = name if about.is_named else f"{about.key.removesuffix('s')} {name}"
            not_taken.append(NotTaken(subject, about.missing))
    return ImportPlan(
        str(file), tuple(collections), not_taken=tuple(not_taken), names_are_free=True
    )


def _file(program: Program, environ: Mapping[str, str], home: Path) -> Path:
    places = _PROGRAMS[program].places(environ, home)
    file = next((each for each in places if each.is_file()), None)
    if file is None and program == "obsidian":
        raise NotFoundError(
            f"Obsidian has left no list of vaults: {places[0]}",
            hint="Index a vault by its folder: 'qmd up FOLDER'.",
        )
    return file or places[-1]


def obsidian_places(
    environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> list[Path]:
    """Where the file may be; on Linux the packages of Flatpak and snap have their own homes."""
    if platform == "win32":
        roots = [Path(environ.get("APPDATA") or home / "AppData/Roaming")]
    elif platform == "darwin":
        roots = [home / "Library/Application Support"]
    else:
        roots = [
            Path(environ.get("XDG_CONFIG_HOME") or home / ".config"),
            home / ".var/app/md.obsidian.Obsidian/config",
            home / "snap/obsidian/current/.config",
        ]
    return [root / "obsidian/obsidian.json" for root in roots]


def _basic_memory_places(environ: Mapping[str, str], home: Path) -> list[Path]:
    """By the rules of basic-memory; earlier versions did not look in XDG_CONFIG_HOME."""
    if directory := environ.get("BASIC_MEMORY_CONFIG_DIR"):
        return [Path(directory, "config.json")]
    directories = [home / ".basic-memory"]
    if directory := environ.get("XDG_CONFIG_HOME"):
        directories.insert(0, Path(directory, "basic-memory"))
    return [each / "config.json" for each in directories]


_PROGRAMS: Mapping[Program, _Folders] = {
    "basic-memory": _Folders(
        _basic_memory_places,
        "projects",
        ("local_sync_path", "cloud_sync_path", "path"),
        is_named=True,
        missing="The project has no folder on this machine.",
    ),
    "obsidian": _Folders(
        obsidian_places, "vaults", ("path",), is_named=False, missing="It names no folder."
    ),
}


def _path(entry: object, keys: Sequence[str]) -> str | None:
    """The path of a folder on this machine; None for one that is elsewhere."""
    values = [entry.get(key) for key in keys] if isinstance(entry, dict) else [entry]
    paths = (absolute(value) for value in values if isinstance(value, str))
    return next((path for path in paths if path is not None), None)


def _opened(entry: object) -> float:
    """When a folder was opened last, in milliseconds; 0 if nothing says so."""
    time = entry.get("ts") if isinstance(entry, dict) else None
    return time if isinstance(time, int | float) else 0
