"""
Find the file that a link in a note leads to, by the rules of Obsidian (``getFirstLinkpathDest``).

A link path is compared without letter case, and ``.md`` may be left out; any other suffix must be
there. Aliases and titles lead nowhere. A link stays inside its collection. In this order:

1. An empty path is the note with the link.
2. ``./`` and ``../`` lead from the folder of the note, ``/`` from the root of the collection.
3. The file at just this path from the root.
4. Of the files whose path ends with the whole components of the link path: those below the folder
   of the note, then the others; in each group the one with the shortest path.

In a folder that is no vault, a Markdown link or image leads first of all from the folder of its
note, as in CommonMark and on GitHub; then by these rules; then to the README of the folder that it
names. A wikilink that leads nowhere by these rules leads to the page of Logseq of this name.
"""

from __future__ import annotations

import posixpath
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse.sections import Anchors, heading_path
from qmd.system import cancellation
from qmd.values import text

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.store.sql.links import NamedFile, StoredLink
    from qmd.values.graph import LinkState

#: Links that are resolved between two checks whether the caller has given up.
_LINKS_AT_ONCE = 1000
#: The headings and blocks of at most so many documents are in memory.
_MOST_ANCHORS = 1000


_NO_PARENT = re.compile(r"(?:\.\./)+")


class LinkTarget(NamedTuple):
    """
    What a link leads to.

    Attributes:
        kind: "section missing" is a document without the heading or block that the link names;
            "folder" one without a README, see `LinkedFiles.find`; "nothing" a file that does not
            exist; "web" an address outside.
        path: Of the file or folder, relative to the collection; None for "web" and "nothing".
        document_id: None for everything but a document, whether it has the section or not.
    """

    kind: LinkState
    path: str | None = None
    document_id: int | None = None


NOTHING = LinkTarget("nothing")
WEB = LinkTarget("web")


class LinkedFiles:
    """
    The files of one collection among which links are resolved.

    The time for all links together grows with their number and that of the files: what the links
    of many notes have in common is sorted once.

    Args:
        is_vault: Whether the collection is an Obsidian vault.
    """

    def __init__(self, *, is_vault: bool = True) -> None:
        self._is_vault = is_vault
        self._by_path: dict[str, list[NamedFile]] = {}
        self._by_name: dict[str, set[str]] = {}
        self._sorted: dict[str, _PathsByEnd] = {}

    def add(self, files: Iterable[NamedFile]) -> None:
        """Add files that are not among them yet."""
        for file in files:
            folded = text.fold(file.path)
            name = folded.rpartition("/")[2]
            self._by_path.setdefault(folded, []).append(file)
            self._by_name.setdefault(name, set()).add(folded)
            self._sorted.pop(name, None)

    def find(self, path: str, source: str, kind: str = "wikilink") -> NamedFile | None:
        """
        The file that a link leads to; None if there is none.

        Args:
            path: A link path that is not empty, see `qmd.values.text.link_path`.
            source: The path of the note with the link.
        """
        if self._is_vault:
            return self._find(path, source)
        if kind not in text.MARKDOWN_LINKS:
            page_file = text.file_of_page(path)
            file = self._find(path, source)
            return file if file or page_file is None else self._find(page_file, source)
        place = text.path_from(path, source)
        beside = None if path.endswith("/") else self._at(place)
        return beside or self._find(path, source) or self._readme(place)

    def _at(self, place: str) -> NamedFile | None:
        """The file at a path from the root; ``.md`` may be left out."""
        spellings = ((text.fold(spelling), spelling) for spelling in _spellings(place))
        return next((file for each in spellings if (file := self._exact(*each))), None)

    def _readme(self, folder: str) -> NamedFile | None:
        """The file that stands for a folder."""
        places = (posixpath.normpath(f"{folder}/{page}") for page in text.FOLDER_PAGES)
        return next(
            (file for place in places if (file := self._exact(text.fold(place), place))), None
        )

    def _find(self, path: str, source: str) -> NamedFile | None:
        """By the rules of Obsidian."""
        folder = source.rpartition("/")[0]
        if path.endswith("/"):
            return None  # a folder
        whole = path.startswith(("/", "./", "../"))
        if path.startswith("/"):
            path = path.lstrip("/")
        elif whole or "/../" in path or "/./" in path:
            path = posixpath.normpath(f"{folder}/{path}" if whole and folder else path)
            if self._is_vault:
                path = _NO_PARENT.sub("", path)  # Obsidian stays at the root
        while "//" in path:
            path = path.replace("//", "/")
        for spelling in _spellings(path):
            folded = text.fold(spelling)
            file = self._exact(folded, spelling)
            if file is None and not whole:
                file = self._by_end(folded, spelling, folder)
            if file is not None:
                return file
        return None

    def _exact(self, folded: str, path: str) -> NamedFile | None:
        """The file at a folded path; if case tells several apart, the one with this spelling."""
        files = self._by_path.get(folded)
        if files is None:
            return None
        return min(files, key=lambda file: (not f"/{file.path}".endswith(f"/{path}"), file.path))

    def _by_end(self, folded: str, path: str, folder: str) -> NamedFile | None:
        name = folded.rpartition("/")[2]
        if name not in self._by_name:
            return None
        if name not in self._sorted:
            self._sorted[name] = _PathsByEnd(self._by_name[name])
        nearest = self._sorted[name].nearest(folded, text.fold(folder))
        return None if nearest is None else self._exact(nearest, path)


