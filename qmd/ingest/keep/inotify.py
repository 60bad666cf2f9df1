"""
Watch a collection on Linux, with one inotify watch for each directory that the rules include.

watchdog's own observer would watch every directory, .git and node_modules too (a watch costs
the kernel a kilobyte, and a user has some ten thousand), would hold back half of a rename for
half a second, and would ignore a used-up limit silently. This module uses watchdog's reader of
the inotify descriptor.
"""

# Strings, as the scan has them:
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
from qmd.system.surrogates import is_utf8

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
    Watches the directories of one collection. ``report`` is called with the paths that changed;
    "" means that anything may have changed, and that this watch is no longer complete (`stale`).

    Raises:
        OSError: The root cannot be watched, or a limit of the kernel is reached.
    """

    def __init__(
        self, inotify: InotifyFD, root: Path, rules: Rules, report: Callable[[Iterable[str]], None]
    ) -> None:
        self.stale = False
        self._inotify = inotify
        self._root = root
        self._rules = rules
        self._report = report
        self._id = CallbackId(id(self))
        self._lock = threading.RLock()
        # Only the paths: the ignore files that apply to thousands of folders may fill gigabytes.
        self._folders: dict[WatchDescriptor, str] = {}
        self._watched: dict[str, WatchDescriptor] = {}
        self._closed = False
        try:
            os.scandir(root).close()
            self._add(None, "")
        except OSError:
            self.close()
            raise

    @property
    def directories(self) -> int:
        """How many are watched."""
        return len(self._watched)

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
                    self._lose()  # the root itself was moved or removed
                return
            name = os.fsdecode(event.name)
            if name[0] == "." and name not in IGNORE_FILES:
                return
            path = f"{folder_path}/{name}" if folder_path else name
            if event.mask & InotifyConstants.IN_ISDIR:
                if not self._on_directory_event(event, folder_path, path, name):
                    return
            elif (
                event.mask & _CONTENT
                and name not in IGNORE_FILES
                and not self._rules.matches_mask(path, name)
            ):
                return  # a log, say; files that come and go are judged by the indexing run
        self._report((path,))

    def _on_directory_event(
        self, event: InotifyEvent, folder_path: str, path: str, name: str
    ) -> bool:
        """Watch a directory that came, forget one that went; whether its path is reported."""
        if event.mask & _GONE:
            self._forget(path)
            return True
        folder = self._rules.folder_at(folder_path)
        if self._rules.exclude_directory(folder, path, name) is not None:
            return False
        try:
            self._add(folder, path)
        except OSError:
            self._lose()
            return False
        return True

    def on_watch_deleted(self, wd: WatchDescriptor) -> None:
        with self._lock:
            path = self._folders.pop(wd, None)
            if path is not None and self._watched.get(path) == wd:
                del self._watched[path]
                if not path and not self._closed:
                    self._lose()

    def on_queue_overflow(self) -> None:
        self._lose()

    def _lose(self) -> None:
        self.stale = True
        self._report(("",))

    # -- directories -------------------------------------------------------------------

    def _add(self, parent: RuledFolder | None, path: str) -> None:
        """Watch a directory and all below it that the rules include."""
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
        """The directories in a watched one that the rules include, each with its parent."""
        folder = (
            self._rules.root_folder() if parent is None else self._rules.subfolder(parent, path)
        )
        # A directory that is created from here on has an event; older ones are listed.
        try:
            with os.scandir(os.path.join(self._root, path)) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []
        paths = {name: f"{path}/{name}" if path else name for name in names if is_utf8(name)}
        return [
            (folder, below)
            for name, below in paths.items()
            if not self._rules.exclude_directory(folder, below, name)
        ]

    def _forget(self, path: str) -> None:
        prefix = path + "/"
        gone = [p for p in self._watched if p == path or p.startswith(prefix)]
        descriptors = [self._watched.pop(p) for p in gone]
        for wd in descriptors:
            del self._folders[wd]
        self._inotify.remove_callbacks([(wd, self._id) for wd in descriptors])
