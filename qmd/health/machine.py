"""Checks what this machine lets qmd do: parse apart, write into photos, guard its port."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.errors import ExifToolError
from qmd.files.photos.exiftool import ExifTool
from qmd.ingest import parse_workers
from qmd.ingest.mask import compile_mask
from qmd.parse.formats import PHOTO
from qmd.system import running, telemetry
from qmd.system.peer import Peers
from qmd.system.worker.jobs import MB
from qmd.values import Check

if TYPE_CHECKING:
    from qmd.store import Store
    from qmd.values.location import DatabaseLocation


def python() -> Iterator[Check]:
    """The interpreter, and whether its libraries report anything to anybody."""
    yield Check("python", "ok", f"Python {platform.python_version()} on {platform.platform()}")
    if telemetry.is_off():
        yield Check("telemetry", "ok", "Off: onnxruntime and the Hugging Face hub report nothing")
    else:
        yield Check(
            "telemetry",
            "warning",
            "This program imported onnxruntime before qmd: it looks up a host of Microsoft's and"
            " keeps a device id in your cache.",
            "Import qmd first, or set ORT_DISABLE_TELEMETRY=1 before the program starts.",
        )


def parser() -> Iterator[Check]:
    """Whether a separate process can parse files, and its limits; one is started for this."""
    problem = parse_workers.try_it()
    if problem is not None:
        yield Check(
            "parser",
            "warning",
            f"{problem} A file that is too much for its parser stops indexing, or the server.",
            "Let qmd start processes: look at 'ulimit -u', 'ulimit -v' and what confines it.",
        )
        return
    budget = parse_workers.budget_of("", 0)
    limits = f"{budget.cpu_s:g} s of CPU time and {budget.memory_bytes // MB} MB, more for large"
    message = f"A process of its own parses files; each may use {limits} texts"
    if sys.platform == "win32":
        message = "A process of its own parses files; one that gives no answer is ended"
    elif sys.platform != "linux":
        message += " (this system does not limit the memory)"
    yield Check("parser", "ok", message)


def exiftool(store: Store, command: str | Path | None) -> Iterator[Check]:
    """
    Whether metadata can be written into photos; a problem only where there are photos.

    ``command``: the exiftool that the settings name; None if they name none.
    """
    tool = ExifTool(command)
    try:
        yield Check("exiftool", "ok", f"exiftool {tool.version()} writes into photos")
    except ExifToolError as error:
        if command is None and error.cause == "missing" and not _has_photos(store):
            yield Check("exiftool", "ok", "exiftool is not installed; only photos would need it")
        else:
            message = f"Metadata cannot be written into photos: {error.reason}."
            yield Check("exiftool", "warning", message, error.hint)
    finally:
        tool.close()


def _has_photos(store: Store) -> bool:
    """Whether the mask of a collection includes photos."""
    with store.reading() as reader:
        masks = [compile_mask(collection.pattern) for collection in reader.collections.all()]
    names = [f"photo{suffix}" for suffix in PHOTO.suffixes]
    return any(matches(name, name) for matches in masks for name in names)


def port(database: DatabaseLocation) -> Iterator[Check]:
    """Whom the running server answers; if none runs, a server with default settings."""
    server = running.find(database)
    own_user_only = "programs of its own user (and of root) only"
    who = (
        "No server runs; without a token, one" if server is None else f"The server at {server.url}"
    )
    if server is not None and server.guard == "token":
        yield Check("port", "ok", f"{who} answers who has its token")
    elif server is not None and server.guard == "user":
        yield Check("port", "ok", f"{who} answers {own_user_only}")
    elif Peers.open() is None:  # this system does not tell whose program is at the other end
        yield Check(
            "port",
            "warning",
            f"{who} answers every user of this machine: this system does not tell whose program"
            " connects.",
            "If others use this machine: qmd server --token auto, or QMD_TOKEN.",
        )
    elif server is None:
        yield Check("port", "ok", f"No server runs; one would answer {own_user_only}")
    else:
        yield Check(
            "port",
            "warning",
            f"{who} answers every user of this machine.",
            "Start it anew, without --allow-other-users or with --token auto.",
        )