def _spellings(path: str) -> Iterator[str]:
    """The paths that a link path may stand for: a name without a dot is first of all a note's."""
    if "." in path.rpartition("/")[2]:
        yield path
        yield from (path + suffix for suffix in text.NOTE_SUFFIXES)
    else:
        yield from (path + suffix for suffix in text.NOTE_SUFFIXES)
        yield path


class _PathsByEnd:
    """Folded paths with one file name, by their ends."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._reversed = sorted(f"/{path}"[::-1] for path in paths)
        self._ending: dict[str, list[str]] = {}
        self._nearest: dict[tuple[str, str], str | None] = {}

    def nearest(self, end: str, folder: str) -> str | None:
        """The best of the paths that end with the whole components of ``end``; see the module."""
        if (end, folder) not in self._nearest:
            paths = self._paths_ending(end)
            below = paths
            if folder:
                start = bisect_left(paths, f"{folder}/")
                below = paths[start : bisect_left(paths, f"{folder}0", start)]
            shortest = min(below or paths, key=lambda path: (len(path), path), default=None)
            self._nearest[end, folder] = shortest
        return self._nearest[end, folder]

    def _paths_ending(self, end: str) -> list[str]:
        if end not in self._ending:
            prefix = f"/{end}"[::-1]
            start = bisect_left(self._reversed, prefix)
            stop = bisect_left(self._reversed, f"{prefix[:-1]}0", start)
            self._ending[end] = sorted(path[-2::-1] for path in self._reversed[start:stop])
        return self._ending[end]


class LinkTargets:
    """Resolves links of one collection; the files that they name are read when they are needed."""

    def __init__(self, reader: Reader, collection: str) -> None:
        self._reader = reader
        self._collection = collection
        self._keys: set[str] = set()
        self._anchors: dict[int, Anchors] = {}
        self._folders: dict[str, LinkTarget] = {}
        self._is_vault = reader.collections.is_vault(collection)
        self._files = LinkedFiles(is_vault=self._is_vault)

    def resolve(
        self, links: Sequence[StoredLink], *, check_sections: bool = False
    ) -> list[LinkTarget]:
        """
        What each of these links leads to, in their order.

        Args:
            links: Of one collection. For all of its links, pass several thousand at a time.
            check_sections: Read the documents whose headings and blocks are named, each once.
                Otherwise no link has "section missing".
        """
        paths = [text.link_path(link.kind, link.target) for link in links]
        self._read(path for path in paths if path)
        targets = []
        for number, (link, path) in enumerate(zip(links, paths, strict=True)):
            if number % _LINKS_AT_ONCE == 0:
                cancellation.check()
            target = self._target(link, path)
            if check_sections and not self._has_section(link, target):
                target = target._replace(kind="section missing")
            targets.append(target)
        return targets

    def _has_section(self, link: StoredLink, target: LinkTarget) -> bool:
        """Whether the target has the heading or block that the link names, if it names one."""
        heading, block = text.link_anchor(link.kind, link.heading, link.block)
        if target.document_id is None or not (heading or block):
            return True
        if target.path is None or not text.fold(target.path).endswith(text.NOTE_SUFFIXES):
            return True  # such as a page of a PDF file
        anchors = self._anchors.get(target.document_id)
        if anchors is None:
            if len(self._anchors) >= _MOST_ANCHORS:
                self._anchors.clear()
            anchors = Anchors(self._reader.documents.text(target.document_id))
            self._anchors[target.document_id] = anchors
        if block:
            return anchors.has_block(block)
        return anchors.has_section(heading_path(heading))

    def _target(self, link: StoredLink, path: str | None) -> LinkTarget:
        if path is None:
            return WEB
        if not path:
            return LinkTarget("document", link.path, link.document_id)
        file = self._files.find(path, link.path, link.kind)
        if file is None:
            return self._folder(link, path)
        if file.document_id is None:
            return LinkTarget("attachment", file.path)
        return LinkTarget("document", file.path, file.document_id)

    def _folder(self, link: StoredLink, path: str) -> LinkTarget:
        if self._is_vault or link.kind not in text.MARKDOWN_LINKS:
            return NOTHING
        folder = text.path_from(path, link.path)
        if folder not in self._folders:
            is_folder = self._reader.links.has_folder(self._collection, folder)
            self._folders[folder] = LinkTarget("folder", folder) if is_folder else NOTHING
        return self._folders[folder]

    def _read(self, paths: Iterable[str]) -> None:
        """Read the files that these link paths may name."""
        keys: set[str] = set()
        for path in paths:
            keys |= text.keys_of_target(path)
        if keys and not self._is_vault:
            keys.update(map(text.name_key, text.FOLDER_PAGES))
        keys -= self._keys
        if keys:
            self._files.add(self._reader.links.files_with_keys(self._collection, keys))
            self._keys |= keys
