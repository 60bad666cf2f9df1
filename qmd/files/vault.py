"""
Finds the file on the disk that a name means: one that the index lists, or the path of a note.

The path of a note is written from the vault's root, with ``/`` between the names. The vault is one
directory, or all collections side by side. In the latter the first name is that of a collection, as
in the ``file`` that a search returns.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from qmd import libraries
from qmd.engine_text import engine_text, sentences
from qmd.errors import ConflictError, DocumentNotFoundError, InvalidPathError
from qmd.files.writing.policy import ResolvedPath, steering_reason
from qmd.ingest.rules import DEPENDENCIES, Rules
from qmd.ingest.why import exclusion_of_new_file
from qmd.system import cancellation
from qmd.system.beneath import READ, open_beneath, walk_beneath
from qmd.values import Collection
from qmd.values.text import are_alike, as_utf8, is_safe_name, is_utf8, keys_of_target, one_line

if TYPE_CHECKING:
    from qmd.store import Reader, Store
    from qmd.values.location import DatabaseLocation


#: Characters that some systems cannot store; no path of a new note may hold them.
ILLEGAL = '<>:"|?*'

#: Characters that a name may hold, but no link to it: those of paths, of headings and of wikilinks.
_NOT_IN_LINKS = r"\\/#^\[\]\x00-\x1f"
#: Characters of a name that is made of a title.
MAX_NAME = 80
MAX_PATH = 4096  # characters; no system takes a longer one


#: In a vault with more files and folders, no note is looked for by a part of its path.
_MOST_ENTRIES = 200_000

_SUGGESTIONS = 3
_ALIKE = 0.6  # names less alike than this (0..1) are no suggestion


# --- paths as callers write them -----------------------------------------------------


def note_path(path: str) -> str:
    """
    The path of a note, normalised: without blanks around it, without one ``/`` in front, and
    with ``.md`` after it, whatever other suffix is there.

    Raises:
        InvalidPathError: It is empty, absolute, or leads upwards.
    """
    plain = plain_path(path)
    if not plain:
        raise InvalidPathError("Path cannot be empty")
    return plain if plain.lower().endswith(".md") else f"{plain}.md"


def folder_path(path: str) -> str:
    """As `note_path`, for a folder: without a suffix and a ``/`` at the end. "" is the root."""
    return plain_path(path.strip().rstrip("/"))


def plain_path(path: str) -> str:
    """What the caller named, without blanks around it and one ``/`` in front."""
    plain = path.strip().removeprefix("/")
    names = plain.split("/")
    if "\0" in plain:
        raise InvalidPathError("Invalid path: contains a NUL character")
    if sys.platform == "win32" and "\\" in plain:
        raise InvalidPathError("Invalid path: contains a backslash; folders are separated by /")
    if plain.startswith("/") or (sys.platform == "win32" and plain[1:2] == ":"):
        raise InvalidPathError(
            engine_text("Invalid path: {path} is absolute; begin at the vault", path=as_utf8(plain))
        )
    if ".." in names:
        raise InvalidPathError("Invalid path: '..' would lead out of a folder")
    return plain


def file_name_of(title: str, suffix: str = ".md") -> str:
    """
    The name of a new file for a title, without a suffix; "" if no letter of it may be in one.

    The title may be a stranger's, so it is none that steers a program: "CLAUDE" gives "CLAUDE-1".
    """
    words = re.sub(f"[{re.escape(ILLEGAL)}{_NOT_IN_LINKS}]+", " ", title).split()
    name = " ".join(words)[:MAX_NAME]
    if not is_utf8(name):
        return ""
    return harmless_name("".join(each for each in name if is_safe_name(each)), suffix)


def harmless_name(name: str, suffix: str = ".md") -> str:
    """A name for a new file, without its suffix, that steers no program with it; "" for none."""
    name = name.strip(" .")
    names = (name, f"{name}-1") if name else ()
    return next((each for each in names if steering_reason([f"{each}{suffix}"]) is None), "")


def is_hidden(path: str) -> bool:
    """Whether a name on the way begins with a dot."""
    return any(name.startswith(".") for name in _names(path))


def can_exist(path: str) -> bool:
    """Whether a file can have this path; looking for one that cannot may take long."""
    return len(path) <= MAX_PATH and is_utf8(path)


def _names(path: str) -> list[str]:
    """The names in a path, without empty ones and dots."""
    return [name for name in path.split("/") if name not in ("", ".")]


# --- what they mean ------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Vault:
    """Resolved directories by the name of the collection; one named "" is the whole vault."""

    roots: Mapping[str, Path]

    @classmethod
    def of_directory(cls, directory: str | Path) -> Vault:
        return cls({"": Path(os.path.realpath(directory))})

    @classmethod
    def of_collections(cls, collections: Iterable[Collection]) -> Vault:
        return cls(
            {collection.name: Path(os.path.realpath(collection.path)) for collection in collections}
        )

    @property
    def collections(self) -> list[str]:
        """Their names, where the vault is made of them."""
        return sorted(name for name in self.roots if name)

    def is_above_collections(self, path: str) -> bool:
        """Whether the path is a root that is no directory itself."""
        return "" not in self.roots and not _names(path)

    def has_root_for(self, path: str) -> bool:
        """Whether the vault is one directory, or the path begins with one of its collections."""
        return "" in self.roots or any(name in self.roots for name in _names(path)[:1])

    def locate(self, path: str) -> ResolvedPath:
        """
        Where a normalised path leads, whether something is there or not.

        Raises:
            InvalidPathError: Out of the vault, or into no collection.
        """
        names = _names(path)
        root = self.roots.get("")
        if root is None:
            root, names = self._collection(names[0]), names[1:]
        try:
            target = Path(os.path.realpath(root.joinpath(*names)))
        except OSError as error:  # a link that is being changed
            raise InvalidPathError(
                f"Invalid path: {as_utf8(path)} cannot be followed: {error.strerror}"
            ) from error
        for each in (root, *self.roots.values()):
            if target == each or each in target.parents:
                return ResolvedPath(each, target)
        raise InvalidPathError(
            engine_text("Invalid path: {path} leads out of the vault", path=as_utf8(path))
        )

    def _collection(self, name: str) -> Path:
        if name not in self.roots:
            names = ", ".join(self.collections) or "none"
            raise InvalidPathError(
                engine_text(
                    "Invalid path: no collection named '{name}' (collections: {names})",
                    name=as_utf8(name),
                    names=names,
                )
            )
        return self.roots[name]

    def check_new(self, path: str) -> None:
        """Raises InvalidPathError: no new note can have this normalised path."""
        names = path.split("/")
        chosen = names[1:] if names[0] in self.collections else names  # which may be called so
        if any(character in ILLEGAL for name in chosen for character in name):
            raise InvalidPathError(
                engine_text(
                    "Invalid path: contains illegal characters ({characters})", characters=ILLEGAL
                )
            )
        if not all(map(is_safe_name, chosen)) and is_utf8(path):
            raise InvalidPathError(
                f"Invalid path: {one_line(path)} contains control characters or marks of direction"
            )
        if names[-1] == ".md" and len(names) > 1:
            folder = as_utf8(path.removesuffix(".md"))
            raise InvalidPathError(
                engine_text(
                    "Invalid path: {folder} names a folder, and a note needs a name", folder=folder
                )
            )
        if not is_utf8(path):
            raise InvalidPathError("Invalid path: contains half a character (a lone surrogate)")

    def notes(self) -> list[str]:
        """
        The paths of all notes in sight: not in hidden folders, and not behind links.

        Empty where there are too many files to look at them all.
        """
        paths: list[str] = []
        left = _MOST_ENTRIES
        for name, root in self.roots.items():
            for path, is_file in _walk(root, name):
                left -= 1
                if not left:
                    return []
                if is_file and path.lower().endswith(".md") and is_utf8(path):
                    paths.append(path)
        return sorted(paths)


def _walk(root: Path, name: str) -> Iterator[tuple[str, bool]]:
    """What lies below a root: its path in the vault, and whether it is a regular file."""
    for folder, entries in walk_beneath(root, "", _is_searched):
        cancellation.check()
        place = "".join(f"{part}/" for part in (name, folder) if part)
        for entry in entries:
            yield place + entry.name, entry.is_file(follow_symlinks=False)


def _is_searched(folder: os.DirEntry[str]) -> bool:
    return not folder.name.startswith(".") and folder.name not in DEPENDENCIES


# --- notes whose path is like another----------------------------------------------------


def matching_notes(path: str, notes: Sequence[str]) -> list[str]:
    """
    The notes that have this path but for upper and lower case; if there are none, those whose
    path ends with it, by whole names. A merely similar path never counts: a wrong note would be
    a wrong answer.
    """
    folded_path = _folded("/".join(_names(path)))
    folded = [(_folded(note), note) for note in notes]
    same = [note for key, note in folded if key == folded_path]
    return same or [note for key, note in folded if key.endswith(f"/{folded_path}")]


def suggestions(path: str, notes: Sequence[str]) -> list[str]:
    """At most three notes whose path or name is like this one, nearest first."""
    typed = _folded(path).removesuffix(".md")
    paths = [_folded(note).removesuffix(".md") for note in notes]
    name, *names = (each.rpartition("/")[2] for each in (typed, *paths))
    scores: dict[str, float] = {}
    for query, choices in ((typed, paths), (name, names)):
        similar = libraries.rapidfuzz.process.extract(
            query,
            choices,
            scorer=libraries.rapidfuzz.distance.Levenshtein.normalized_similarity,
            score_cutoff=_ALIKE,
            limit=2 * _SUGGESTIONS,
        )
        for _, score, position in similar:
            if not are_alike(name, names[position]):
                continue
            scores[notes[position]] = max(scores.get(notes[position], 0.0), score)
    return sorted(scores, key=lambda note: (-scores[note], note))[:_SUGGESTIONS]


def _folded(path: str) -> str:
    """Without the differences of case and of composed characters, which disks see as one."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())


