"""Processes as Linux lists them."""

from __future__ import annotations

from pathlib import Path


def children_of(pid: int) -> list[int]:
    """The numbers of a process's children, also of those that have ended unheard."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(entry.parent.name))
    return found
