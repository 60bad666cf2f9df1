"""
Scan a directory for the files of a collection, in the order of their paths.

Only directories and ignore files are opened, and no symbolic link is followed.
"""

# Path objects would cost more than the scan itself:
# ruff: noqa: PTH112, PTH116, PTH118

from __future__ import annotations

import errno
import marshal
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from pathlib import Path
from typing import Any, Generic, TypeVar

from qmd.errors import InputError, NotFoundError
from qmd.ingest.rules import (
    DEPENDENCIES,
    HIDDEN,
    IGNORE_FILES,
    PICTURES,
    VAULT_FOLDER,
    Exclusion,
    RuledFolder,
    Rules,
    VaultRule,
)
from qmd.parse.formats import format_of
from qmd.records import NamedTuple, dataclass, of_tuples
from qmd.system.beneath import MAX_DEPTH, Descent, walk_beneath
from qmd.values import FileState
from qmd.values.text import is_utf8

#: SQLite's integers have 63 bits and a sign; inodes have 64, on some systems 128, and times may
#: lie beyond the year 2262.
LARGEST = (1 << 63) - 1
#: At most so many excluded files of a collection are named; a source tree may have millions.
MAX_OTHERS = 200_000


T = TypeVar("T")
#: So many rows are unpacked at once.
_PACKED = 256


class ScannedFile(NamedTuple):
    """
    A file that the rules include.

    ``path`` is relative to the root, with ``/``, its characters as the disk has them (no
    Unicode normalisation).
    """

    path: str
    state: FileState


def is_readable(path: str) -> bool:
    """Whether this process may read a file; it is not opened, which may fetch it from elsewhere."""
    return os.access(path, os.R_OK, effective_ids=os.access in os.supports_effective_ids)


_file_state = of_tuples(FileState)
_scanned_file = of_tuples(ScannedFile)


class PackedRows(Generic[T]):
    """
    Values in the order in which they were added, each kept as a row of plain values.

    The path and the state of a file take some seventy bytes so, as objects nearly four hundred.

    Args:
        value_of: Makes a value of its row, each time that it is read.
    """

    def __init__(
        self, value_of: Callable[[tuple[Any, ...]], T], rows: Iterable[tuple[Any, ...]] = ()
    ) -> None:
        self._value_of = value_of
        self._packed: list[bytes] = []
        self._unpacked: list[tuple[Any, ...]] = []
        for row in rows:
            self.append(row)

    def append(self, row: tuple[Any, ...]) -> None:
        self._unpacked.append(row)
        if len(self._unpacked) == _PACKED:
            self._packed.append(marshal.dumps(self._unpacked))
            self._unpacked = []

    def __len__(self) -> int:
        return len(self._packed) * _PACKED + len(self._unpacked)

    def __iter__(self) -> Iterator[T]:
        for block in self._packed:
            yield from map(self._value_of, marshal.loads(block))  # noqa: S302 - made in `append`
        yield from map(self._value_of, self._unpacked)


@dataclass(frozen=True, slots=True)
class ScanSkip:
    """
    A file or directory that the rules include and that cannot be a document.

    Attributes:
        path: As printed and stored: bytes that are not UTF-8 are written ``\\xNN``.
        is_directory: Nothing below the directory was examined. Its files are unknown, not gone.
    """

    path: str
    reason: str
    detail: str
    is_directory: bool = False


def file_state(status: os.stat_result) -> FileState:
    """The state of a file, in the form that is stored."""
    mtime_ns = status.st_mtime_ns
    if not -LARGEST <= mtime_ns <= LARGEST:
        mtime_ns = min(max(mtime_ns, -LARGEST), LARGEST)
    return _file_state((status.st_size, mtime_ns, status.st_ino & LARGEST, status.st_dev & LARGEST))