def open_indexed_file(reader: Reader, file: str, *, database: DatabaseLocation) -> BinaryIO:
    """
    Open ``collection/path`` for reading, without following a link below the collection.

    A file that an ignore file of its collection names, and the database with the files that SQLite
    keeps beside it, count as missing.

    Raises:
        DocumentNotFoundError: The index lists no such file, or it is no regular file any more.
        CollectionNotFoundError.
    """
    collection, _, path = file.partition("/")
    if not is_utf8(file):
        raise DocumentNotFoundError(file)
    stored = reader.collections.by_name(collection)
    root = stored.path
    named = reader.links.files_with_keys(collection, keys_of_target(path)) if path else []
    if not any(each.path == path for each in named):
        raise DocumentNotFoundError(file)
    # Attachments match no mask, but a file that an ignore file names is nobody's to see.
    rules = Rules(Path(root), "**/*", stored.ignore, enters_pictures=True)
    try:
        if exclusion_of_new_file(rules, path) is not None:
            raise DocumentNotFoundError(file)
        descriptor = open_beneath(root, path, READ)
    except (OSError, ValueError) as error:
        raise DocumentNotFoundError(file) from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or _is_database(status, database):
        os.close(descriptor)
        raise DocumentNotFoundError(file)
    return os.fdopen(descriptor, "rb")


