"""
Watch a collection on Linux, with one inotify watch for each directory that the rules include.

This uses `InotifyFD`, watchdog's reader of an inotify descriptor, which is not public. The public
`Observer` was tried with watchdog 7.1, and cannot take its place:

- With ``schedule(..., recursive=True)`` it watches every directory, even .git and node_modules,
  although a watch takes a kilobyte of the kernel's memory and a user may have some ten thousand.
  Below the root it silently ignores that this limit is used up.
- With ``recursive=False`` for each included directory it starts a thread for each: 1,003 threads
  and 22 MB for 1,000 directories, 5,003 threads and 113 MB for 5,000, where the reader takes one
  thread, .5 MB and 2.5 MB. With watchdog 6, the last for Python 3.10, each directory also takes an
  inotify instance, of which a user may have 128.
- If the queue of the kernel overflows, as in a checkout of many files, an observer drops what it
  holds and tells its handlers nothing: changes would be missed until the next walk. The reader
  calls `on_queue_overflow`, and the collection is walked at once.
- It holds a file that is moved out of a directory back for half a second, in which a search still
  shows it.
"""

# Paths are strings here, as in the scan:
# ruff: noqa: PTH118

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from watchdog.observers.inotify_c import (
    CallbackId,
    InotifyConstants,
    InotifyEvent,
    InotifyFD,
    Mask,
    WatchDescriptor,
)

from qmd.ingest.rules import IGNORE_FILES, RuledFolder, Rules
from qmd.ingest.scan import ScannedFile, ScanSkip, decide, descend

_CONTENT = InotifyConstants.IN_MODIFY | InotifyConstants.IN_CLOSE_WRITE | InotifyConstants.IN_ATTRIB
_GONE = InotifyConstants.IN_DELETE | InotifyConstants.IN_MOVED_FROM
_COME = InotifyConstants.IN_CREATE | InotifyConstants.IN_MOVED_TO
_MASK = Mask(
    _CONTENT
    | _GONE
    | _COME
    | InotifyConstants.IN_DELETE_SELF
    | InotifyConstants.IN_MOVE_SELF
    | InotifyConstants.IN_ONLYDIR
    | InotifyConstants.IN_DONT_FOLLOW
    | InotifyConstants.IN_EXCL_UNLINK
)
_UNWATCHABLE = {errno.ENOENT, errno.ENOTDIR, errno.EACCES, errno.ELOOP}


class InotifyWatch:
    """
    Watches the directories of one collection.

    Calls ``report`` with the paths that changed. The path "" means that any path may have changed,
    and that this watch is no longer complete (`stale`).

    Raises:
        OSError: The root cannot be watched, or a limit of the kernel is reached.
    """

    def __init__(
        self, inotify: InotifyFD, root: Path, rules: Rules, report: Callable[[Iterable[str]], None]
    ) -> None:
        self.stale = False
        self._inotify = inotify
        self._root = root
        self._real_root = os.path.realpath(root)
        self._rules = rules
        self._report = report
        self._id = CallbackId(id(self))
        self._lock = threading.RLock()
        # Only the paths are kept: the ignore files of thousands of folders could fill gigabytes.
        self._folders: dict[WatchDescriptor, str] = {}
        self._watched: dict[str, WatchDescriptor] = {}
        #: Where folders are made within each other, the next event is of this one. If an ignore
        #: file changes, another watch replaces this one.
        self._latest: RuledFolder | None = None
        self._closed = False
        try:
            os.scandir(root).close()
            self._add(None, "")
        except OSError:
            self.close()
            raise

    def close(self) -> None:
        with self._lock:
            self._closed = True
            descriptors = list(self._folders)
            self._folders.clear()
            self._watched.clear()
        self._inotify.remove_callbacks([(wd, self._id) for wd in descriptors])

    # -- called by the reader's thread -------------------------------------------------

    def on_event(self, event: InotifyEvent) -> None:
        with self._lock:
            folder_path = self._folders.get(event.wd)
            if folder_path is None or self._closed:
                return
            if not event.name:
                if not folder_path and not event.mask & _CONTENT:
                    self._mark_stale()  # the root itself was moved or removed
                return
            name = os.fsdecode(event.name)
            if name[0] == "." and name not in IGNORE_FILES:
                return
            path = f"{folder_path}/{name}" if folder_path else name
            if event.mask & InotifyConstants.IN_ISDIR:
                if not self._on_directory_event(event, path):
                    return
            elif (
                event.mask & _CONTENT
                and name not in IGNORE_FILES
                and not self._rules.matches_mask(path, name)
                and not self._rules.matches_canvas(path, name)
            ):
                return  # such as a log; the indexing run judges files that are created or removed
        self._report((path,))

    def _on_directory_event(self, event: InotifyEvent, path: str) -> bool:
        """
        Watch a new directory, and forget a removed one.

        Returns:
            Whether the path of the directory is to be reported.
        """
        if event.mask & _GONE:
            self._forget(path)
            return True
        if path in self._watched:  # the walk below a folder above it was here first
            return True
        folders = {self._latest.path: self._latest} if self._latest is not None else {}
        end = descend(self._rules, path, folders, self._real_root)
        if end.decision is not None:  # it is not to be watched, or gone, or no directory any more
            return isinstance(end.decision, (ScannedFile, ScanSkip, OSError))
        try:
            self._add(end.folder, path)
        except OSError:
            self._mark_stale()
            return False
        return True

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        with self._lock:
            path = self._folders.pop(wd, None)
            if path is not None and self._watched.get(path) == wd:
                del self._watched[path]
                if not path and not self._closed:
                    self._mark_stale()

    def on_queue_overflow(self) -> None:
        self._mark_stale()

    def _mark_stale(self) -> None:
        self.stale = True
        self._report(("",))

    # -- directories -------------------------------------------------------------------

    def _add(self, parent: RuledFolder | None, path: str) -> None:
        """Watch a directory and all directories below it that the rules include."""
        pending = [(parent, path)]
        while pending:
            parent, path = pending.pop()
            full_path = os.path.join(self._root, path)
            if not os.access(full_path, os.R_OK):
                continue
            if path not in self._watched:
                try:
                    wd = self._inotify.add_callback(os.fsencode(full_path), _MASK, self, self._id)
                except OSError as error:
                    if path and error.errno in _UNWATCHABLE:
                        continue
                    raise
                self._watched[path] = wd
                self._folders[wd] = path
            pending += self._included_folders(parent, path)

    def _included_folders(
        self, parent: RuledFolder | None, path: str
    ) -> list[tuple[RuledFolder | None, str]]:
        """List the included directories in the directory ``path``, each with its parent folder."""
        folder = (
            self._rules.root_folder() if parent is None else self._rules.subfolder(parent, path)
        )
        self._latest = folder
        # The watch on this directory exists already, so directories that are created from now on
        # cause events. Older ones are listed here.
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        paths = (f"{path}/{name}" if path else name for name in names)
        return [
            (folder, below)
            for below in paths
            if decide(self._rules, folder, below, None, self._real_root) is None
        ]

    def _forget(self, path: str) -> None:
        prefix = path + "/"
        removed = [
            watched for watched in self._watched if watched == path or watched.startswith(prefix)
        ]
        descriptors = [self._watched.pop(watched) for watched in removed]
        for wd in descriptors:
            del self._folders[wd]
        self._inotify.remove_callbacks([(wd, self._id) for wd in descriptors])
