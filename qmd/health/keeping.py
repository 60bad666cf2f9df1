"""Checks how far the index is behind the disk, who keeps it, and whether file events suffice."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from qmd.errors import InputError, NotFoundError
from qmd.ingest.keep import freshness
from qmd.ingest.keep.lock import is_kept, lock_name
from qmd.ingest.keep.watch import REMOTE, file_system
from qmd.ingest.rules import Rules
from qmd.ingest.scan import ScannedFile, scan
from qmd.values import Check, Collection

if TYPE_CHECKING:
    from qmd.store import Store

LIMIT = Path("/proc/sys/fs/inotify/max_user_watches")
#: The share of the limit that qmd may use: other programs of the same user watch folders too.
SHARE = 0.5


class Drift(NamedTuple):
    """
    The numbers of files that an index run would add, update, remove and leave unchanged.

    ``directories`` is the number of directories that the run walks.
    """

    new: int
    changed: int
    gone: int
    unchanged: int
    directories: int

    def __str__(self) -> str:
        return f"{self.new} new, {self.changed} changed, {self.gone} gone"


def examine(store: Store) -> Iterator[Check]:
    """Check whether a process keeps the index, what it reports, and how far the index is behind."""
    pid = freshness.keeper_pid(store)
    fresh = freshness.read_freshness(store)
    if is_kept(store):
        who = "A process" if pid is None else f"Process {pid}"
        if fresh.keeper is not None:
            who = fresh.keeper.replace("process", "Process", 1)
        how = {"polling": ", by looking again and again", "off": ", without watching"}
        yield Check("keeper", "ok", f"{who} keeps the index{how.get(fresh.watch, '')}")
    else:
        yield Check(
            "keeper",
            "ok",
            "No process keeps the index just now ('qmd watch', 'qmd up' and 'qmd server' do);"
            f" {lock_name(store)} is free",
        )
    for notice in fresh.notices:
        yield Check("keeper", "warning", notice, "'qmd doctor' again when it is mended")
    with store.reading() as reader:
        collections = reader.collections.all()
    directories = 0
    for collection in collections:
        try:
            drift = find_drift(store, collection)
        except (NotFoundError, InputError):
            continue  # `doctor` reports what is wrong with its folder
        directories += drift.directories
        yield _drift(collection, drift, kept=is_kept(store))
        kind = file_system(Path(collection.path))
        if kind in REMOTE:
            yield Check(
                f"events {collection.name}",
                "warning",
                f"It lies on {kind}, which does not report what other machines change;"
                " a keeper looks again and again.",
                "Keep the index on the machine that holds the files, if that is too slow.",
            )
    yield from _watch_limit(directories)


def find_drift(store: Store, collection: Collection) -> Drift:
    """
    Compare the stored states of files with the disk, without reading any file.

    Raises:
        NotFoundError, InputError: The folder cannot be scanned.
    """
    root = Path(collection.path)
    walk = scan(root, Rules(root, collection.pattern, collection.ignore))
    with store.reading() as reader:
        stored = reader.files.in_collection(collection.id)
        skips = reader.files.skips_in_collection(collection.id)
    new = changed = unchanged = 0
    for item in walk:
        if not isinstance(item, ScannedFile):
            continue
        document = stored.pop(item.path, None)
        if document is not None:
            present, recorded = item.state, document.state
            # The state of a file that changed just before it was indexed has the inode -1.
            is_same = present == recorded or (recorded.inode == -1 and present[:2] == recorded[:2])
            unchanged, changed = unchanged + is_same, changed + (not is_same)
        elif item.path not in skips:
            new += 1
    return Drift(new, changed, len(stored), unchanged, walk.directories)


def _drift(collection: Collection, drift: Drift, *, kept: bool) -> Check:
    name = f"drift {collection.name}"
    if not (drift.new or drift.changed or drift.gone):
        return Check(name, "ok", f"The index is as the disk: {_count(drift.unchanged, 'file')}")
    remedy = "Nothing, if it is gone in a minute; else 'qmd index --verify'." if kept else None
    return Check(
        name,
        "warning",
        f"The disk is ahead of the index: {drift}.",
        remedy or f"qmd index -c {collection.name}",
    )


def _watch_limit(directories: int) -> Iterator[Check]:
    """Check that the kernel (Linux only) lets a user watch ``directories`` directories."""
    if sys.platform != "linux":
        return
    try:
        limit = int(LIMIT.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return
    if directories > limit * SHARE:
        yield Check(
            "file events",
            "warning",
            f"The collections have {directories:,} folders, and the kernel lets a user watch"
            f" {limit:,}; where that does not suffice, a keeper looks again and again.",
            f"sudo sysctl fs.inotify.max_user_watches={max(524288, 4 * directories)}"
            " (and the same line in /etc/sysctl.d/)",
        )
    else:
        folders = _count(directories, "folder")
        yield Check("file events", "ok", f"{folders} to watch; the kernel allows {limit:,}")


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
