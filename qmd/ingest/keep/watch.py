"""Watch collections for changes: by file events if the system has them, otherwise by polling."""

# Paths are strings here, as in the scan:
# ruff: noqa: PTH116, PTH118

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Protocol

from qmd.ingest.read_file import settled
from qmd.ingest.rules import Rules, directories_above
from qmd.ingest.scan import ScannedFile, ScanSkip, scan, unreadable_root
from qmd.values import Collection

if TYPE_CHECKING:
    from watchdog.events import FileSystemEvent
    from watchdog.observers.api import BaseObserver
    from watchdog.observers.inotify_c import InotifyFD

_LINUX: bool = sys.platform == "linux"

#: The shortest time between two looks of a polling watch, in seconds.
POLL_S = 2.0
#: The share of a core that polling may use.
POLL_SHARE = 0.1
#: A burst ends after this many seconds without an event. An editor saves in several steps, and a
#: checkout writes hundreds of files.
QUIET_S = 0.1
#: A burst ends after this many seconds at the latest, because some files are written all the time.
LONGEST_S = 0.5
#: If more paths of a collection than this have changed, walking all of it is cheaper.
MOST_PATHS = 500
#: File systems that other machines can change without an event of this kernel.
REMOTE = frozenset(
    {
        *("9p", "afs", "ceph", "cifs", "davfs", "drvfs", "ncpfs", "nfs", "nfs4", "prl_fs"),
        *("fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs", "smb2", "smb3", "smbfs"),
        *("vboxsf", "vmhgfs"),
    }
)

ReportPaths = Callable[[Iterable[str]], None]


