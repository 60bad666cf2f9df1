"""A path whose links were followed once, so that the file that was checked is the file opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from qmd.system.beneath import open_beneath, scandir_beneath, stat_beneath


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """
    A path without links: ``target`` is the directory ``root`` or lies below it.

    If a part of the path is replaced by a link afterwards, neither this class nor the `FileWriter`
    follows the link.
    """

    root: Path
    target: Path

    def open(self, flags: int) -> int:
        """Open the target without following links; returns a descriptor. Raises OSError."""
        return open_beneath(self.root, self._below, flags)

    def status(self) -> os.stat_result:
        """The status of the target, without following links. Raises OSError."""
        return stat_beneath(self.root, self._below)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of the target, a directory; valid inside the block. Raises OSError."""
        with scandir_beneath(self.root, self._below) as entries:
            yield entries

    @property
    def _below(self) -> str:
        return self.target.relative_to(self.root).as_posix()