class Scan:
    """
    One walk through a collection: iterate over it once, then read the totals.

    Attributes:
        excluded: Reason → how many files and directories the rules left out.
        others: The paths of files that the rules exclude, such as images: notes may link to them.
            Those in hidden and excluded directories are not among them, nor are hidden files; but
            those in directories that Obsidian excludes from its search are.
        directories: How many directories were listed.
        device: The file system of the root when the scan began.
    """

    def __init__(
        self, root: Path, rules: Rules, *, at_folder: Callable[[], None] = lambda: None
    ) -> None:
        """``at_folder``: called before each directory is listed; it may end the scan by raising."""
        self.root = root
        self.rules = rules
        self._at_folder = at_folder
        self.excluded: dict[str, int] = {}
        self.others: list[str] = []
        self.directories = 0
        identity = _check_root(root)
        self.device = identity[0]
        self._identity = identity

    def __iter__(self) -> Iterator[ScannedFile | ScanSkip]:
        self.excluded = {}
        self.others = []
        yield from self._items_below(None, "", os.path.realpath(self.root))
        self._check_same()

    def at(self, paths: Iterable[str]) -> dict[str, list[ScannedFile | ScanSkip]]:
        """
        Scan some paths and everything below them, without walking the rest.

        Returns:
            Deciding path → the items that a whole walk would find there. The deciding path is the
            path itself, or an ancestor that is gone, excluded, unreadable or not a directory; ""
            is the root.
        """
        real_root = os.path.realpath(self.root)
        folders: dict[str, RuledFolder] = {}
        decided = dict(self._locate(path, folders, real_root) for path in sorted(paths))
        items_by_path = {
            path: list(items)
            for path, items in decided.items()
            if not any(above in decided for above in ancestors(path))
        }
        self._check_same()
        return items_by_path

    def _locate(
        self, path: str, folders: dict[str, RuledFolder], real_root: str
    ) -> tuple[str, Iterable[ScannedFile | ScanSkip]]:
        """The path that decides about ``path`` (see `at`), and the items there."""
        if not path:
            return "", self._items_below(None, "", real_root)
        end = descend(self.rules, path, folders, real_root)
        match end.decision:
            case ScannedFile() | ScanSkip() as item:
                return end.path, [item]
            case OSError():
                return end.path, ()
            case None:
                return end.path, self._items_below(end.folder, end.path, real_root)
            case exclusion:
                if end.status is not None:
                    is_directory = stat.S_ISDIR(end.status.st_mode)
                    self._note_other(end.path, exclusion, None if is_directory else end.status)
                return end.path, ()

    def _items_below(
        self, parent: RuledFolder | None, folder_path: str, real_root: str
    ) -> Iterator[ScannedFile | ScanSkip]:
        """The items below a directory, in the order of their paths."""
        with closing(Descent(self.root, folder_path)) as descent:
            yield from self._walk(descent, parent, folder_path, real_root)

    def _check_same(self) -> None:
        """
        Check that the root is still the same folder.

        A disk that is pulled out during the scan must not look like deleted files. Raises
        InputError.
        """
        if _check_root(self.root) != self._identity:
            raise InputError(
                f"The folder was replaced during the scan: {self.root}",
                hint="Run 'qmd index' again.",
            )

    def _walk(
        self, descent: Descent, parent: RuledFolder | None, folder_path: str, real_root: str
    ) -> Iterator[ScannedFile | ScanSkip]:
        """The items in a directory, in which ``descent`` is, and below it."""
        self._at_folder()
        excluded = self.excluded
        prefix = f"{folder_path}/" if folder_path else ""
        try:
            entries, failed = _list(descent)
        except OSError as error:
            if parent is None:
                raise unreadable_root(self.root, error) from error
            if not is_vanished(error):
                yield unreadable(folder_path, error, is_directory=True)
            return
        self.directories += 1
        for name, problem in failed:
            yield unreadable(prefix + name, problem)
        folder = self._ruled_folder(parent, folder_path, entries)
        for file, sentence in folder.problems:
            is_ignore_file = file.endswith(IGNORE_FILES)
            reason = "ignore file not applied" if is_ignore_file else "settings not applied"
            yield ScanSkip(printable(file), reason, sentence)
        for key, status in entries:
            name = key.rstrip("/")
            path = prefix + name
            decision = decide(self.rules, folder, path, status, real_root)
            if isinstance(decision, (ScannedFile, ScanSkip)):
                yield decision
            elif decision is None:
                try:
                    descent.enter(name)
                except OSError as error:
                    if not is_vanished(error):
                        yield unreadable(path, error, is_directory=True)
                    continue
                yield from self._walk(descent, folder, path, real_root)
                descent.leave()
            else:
                excluded[decision.reason] = excluded.get(decision.reason, 0) + 1
                self._note_other(path, decision, status)

    def _note_other(self, path: str, exclusion: Exclusion, status: os.stat_result | None) -> None:
        """Add an excluded entry to ``others`` if it belongs there; ``status`` as `decide`."""
        if status is None:
            if isinstance(exclusion, VaultRule) or exclusion is PICTURES:
                self._note_below(path)
        elif (
            exclusion is not HIDDEN
            and len(self.others) < MAX_OTHERS
            and (stat.S_ISREG(status.st_mode) or stat.S_ISLNK(status.st_mode))
            and (path.isascii() or is_utf8(path))
        ):
            self.others.append(path)

    def _note_below(self, folder_path: str) -> None:
        """Note the files of a directory that is excluded from searches, not from links."""

        def is_listed(entry: os.DirEntry[str]) -> bool:
            return entry.name not in DEPENDENCIES and entry.name[0] != "."

        # Nothing is said about the files of folders that cannot be listed.
        for path, entries in walk_beneath(self.root, folder_path, is_listed):
            for entry in filter(is_listed, entries):
                if not entry.is_dir(follow_symlinks=False) and is_utf8(entry.name):
                    self.others.append(f"{path}/{entry.name}")
            if len(self.others) >= MAX_OTHERS:
                break

    def _ruled_folder(
        self,
        parent: RuledFolder | None,
        path: str,
        entries: Sequence[tuple[str, os.stat_result | None]],
    ) -> RuledFolder:
        """A listed directory with the rules in it; ``parent`` is None for the root."""
        names = [key for key, _ in entries if key in IGNORE_FILES]
        if any(key == f"{VAULT_FOLDER}/" for key, _ in entries):
            names.append(VAULT_FOLDER)
        if parent is None:
            return self.rules.root_folder(names)
        return self.rules.subfolder(parent, path, names)


