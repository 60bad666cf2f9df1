"""Reads which vaults Obsidian knows on this machine, from its ``obsidian.json``."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from qmd.errors import NotFoundError
from qmd.transfer.foreign_file import absolute, entries, read_json
from qmd.values.imports import ImportPlan, NotTaken, PlannedCollection

_HINT = "Index a vault by its folder: 'qmd up FOLDER'."


def places(
    environ: Mapping[str, str], home: Path, platform: str = sys.platform
) -> tuple[Path, ...]:
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
    return tuple(root / "obsidian/obsidian.json" for root in roots)


def find_file(environ: Mapping[str, str], home: Path) -> Path:
    """The file of this machine. Raises NotFoundError."""
    candidates = places(environ, home)
    for file in candidates:
        if file.is_file():
            return file
    raise NotFoundError(f"Obsidian has left no list of vaults: {candidates[0]}", hint=_HINT)


def read(file: Path) -> ImportPlan:
    """
    The vaults that the file names, the one that was opened last first.

    Raises:
        NotFoundError, InputError: There is no such file, or it is not one of Obsidian.
    """
    vaults = entries(read_json(file).get("vaults"), file)
    collections: list[PlannedCollection] = []
    not_taken: list[NotTaken] = []
    for vault_id, vault in sorted(vaults.items(), key=lambda item: -_opened(item[1])):
        text = vault.get("path") if isinstance(vault, dict) else None
        path = absolute(text) if isinstance(text, str) else None
        if path is None:
            not_taken.append(NotTaken(f"vault {vault_id}", "It names no folder."))
        else:
            collections.append(PlannedCollection(None, path))
    return ImportPlan(
        str(file), tuple(collections), not_taken=tuple(not_taken), names_are_free=True
    )


def _opened(vault: object) -> float:
    """When a vault was opened last, in milliseconds; 0 if nothing says so."""
    time = vault.get("ts") if isinstance(vault, dict) else None
    return time if isinstance(time, int | float) else 0
