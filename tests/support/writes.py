"""Changes of one file each, through the `FileWriter` of a knowledge base."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from qmd.files.writing.writer import FileWriter, Written


def write(files: FileWriter, path: str | Path, data: bytes, *, tool: str = "test") -> Written:
    """Replace the whole content."""
    return files.rewrite(path, lambda _: data, tool=tool)


def append(
    files: FileWriter,
    path: str | Path,
    added: Callable[[bytes | None], bytes],
    *,
    tool: str = "test",
) -> Written:
    """Put behind the content what ``added`` makes of it."""
    return files.rewrite(path, lambda old: (old or b"") + added(old), tool=tool)


def delete(
    files: FileWriter, path: str | Path, *, tool: str = "test", if_hash: str | None = None
) -> Written:
    """Delete a file into the history."""
    with files.change(tool=tool) as change:
        written = change.delete(path, if_hash=if_hash)
    return replace(written, change=change.number, problem=change.problem)


def move(
    files: FileWriter,
    source: str | Path,
    target: str | Path,
    *,
    tool: str = "test",
    if_hash: str | None = None,
) -> Written:
    """Move or rename a file."""
    with files.change(tool=tool) as change:
        written = change.move(source, target, if_hash=if_hash)
    return replace(written, change=change.number, problem=change.problem)