#: What a scan finds: the rule that excludes an entry, or what it reports of it; None if the entry
#: is a directory that it enters.
Decision = Exclusion | ScannedFile | ScanSkip | None


def decide(
    rules: Rules, folder: RuledFolder, path: str, status: os.stat_result | None, real_root: str
) -> Decision:
    """
    What a scan finds at an entry of a folder.

    Args:
        status: That of the name itself, not of the target of a link; None for a directory.
        real_root: The root, without links.
    """
    name = path.rpartition("/")[2]
    if status is None or stat.S_ISDIR(status.st_mode):
        excluded = rules.exclude_directory(folder, path, name)
        return excluded or unusable(path, name, is_directory=True)
    if stat.S_ISLNK(status.st_mode) and os.path.isdir(os.path.join(rules.root, path)):
        excluded = rules.exclude_directory_link(folder, path, name)
    else:
        excluded = rules.exclude_file(folder, path, name)
    if excluded is not None:
        return excluded
    unusable_name = None if name.isascii() else unusable(path, name, is_directory=False)
    return unusable_name or _judge_file(rules, path, status, real_root)


class End(NamedTuple):
    """
    Where the way from the root of a collection down to a path ends, and what a scan finds there.

    Attributes:
        path: The path itself, or the first name on the way to it that a scan does not enter.
        folder: The directory that contains it.
        status: That of the name itself; None if nothing is there, or if it cannot be seen.
        decision: What a scan finds there, or the error that says that nothing is there.
    """

    path: str
    folder: RuledFolder
    status: os.stat_result | None
    decision: Decision | OSError