def exclusion_in(collection: Collection, path: str) -> str | None:
    """
    The rule of a collection that leaves out a new file, in sentences; None if none does.

    Args:
        path: Relative to the collection; nothing need be there.
    """
    return _exclusion(Rules.of_collection(collection), path, collection.name)


def exclusion_of_file(store: Store, file: Path, vault: Path | None = None) -> str | None:
    """
    `exclusion_in` for a path on the disk; None also if it is in several collections of which one
    takes it, or in none, unless it is hidden in a vault, whose notes no collection would take.

    Args:
        file: Absolute, with all links followed.
        vault: The directory that the path is in, if that is no collection.
    """
    collections = store.read(lambda reader: reader.collections.all())
    roots = [(each, Path(os.path.realpath(each.path))) for each in collections]
    exclusions = [
        exclusion_in(collection, file.relative_to(root).as_posix())
        for collection, root in roots
        if file.is_relative_to(root)
    ]
    if exclusions or vault is None or not file.is_relative_to(vault):
        return exclusions[0] if exclusions and all(exclusions) else None
    path = file.relative_to(vault).as_posix()
    return _exclusion(Rules(vault, "**/*"), path, "NAME") if is_hidden(path) else None


def _exclusion(rules: Rules, path: str, collection: str) -> str | None:
    verdict = exclusion_of_new_file(rules, path, collection)
    return None if verdict is None else sentences(verdict.reason, verdict.remedy)


def require_shown(file: str, exclusion: str | None) -> None:
    """
    Refuse a new note that no search would show.

    Args:
        exclusion: As `exclusion_in` gives it.

    Raises:
        ConflictError: There is an exclusion.
    """
    if exclusion is not None:
        raise ConflictError(
            engine_text("{file} would not be shown: {reason}", file=file, reason=exclusion)
        )


def _is_database(status: os.stat_result, database: DatabaseLocation) -> bool:
    for suffix in ("", "-wal", "-shm") if isinstance(database, Path) else ():
        try:
            if os.path.samestat(status, os.stat(f"{database}{suffix}")):  # noqa: PTH116
                return True
        except OSError:
            continue  # there is none
    return False
