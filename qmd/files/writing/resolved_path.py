"""A path whose links have been followed once: what was checked there is what is opened there."""

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
    Where a path leads: ``target`` with all links followed, in the directory ``root`` or below.

    A link that is put in the way afterwards is not followed, neither here nor by the
    `FileWriter`.
    """

    root: Path
    target: Path

    def open(self, flags: int) -> int:
        """A descriptor of what lies there and nowhere else. Raises OSError."""
        return open_beneath(self.root, self._below, flags)

    def status(self) -> os.stat_result:
        """Of what lies there and nowhere else. Raises OSError."""
        return stat_beneath(self.root, self._below)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of the directory, for use inside the block. Raises OSError."""
        with scandir_beneath(self.root, self._below) as entries:
            yield entries

    @property
    def _below(self) -> str:
        return self.target.relative_to(self.root).as_posix()
