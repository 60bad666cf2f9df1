"""
Uses the file formats of installed plugins.

An entry point of the group ``qmd.formats`` names a `qmd.parse.formats.FileFormat`, or several in a
tuple. What it converts is parsed in the same worker, within the same limits, as a file of any
format.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmd.parse import formats
from qmd.parse.formats import FileFormat
from qmd.system.plugins import offers


def offered(names: Iterable[str]) -> dict[str, tuple[FileFormat, ...] | str]:
    """The formats of these plugins, or a sentence that says why one has none."""
    return offers("formats", names, FileFormat, formats.problem_of)


def turn_on(names: tuple[str, ...]) -> None:
    """Read files of the formats of these plugins from now on, in this process."""
    values = offered(names).values()
    formats.turn_on(
        names, [each for several in values if not isinstance(several, str) for each in several]
    )
