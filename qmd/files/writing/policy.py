"""
Write roots: where a client may change files; and files that a language model never writes.

Below a write root a client may change files or add a collection. Links are followed before paths
are compared, so a link in a root that leads out of it is outside. They are followed once, so that
the file that was checked is the file opened.

Files that steer other programs are never written by a language model. Whoever makes the model write
one of them, as a note may try, gives orders to the next program that reads it. Names are compared
as a disk may compare them: ignoring case, composition and invisible characters, and dots and blanks
at the end.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath

from qmd.engine_text import engine_text
from qmd.errors import OutsideRootsError, SteeringFileError
from qmd.system.beneath import READ, open_beneath, scandir_beneath, stat_beneath
from qmd.values.text import as_utf8

# Directories of the system, not of a person. Home and temporary directories inside them
# (/private/var/folders on macOS, /var/home) are roots, and roots come first.
_SYSTEM = tuple(
    Path(name)
    for name in (
        "/bin",
        "/boot",
        "/dev",
        "/etc",
        "/lib",
        "/lib32",
        "/lib64",
        "/proc",
        "/run",
        "/sbin",
        "/sys",
        "/usr",
        "/var",
        "/System",
        "/Library",
        "/Applications",
        "/private/etc",
        "/private/var",
        "C:/Windows",
        "C:/Program Files",
        "C:/Program Files (x86)",
        "C:/ProgramData",
    )
)
_PORTS = (f"{port}{number}" for port in ("COM", "LPT") for number in "0123456789¹²³")
_DEVICES = frozenset({"CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", *_PORTS})
_ASK_FOR_WRITES = (
    "Ask the administrator of the server for a token that does: qmd server token create NAME"
    " --write COLLECTION"
)


@dataclass(frozen=True, slots=True)
class Root:
    """
    A directory below which files may be written.

    Attributes:
        path: Absolute, all links followed.
        hidden: Whether hidden files and folders (names that begin with a dot) are included.
        whole: Whether the directory itself may become a collection, not only folders in it.
    """

    path: Path
    hidden: bool = True
    whole: bool = True


@dataclass(frozen=True, slots=True)
class WritePolicy:
    """
    Where a client may write files.

    Attributes:
        writable: False forbids all writes.
        agent: Whether the client is a language model, which must not write files that steer other
            programs.
        pushed: The directory with folders of other machines, in which nothing may be written: the
            next push would undo it.
        closed: Directories below which nothing is written, unless a root lies inside them.
        scoped_to_token: Whether the roots are what the token of the client opens.
    """

    roots: tuple[Root, ...]
    writable: bool = True
    agent: bool = False
    pushed: Path | None = None
    closed: tuple[Path, ...] = ()
    scoped_to_token: bool = False

    @classmethod
    def read_only(cls) -> WritePolicy:
        """Forbid all writes."""
        return cls((), writable=False)

    @classmethod
    def explicit(cls, directories: Iterable[str | Path]) -> WritePolicy:
        """Allow writes below the directories that ``--write-root`` names only."""
        return cls(tuple(Root(resolved(directory)) for directory in directories))

    @classmethod
    def default(cls, directories: Iterable[str | Path] = ()) -> WritePolicy:
        """
        Allow writes below some directories (collections, a vault) and in the usual places.

        These are the working directory, and what is not hidden in the home and temporary
        directories.
        """
        personal = [
            each for each in _places("~", *_temporary_directory()) if not _is_whole_disk(each)
        ]
        roots = [
            # A person who adds all of home as a collection does not mean the hidden keys in it.
            Root(each, hidden=not any(place.is_relative_to(each) for place in personal))
            for each in map(resolved, directories)
        ]
        for here in _places(os.curdir):
            if not _is_whole_disk(here) and here not in personal:
                inside = (here.relative_to(each) for each in personal if here.is_relative_to(each))
                if not any(map(_hidden, inside)):
                    roots.append(Root(here, hidden=False))
        roots += [Root(each, hidden=False, whole=False) for each in personal]
        return cls(tuple(roots))

    @classmethod
    def for_agent(
        cls, directories: Iterable[str | Path], write_roots: Iterable[str | Path] = ()
    ) -> WritePolicy:
        """
        Where a language model may write: ``write_roots``, if the person named any; else these
        directories (of the collections, of a vault), but none below a hidden one.
        """
        roots = [Root(resolved(each)) for each in write_roots] or [
            Root(each) for each in map(resolved, directories) if not _hidden(each)
        ]
        return cls(tuple(roots), agent=True)

    @classmethod
    def scoped(
        cls, directories: Iterable[str | Path], *, closed: Iterable[str | Path], agent: bool
    ) -> WritePolicy:
        """Allow writes below the directories of a client's collections, but for hidden files."""
        roots = tuple(Root(resolved(each), hidden=False, whole=False) for each in directories)
        return cls(
            roots,
            bool(roots),
            agent,
            closed=tuple(map(resolved, closed)),
            scoped_to_token=True,
        )

    def resolve(self, path: str | Path | ResolvedPath) -> ResolvedPath:
        """
        The path of a file that is to be written, all links followed.

        Those of a `ResolvedPath` have been followed already.

        Raises:
            OutsideRootsError: It lies below no root, or all writing is off; the hint says what
                would be allowed.
            SteeringFileError: It steers other programs, and the client is an agent.
        """
        if isinstance(path, ResolvedPath):
            self.permitted(path.target)
            return path
        self.require_writable()
        place = self.permitted(resolved(path))
        if self.agent:  # the name of a link may steer programs though its target's does not
            named = Path(os.path.abspath(os.path.expanduser(path)))  # noqa: PTH100, PTH111
            self._require_steers_nothing(named)
        return place

    def permitted(self, path: Path) -> ResolvedPath:
        """
        A path whose links have been followed; none is followed any more.

        Raises:
            OutsideRootsError: It lies below no root, or all writing is off.
            SteeringFileError: It steers other programs, and the client is an agent.
        """
        self.require_writable()
        self._require_not_pushed(path)
        roots = [root.path for root in self.roots if lies_below(path, root)]
        roots = [root for root in roots if not self._is_closed(path, root)]
        if not roots:
            raise self._outside(path)
        if self.agent:
            self._require_steers_nothing(path)
            link = link_to(path, min(roots, key=lambda root: len(root.parts)))
            if link is not None:
                raise SteeringFileError(str(path), f"{link}, which steers programs, leads to it")
        return ResolvedPath(roots[0], path)

    def _outside(self, path: Path) -> OutsideRootsError:
        """The error for a path below no root."""
        if not self.scoped_to_token:
            return _outside(path, path.parent)
        below = [root.path for root in self.roots if path.is_relative_to(root.path)]
        if any(_hidden(path.relative_to(root)) for root in below):
            return OutsideRootsError(
                engine_text(
                    "{path} is hidden; a token opens no hidden files for writing.", path=path
                ),
                hint="Choose names that begin with no dot.",
            )
        return OutsideRootsError(
            engine_text("This token does not open {path} for writing.", path=path),
            hint=_ASK_FOR_WRITES,
        )

    def _require_not_pushed(self, path: Path) -> None:
        """Raises OutsideRootsError for what belongs to another machine."""
        if self.pushed is not None and path.is_relative_to(self.pushed):
            raise OutsideRootsError(
                f"{path} is the copy of a file of another machine.",
                hint="Change it there: 'qmd server push' brings the change here.",
            )

    def _is_closed(self, path: Path, root: Path) -> bool:
        """Whether a closed directory that contains a path lies inside a root, or is it."""
        return any(path.is_relative_to(each) and each.is_relative_to(root) for each in self.closed)

    def check_name(self, path: str) -> None:
        """
        Check the names in a path whose links the tool follows itself. Raises SteeringFileError.
        """
        if self.agent and (reason := steering_reason(_names(path))):
            raise SteeringFileError(as_utf8(path), reason)

    def _require_steers_nothing(self, path: Path) -> None:
        """Raises SteeringFileError. A path in several nested roots need be open in one only."""
        below = [
            path.relative_to(root.path).parts
            for root in self.roots
            if path != root.path and path.is_relative_to(root.path)
        ]
        reasons = [steering_reason(names) for names in below or [(path.name,)]]
        if all(reasons):
            raise SteeringFileError(str(path), str(reasons[0]))

    def new_collection(self, path: str | Path) -> Path:
        """
        The resolved path of a directory that a client wants to add as a collection.

        Stricter than `resolve`, for all of it becomes readable: never the whole disk, a
        directory of the system or a hidden one.

        Raises:
            OutsideRootsError.
        """
        self.require_writable()
        directory = resolved(path)
        self._require_not_pushed(directory)
        if _is_whole_disk(directory):
            raise _never(
                engine_text("{directory} is the whole disk.", directory=directory), directory
            )
        below = [
            root
            for root in self.roots
            if directory.is_relative_to(root.path) and (root.whole or directory != root.path)
        ]
        if not below and not _belongs_to_system(directory, directory):
            raise _outside(directory, directory)
        below = [root for root in below if not _belongs_to_system(directory, root.path)]
        if not below:
            raise _never(
                engine_text("{directory} belongs to the system.", directory=directory), directory
            )
        if all(_hidden(directory.relative_to(root.path)) for root in below):
            raise _never(engine_text("{directory} is hidden.", directory=directory), directory)
        return directory

    def require_writable(self) -> None:
        """Raises OutsideRootsError: all writing is off."""
        if not self.writable and self.scoped_to_token:
            raise OutsideRootsError("This token opens nothing for writing.", hint=_ASK_FOR_WRITES)
        if not self.writable:
            raise OutsideRootsError(
                "Writing is switched off here.", hint="Start it without --read-only to allow it."
            )