def descend(
    rules: Rules,
    path: str,
    folders: dict[str, RuledFolder],
    real_root: str,
    *,
    is_new: bool = False,
) -> End:
    """
    Go down to a path, name by name, as a scan does.

    Args:
        path: Relative to the root, not empty.
        folders: Path → the directories that earlier calls have entered; this call adds to it.
        real_root: As `decide`.
        is_new: Take the path for that of a file, and all above it for directories, whatever is
            there.
    """
    below = next((above for above in ancestors(path) if above in folders), "")
    if not below:
        folders.setdefault("", rules.root_folder())
    for name in path[len(below) :].lstrip("/").split("/"):
        folder = folders[below]
        below = f"{below}/{name}" if below else name
        is_last = below == path
        new_status = (_FILE if is_last else _FOLDER) if is_new else None
        end = _look(rules, folder, below, real_root, is_last, new_status)
        if is_last or end.decision is not None:
            return end
        folders[below] = rules.subfolder(folder, below)
    raise AssertionError("the last name decides")


#: What is taken to be at the path of a new file, and at those above it.
_FILE, _FOLDER = (
    os.stat_result((kind, *[0] * (os.stat_result.n_fields - 1)))
    for kind in (stat.S_IFREG, stat.S_IFDIR)
)


def _look(
    rules: Rules,
    folder: RuledFolder,
    path: str,
    real_root: str,
    is_last: bool,
    new_status: os.stat_result | None,
) -> End:
    """What a scan finds at an entry of ``folder``; see `descend`."""
    full_path = os.path.join(rules.root, path)
    try:
        status = new_status or os.lstat(full_path)
    except OSError as error:
        # A path whose ancestor became a file is gone as well.
        gone = (
            error
            if is_vanished(error)
            else rules.exclude_file(folder, path, path.rpartition("/")[2])
        )
        return End(path, folder, None, gone or unreadable(path, error, is_directory=not is_last))
    decision: Decision | OSError = decide(rules, folder, path, status, real_root)
    if decision is None and new_status is None:
        try:
            os.scandir(full_path).close()
        except OSError as error:
            decision = error if is_vanished(error) else unreadable(path, error, is_directory=True)
    return End(path, folder, status, decision)


def ancestors(path: str) -> Iterator[str]:
    """The directories above a path, from the nearest to the root ("")."""
    while path:
        path = path.rpartition("/")[0]
        yield path


def scan(root: Path, rules: Rules) -> Scan:
    """
    The files below ``root`` that ``rules`` (made for it) include, sorted by path.

    The scan goes on if files or directories vanish or change meanwhile.

    Raises:
        NotFoundError: The root does not exist. That says nothing about its files.
        InputError: The root is not a directory, or cannot be read. The iteration may raise it too.
    """
    return Scan(root, rules)


def _list(
    descent: Descent,
) -> tuple[list[tuple[str, os.stat_result | None]], list[tuple[str, OSError]]]:
    """
    The entries of the present directory, sorted as their whole paths sort, and those that failed.

    An entry is a pair of sort key and status. The key is the name, for a directory with "/" after
    it, so that "a.md" comes before "a/b". The status of a directory is None; that of a link is the
    link's own.
    """
    keyed: list[tuple[str, os.stat_result | None]] = []
    failed: list[tuple[str, OSError]] = []
    with descent.scandir() as entries:
        for entry in entries:
            try:
                if entry.is_dir(follow_symlinks=False):
                    keyed.append((f"{entry.name}/", None))
                else:
                    keyed.append((entry.name, entry.stat(follow_symlinks=False)))
            except OSError as error:
                if not is_vanished(error):
                    failed.append((entry.name, error))
    keyed.sort(key=itemgetter(0))
    return keyed, failed