class ChangedPaths:
    """
    Passes changed paths from the threads that watch to the thread that indexes. Thread-safe.

    A path is relative to the root of its collection; "" says that any file may have changed.
    """

    def __init__(
        self,
        quiet_s: float = QUIET_S,
        longest_s: float = LONGEST_S,
        *,
        on_burst: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_burst``: called at the first path of a burst, on the thread that adds it."""
        self._on_burst = on_burst
        self._quiet_s = quiet_s
        self._longest_s = longest_s
        self._condition = threading.Condition()
        self._paths: dict[int, set[str]] = {}
        self._first = self._last = 0.0
        self._woken = False

    def add(self, collection_id: int, paths: Iterable[str]) -> None:
        """Add changed paths of a collection."""
        with self._condition:
            gathered = self._paths.setdefault(collection_id, set())
            gathered.update(paths)
            if len(gathered) > MOST_PATHS:
                gathered.clear()
                gathered.add("")
            self._last = monotonic()
            is_first = not self._first
            if is_first:
                self._first = self._last
            self._condition.notify_all()
        if is_first:
            self._on_burst()

    def take(self, timeout_s: float) -> dict[int, set[str]]:
        """
        Wait for the end of a burst, and return its paths.

        Returns:
            Collection id → paths; empty if `wake` was called or ``timeout_s`` seconds have passed.
            The paths gathered so far then stay for the next call.
        """
        deadline = monotonic() + timeout_s
        with self._condition:
            while not self._woken:
                now = monotonic()
                ready = self._ready_at()
                if ready <= now:
                    paths, self._paths, self._first = self._paths, {}, 0.0
                    return paths
                if now >= deadline:
                    return {}
                self._condition.wait(min(ready, deadline) - now)
            self._woken = False
            return {}

    def is_ready(self) -> bool:
        """Whether a burst has ended, so that `take` would return its paths at once."""
        with self._condition:
            return self._ready_at() <= monotonic()

    def _ready_at(self) -> float:
        """When the present burst ends at the latest; infinite without one."""
        if not self._paths:
            return math.inf
        return min(self._last + self._quiet_s, self._first + self._longest_s)

    def wake(self) -> None:
        """Make the running `take`, or the next one, return at once."""
        with self._condition:
            self._woken = True
            self._condition.notify_all()

    def __len__(self) -> int:
        with self._condition:
            return sum(map(len, self._paths.values()))


class FolderWatch(Protocol):
    """
    The watch of one collection.

    Attributes:
        stale: The watch is incomplete, and a new one must replace it.
    """

    stale: bool

    def close(self) -> None: ...


class WatchFactory:
    """Creates the watches of a process and owns the threads that they share."""

    def __init__(
        self, changes: ChangedPaths, *, polling: bool = False, poll_s: float = POLL_S
    ) -> None:
        self._changes = changes
        self._polling = polling
        self._poll_s = poll_s
        self._inotify: InotifyFD | None = None
        self._observer: BaseObserver | None = None

    def start(self, collection: Collection) -> tuple[FolderWatch, str | None]:
        """
        Watch a collection.

        Returns:
            The watch, and a sentence that says why it polls; None if it does not poll, or if this
            factory is to poll anyway.

        Raises:
            NotFoundError, InputError: The directory of the collection cannot be read.
        """
        root = Path(collection.path)
        rules = Rules.of_collection(collection)

        def report(paths: Iterable[str]) -> None:
            self._changes.add(collection.id, paths)

        reason = self._why_not_native(root)
        if reason is None:
            try:
                return self._start_native(root, rules, report), None
            except OSError as error:
                if isinstance(error, (FileNotFoundError, NotADirectoryError, PermissionError)):
                    raise unreadable_root(root, error) from error
                reason = f"{error.strerror or error}"
        notice = (
            f"{collection.name}: no file events here ({reason}); looking for changes"
            f" every {self._poll_s:g} s or more."
        )
        return PollingWatch(root, rules, report, self._poll_s), None if self._polling else notice

    def _why_not_native(self, root: Path) -> str | None:
        """The reason why there are no file events for ``root``, as a clause; None if there are."""
        if self._polling:
            return "polling was asked for"
        if _LINUX and not _has_inotify_reader():
            return "they need watchdog 7, and that Python 3.11"
        file_system_type = file_system(root)
        return f"{file_system_type} does not report them" if file_system_type in REMOTE else None

    def _start_native(self, root: Path, rules: Rules, report: ReportPaths) -> FolderWatch:
        if _LINUX:
            from watchdog.observers.inotify_c import InotifyFD

            from qmd.ingest.keep.inotify import InotifyWatch

            if self._inotify is None:
                self._inotify = InotifyFD()
                self._inotify.start()
            return InotifyWatch(self._inotify, root, rules, report)
        return self._start_observed(root, report)

    def _start_observed(self, root: Path, report: ReportPaths) -> FolderWatch:
        from watchdog.observers import Observer

        if self._observer is None:
            self._observer = Observer()
            self._observer.start()
        return ObserverWatch(self._observer, root, report)

    def close(self) -> None:
        """End the shared threads. Close all watches first."""
        for thread in (self._inotify, self._observer):
            if thread is not None:
                thread.stop()
                thread.join()
        self._inotify = self._observer = None


def _has_inotify_reader() -> bool:
    """
    Whether watchdog has `InotifyFD`.

    Version 6, the last for Python 3.10, lacks it, and the observer of that version misses moved
    folders.
    """
    from watchdog.observers import inotify_c

    return hasattr(inotify_c, "InotifyFD")


class ObserverWatch:
    """Uses watchdog's observer for macOS and Windows, where one watch covers a whole tree."""

    stale = False

    def __init__(self, observer: BaseObserver, root: Path, report: ReportPaths) -> None:
        self._root = os.path.realpath(root)
        self._report = report
        self._observer = observer
        self._watch = observer.schedule(self, self._root, recursive=True)  # type: ignore[arg-type]

    def dispatch(self, event: FileSystemEvent) -> None:
        """Handle an event; watchdog calls this."""
        if event.event_type in ("opened", "closed_no_write"):
            return
        if event.is_directory and event.event_type == "modified":
            return  # the changed entries have separate events
        for name in (event.src_path, event.dest_path):
            if not name:
                continue
            path = os.path.relpath(os.fsdecode(name), self._root).replace(os.sep, "/")
            if path == ".":
                self.stale = event.event_type in ("deleted", "moved")
                self._report(("",))
            elif not path.startswith("../"):
                self._report((path,))

    def close(self) -> None:
        self._observer.unschedule(self._watch)


class PollingWatch:
    """
    Scans the tree again and again, as an indexing run does, and compares the results.

    watchdog's PollingObserver would scan the excluded folders too, and would never pause.
    """

    stale = False

    def __init__(self, root: Path, rules: Rules, report: ReportPaths, every_s: float) -> None:
        self._root = root
        self._rules = rules
        self._report = report
        self._every_s = every_s
        self.next_look = 0.0
        self._items = self._scan()

    def look(self) -> None:
        """Report the paths that changed since the last look. Raises NotFoundError, InputError."""
        items = self._scan()
        previous_items, self._items = self._items, items
        changed = {
            # The printable form of a bad name is not the name of a file, so report the folder.
            path.rpartition("/")[0]
            if _is_bad_name(previous_items.get(path), items.get(path))
            else path
            for path in previous_items.keys() | items.keys()
            if previous_items.get(path) != items.get(path)
        }
        if changed:
            self._report(changed)

    def _scan(self) -> dict[str, ScannedFile | ScanSkip]:
        started = monotonic()
        now_ns = time.time_ns()
        try:
            walk = scan(self._root, self._rules)
            items = {item.path: _settled(item, now_ns) for item in walk}
            # Of a file that is no document only the name counts: it may be what a link names.
            items.update((path, ScanSkip(path, "excluded", "")) for path in walk.others)
            return items
        finally:
            duration_s = monotonic() - started
            self.next_look = monotonic() + max(self._every_s, duration_s / POLL_SHARE)

    def close(self) -> None:
        self._items = {}


def _settled(item: ScannedFile | ScanSkip, now_ns: int) -> ScannedFile | ScanSkip:
    """A very recent file differs from the same file in a later scan (see `settled`)."""
    if isinstance(item, ScannedFile):
        return ScannedFile(item.path, settled(item.state, now_ns))
    return item


def _is_bad_name(*items: ScannedFile | ScanSkip | None) -> bool:
    return any(isinstance(item, ScanSkip) and item.reason == "bad file name" for item in items)


def file_system(path: Path) -> str | None:
    """The type of the file system that a path is on; None if it cannot be found out."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    longest_mount_point, file_system_type = "", None
    for line in lines.splitlines():
        fields, _, rest = line.partition(" - ")
        mount_point = fields.split()[4].replace("\\040", " ")
        is_below = str(path) == mount_point or str(path).startswith(os.path.join(mount_point, ""))
        if is_below and len(mount_point) >= len(longest_mount_point):
            longest_mount_point, file_system_type = mount_point, rest.split()[0]
    return file_system_type


def root_identity(root: Path) -> tuple[object, ...] | None:
    """
    A value that changes when the root is replaced, or when an ignore file above it changes.

    None while the root does not exist.
    """
    try:
        status = os.stat(root)
    except OSError:
        return None
    identity: list[object] = [status.st_dev, status.st_ino]
    for directory in directories_above(os.path.realpath(root)):
        with suppress(OSError):
            status = os.stat(os.path.join(directory, ".gitignore"))
            identity += [directory, status.st_mtime_ns, status.st_ino, status.st_size]
    return tuple(identity)