def lies_below(path: Path, root: Root) -> bool:
    """Whether a root opens this path, which has been resolved."""
    if path == root.path or not path.is_relative_to(root.path):
        return False
    return root.hidden or not _hidden(path.relative_to(root.path))


def _names(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _outside(path: Path, root: Path) -> OutsideRootsError:
    return OutsideRootsError(
        engine_text("{path} is not below a write root.", path=path),
        hint=engine_text("Start it with --write-root {root} to allow it.", root=root),
    )


def _never(message: str, path: Path) -> OutsideRootsError:
    return OutsideRootsError(
        message,
        hint=engine_text(
            "Add it on the server's own machine: qmd collection add {path}", path=path
        ),
    )


def resolved(path: str | Path) -> Path:
    """
    Absolute, without ``~``, ``..`` and links; what does not exist yet stays as it is.

    Raises:
        OutsideRootsError: No file can have this name.
    """
    try:
        expanded = os.path.expanduser(path)  # noqa: PTH111 - Path's raises for unknown users
        real = Path(os.path.realpath(expanded))
        str(real).encode()  # the database and the clients take UTF-8 alone
    except (OSError, ValueError) as error:  # NUL; a name that cannot be encoded
        raise _unusable(path) from error
    if os.name == "nt" and not is_plain_on_windows(PureWindowsPath(real)):
        raise _unusable(path)
    return real


def _unusable(path: str | Path) -> OutsideRootsError:
    return OutsideRootsError(
        engine_text("Not a usable path: {path}", path=as_utf8(str(path))), hint="Check the name."
    )


def is_plain_on_windows(path: PureWindowsPath) -> bool:
    """
    Whether a path names a file of its own there: no device (``NUL.md``), no stream of another
    file (``a.txt:b.md``), no name that Windows reads as another (``x.md.``).
    """
    names = path.parts[1:] if path.anchor else path.parts
    return not any(
        ":" in name
        or name != name.rstrip(" .")
        or name.partition(".")[0].rstrip().upper() in _DEVICES
        for name in names
    )


def _temporary_directory() -> list[str]:
    try:
        return [tempfile.gettempdir()]
    except FileNotFoundError:  # no directory takes a file, as on a full disk
        return []


def _places(*directories: str) -> list[Path]:
    """Those of these directories that can be named; the working directory may be gone."""
    paths = []
    for each in directories:
        try:
            paths.append(resolved(each))
        except OutsideRootsError:
            continue
    return paths


def _hidden(path: Path) -> bool:
    return any(part.startswith(".") for part in path.parts)


def _is_whole_disk(path: Path) -> bool:
    return path == Path(path.anchor)


def _belongs_to_system(path: Path, root: Path) -> bool:
    """Unless the root lies inside the system's directory: then a person put it there."""
    return any(
        path.is_relative_to(each) and not (root != each and root.is_relative_to(each))
        for each in _SYSTEM
    )


@dataclass(frozen=True, slots=True)
class ResolvedPath:
    """
    A path without links: ``target`` is the directory ``root`` or lies below it.

    If a part of the path is replaced by a link afterwards, neither this class nor the `FileWriter`
    follows the link.
    """

    root: Path
    target: Path

    def open(self, flags: int) -> int:
        """Open the target without following links; returns a descriptor. Raises OSError."""
        return open_beneath(self.root, self._below, flags)

    def read(self, most_bytes: int | None = None) -> bytes:
        """
        The content of the target.

        Raises:
            IsADirectoryError: It is no regular file.
            OSError: It cannot be read; errno EFBIG if it is longer than ``most_bytes``.
        """
        if not stat.S_ISREG(self.status().st_mode):  # opening a device may do something
            raise IsADirectoryError(errno.EISDIR, "No file", str(self.target))
        with os.fdopen(self.open(READ), "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):  # put there just now
                raise IsADirectoryError(errno.EISDIR, "No file", str(self.target))
            if most_bytes is not None and status.st_size > most_bytes:
                reason = f"{status.st_size:,} bytes, more than {most_bytes:,}"
                raise OSError(errno.EFBIG, reason, str(self.target))
            return file.read()

    def status(self) -> os.stat_result:
        """The status of the target, without following links. Raises OSError."""
        return stat_beneath(self.root, self._below)

    @contextmanager
    def entries(self) -> Iterator[Iterator[os.DirEntry[str]]]:
        """The entries of the target, a directory; valid inside the block. Raises OSError."""
        with scandir_beneath(self.root, self._below) as entries:
            yield entries

    @property
    def _below(self) -> str:
        return self.target.relative_to(self.root).as_posix()


_INSTRUCTIONS = "it holds instructions for programs that write code or act for the person"

#: Files that assistants read without being told to, in any folder, by their documentation.
#: What only lies in hidden directories (.github, .claude, .cursor) needs no entry.
_NAMES = frozenset(
    {
        "claude.md",  # Claude Code; also below it, the next one
        "claude.local.md",
        "agents.md",  # Codex, Cursor, Copilot, Gemini, Zed, Amp, opencode and others
        "agents.override.md",  # Codex
        "agents.local.md",  # forks of OpenCode
        "agent.md",  # Amp, before it took AGENTS.md
        "codex.md",  # Codex, likewise
        "gemini.md",  # Gemini CLI
        "qwen.md",  # Qwen Code
        "opencode.md",  # OpenCode, before it took AGENTS.md
        "opencode.local.md",
        "crush.md",  # Crush
        "crush.local.md",
        "warp.md",  # Warp
        "replit.md",  # Replit Agent
        "copilot-instructions.md",  # GitHub Copilot
        "skill.md",  # a skill of Claude, Codex and others, with the right to run programs
    }
)
#: Prompts, instructions and agents of VS Code, whose folders a person may choose.
_SUFFIXES = (".instructions.md", ".prompt.md", ".chatmode.md", ".agent.md")


#: Variation selectors and the joiner of graphemes, which are no format characters.
_UNSEEN = frozenset(map(chr, (0x34F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0))))


def steering_reason(names: Sequence[str]) -> str | None:
    """
    Why a file steers a program; None if it does not.

    Args:
        names: Its path from a write root on, the file's own name last.
    """
    for name in names:
        if _as_disk_reads(name).startswith("."):
            where = (
                "it is hidden" if name == names[-1] else f"it lies below {name}, which is hidden"
            )
            return f"{where}, and programs keep their settings in hidden files and directories"
    plain = unicodedata.normalize("NFKC", _as_disk_reads(names[-1])).casefold() if names else ""
    if plain in _NAMES or plain.endswith(_SUFFIXES):
        return _INSTRUCTIONS
    return None


def link_to(target: Path, root: Path) -> Path | None:
    """
    A link with a name that steers programs, such as CLAUDE.md -> docs/guide.md, that leads to
    the file or to a directory above it and lies in a directory from ``root`` down to ``target``.

    Args:
        target: Below ``root``; both resolved. It may not exist yet.
    """
    for directory in target.parents:
        for link in _links(directory):
            if steering_reason([link.name]) is not None:
                leads_to = Path(os.path.realpath(link))
                if target == leads_to or leads_to in target.parents:
                    return link
        if directory == root:
            break
    return None


def _links(directory: Path) -> Iterator[Path]:
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    yield Path(entry.path)
    except OSError:  # not there yet, or not readable: nothing is written there either
        return


def _as_disk_reads(name: str) -> str:
    """A name as some disks read it: no invisible characters, no dots or blanks at the end."""
    visible = "".join(
        each for each in name if unicodedata.category(each) != "Cf" and each not in _UNSEEN
    )
    return unicodedata.normalize("NFC", visible).rstrip(" .") or visible