def _judge_file(
    rules: Rules, path: str, status: os.stat_result, real_root: str
) -> ScannedFile | ScanSkip:
    """
    Decide whether a file that the rules include can be a document.

    ``status``: that of the name itself, not of the target of a link.
    """
    mode = status.st_mode
    if stat.S_ISREG(mode):
        most = rules.most_bytes(path)
        if status.st_size > most and not format_of(path).reads_parts:
            return ScanSkip(path, "too large", f"{status.st_size:,} bytes; the limit is {most:,}")
        return _scanned_file((path, file_state(status)))
    if stat.S_ISLNK(mode):
        return ScanSkip(path, *_judge_link(os.path.join(rules.root, path), real_root))
    return ScanSkip(path, "special file", _KINDS.get(stat.S_IFMT(mode), "no regular file"))


_KINDS = {
    stat.S_IFIFO: "a fifo",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


def _judge_link(full_path: str, real_root: str) -> tuple[str, str]:
    """
    The reason and detail with which a link is skipped.

    Every link is skipped: a file inside the root is found under its own name, and under a second
    name every hit would come twice.
    """
    try:
        os.stat(full_path)
    except OSError as error:
        if error.errno == errno.ELOOP:
            return "symlink loop", "leads back to itself"
        if not is_vanished(error):
            return "unreadable", error.strerror or str(error)
    try:
        target = os.path.realpath(full_path)
    except OSError as error:  # another process has just replaced the link
        return "unreadable", error.strerror or str(error)
    if target != real_root and not target.startswith(os.path.join(real_root, "")):
        return "symlink out of the collection", f"leads to {printable(target)}"
    inside = printable(os.path.relpath(target, real_root).replace(os.sep, "/"))
    if not os.path.lexists(target):
        return "dangling symlink", f"leads to {inside}, which does not exist"
    return "symlink inside the collection", f"leads to {inside}, which counts under its own name"


def unreadable(path: str, error: OSError, *, is_directory: bool = False) -> ScanSkip:
    return ScanSkip(printable(path), "unreadable", error.strerror or str(error), is_directory)


def unusable(path: str, name: str, is_directory: bool) -> ScanSkip | None:
    """The skip of an entry because of its name, or of a directory because of its depth."""
    if not name.isascii() and not is_utf8(name):
        detail = "the name is no valid UTF-8"
        return ScanSkip(printable(path), "bad file name", detail, is_directory)
    if is_directory and path.count("/") >= MAX_DEPTH:
        detail = f"{MAX_DEPTH} folders within each other are the limit"
        return ScanSkip(printable(path), "too deep", detail, is_directory=True)
    return None


def is_vanished(error: OSError) -> bool:
    """Whether an error says that a file is gone, or was replaced, since it was listed."""
    return isinstance(error, (FileNotFoundError, NotADirectoryError))


def is_gone(root: Path, path: str) -> bool:
    """Whether nothing is at ``path`` below the root; False if that cannot be seen."""
    try:
        os.lstat(os.path.join(root, path))
    except OSError as error:
        return is_vanished(error)
    return False


def printable(path: str) -> str:
    """A path for people; bytes that are not UTF-8 are written ``\\xNN``."""
    return path if is_utf8(path) else os.fsencode(path).decode("utf-8", "backslashreplace")


def unreadable_root(root: Path, error: OSError) -> NotFoundError | InputError:
    """The error for a collection whose directory cannot be listed."""
    if isinstance(error, FileNotFoundError):
        return NotFoundError(
            f"The folder {root} does not exist.",
            hint="Is its disk mounted? If the folder moved, remove the collection and add it anew.",
        )
    if isinstance(error, NotADirectoryError):
        return InputError(f"{root} is not a folder.", hint="Give the folder that holds the files.")
    return InputError(
        f"The folder {root} cannot be read: {error.strerror or error}.",
        hint="Check its permissions and its disk, then run 'qmd index' again.",
    )


def _check_root(root: Path) -> tuple[int, int]:
    """Device and inode of the root. Raises NotFoundError, InputError."""
    try:
        with os.scandir(root):
            status = os.stat(root)
    except OSError as error:
        raise unreadable_root(root, error) from error
    return status.st_dev, status.st_ino
