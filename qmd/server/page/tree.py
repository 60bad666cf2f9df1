"""The folders of all collections and the tags of all notes as trees: beside a note, and at
``/browse/COLLECTION/FOLDER``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from qmd.errors import DocumentNotFoundError
from qmd.kb import KnowledgeBase
from qmd.server.page.links import address, note_address
from qmd.server.page.views import PageView, Shown, Visit
from qmd.values.graph import TagCount

MOST_LISTED = 200
"""Entries of one folder that are listed at once, collections among them."""

_NUMBER = re.compile(r"([0-9]+)")
_MOST_TAGS = 500
_MOST_DEPTH = 40  # folders inside each other that are opened

NO_TREE = "qmd_tree"
"""The cookie of a browser whose person wants no tree beside notes; its value is "off"."""


@dataclass(frozen=True, slots=True)
class TreeEntry:
    """
    A document, a folder or a collection.

    Attributes:
        file: ``collection/path``; "" for a link to the entries that are left out.
        address: The view of the document, or of the folder.
        level: What is in the folder, if it is open.
        is_current: Whether the person looks at it.
    """

    name: str
    file: str
    address: str
    is_folder: bool = False
    level: TreeLevel | None = None
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class TreeLevel:
    """
    The entries of a folder, its folders first.

    Attributes:
        before, behind: Addresses of the entries that are left out; "" if there are none.
    """

    entries: Sequence[TreeEntry]
    before: str = ""
    behind: str = ""


def tree(kb: KnowledgeBase, file: str = "", *, start: str = "") -> TreeLevel:
    """
    All collections, with the folders opened that lead to a document or a folder.

    The cost grows with the number of entries that are listed, not with that of the documents.

    Args:
        file: ``collection/path`` of a document, or of a folder, which ends with ``/`` and is opened
            itself; "" opens nothing.
        start: The first entry of that folder that is listed, as ``collection/path``.
    """
    parts = file.split("/")
    folders = ["".join(f"{part}/" for part in parts[:at]) for at in range(len(parts))]
    opened: TreeLevel | None = None
    for at in reversed(range(min(len(folders), _MOST_DEPTH))):
        chosen = f"{folders[at]}{parts[at]}" + ("/" if at < len(parts) - 1 else "")
        opened = _level(kb, folders[at], chosen, opened, start if at == len(parts) - 1 else "")
    return opened or TreeLevel(())


def _level(
    kb: KnowledgeBase, folder: str, chosen: str, opened: TreeLevel | None, start: str
) -> TreeLevel:
    """The entries of a folder; ``chosen`` is the one that holds what is ``opened``."""
    paths = kb.paths_from(folder, limit=MOST_LISTED + 1, start=start)
    if not start and len(paths) > MOST_LISTED and chosen > paths[-2] and chosen > folder:
        start = chosen  # what the person looks at stands in the list, however long that is
        paths = kb.paths_from(folder, limit=MOST_LISTED + 1, start=start)
    behind = ""
    if len(paths) > MOST_LISTED:
        behind = f"{folder_view(folder)}?from={address(paths.pop())}"
    entries = [
        TreeEntry(
            name=path.removeprefix(folder).removesuffix("/" if path.endswith("/") else ".md"),
            file=path,
            address=folder_view(path) if path.endswith("/") else note_address(path),
            is_folder=path.endswith("/"),
            level=opened if path == chosen else None,
            is_current=path == chosen and opened is None,
        )
        for path in paths
    ]
    entries.sort(key=lambda each: (not each.is_folder, _natural(each.name)))
    return TreeLevel(entries, folder_view(folder) if start else "", behind)


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Sorts "Part 2" before "Part 10"; letter case does not matter."""
    return [
        (0, int(piece), "") if piece.isdecimal() and len(piece) < 19 else (1, 0, piece)
        for piece in _NUMBER.split(name.casefold())
    ]


def folder_view(folder: str) -> str:
    """The address of the view of ``collection/folder``; of all collections for ""."""
    return f"/browse/{address(folder.rstrip('/'))}".rstrip("/")


def tree_is_wanted(visit: Visit) -> bool:
    """Whether the person wants the tree beside notes."""
    return visit.request.cookies.get(NO_TREE) != "off"


def _browse(visit: Visit) -> Shown:
    folder = visit.path.get("file", "").strip("/")
    shown = f"{folder}/" if folder else ""
    folders = tree(visit.kb, shown, start=visit.query("from"))
    if not folder and len(folders.entries) == 1:  # nobody has to open the only collection
        folders = tree(visit.kb, folders.entries[0].file)
    if folder and not _is_there(visit.kb, shown):
        raise DocumentNotFoundError(folder)
    names = folder.split("/") if folder else []
    values = {
        "folder": folder,
        "parents": [
            (name, folder_view("/".join(names[: at + 1]))) for at, name in enumerate(names)
        ],
        "tree": folders,
        "tags": _tags(visit),
    }
    return Shown("browse.html", values)


def _is_there(kb: KnowledgeBase, folder: str) -> bool:
    return folder in kb.paths_from(folder[:-1], limit=1) or bool(kb.paths_from(folder, limit=1))


def _folder(visit: Visit) -> Shown:
    """The entries of one folder, for a script that opens it."""
    folder = visit.file.strip("/") + "/"
    return Shown("tree_level.html", {"level": _level(visit.kb, folder, "", None, "")})


@dataclass(frozen=True, slots=True)
class TagBranch:
    """A tag with the tags below it."""

    tag: TagCount
    below: list[TagBranch]


def _tags(visit: Visit) -> Sequence[TagBranch]:
    branches: list[TagBranch] = []
    path: list[list[TagBranch]] = [branches]
    for each in visit.kb.tags(limit=_MOST_TAGS).tags:
        del path[each.depth + 1 :]
        branch = TagBranch(each, [])
        path[-1].append(branch)
        path.append(branch.below)
    return branches


VIEWS = (
    PageView("/browse", _browse),
    PageView("/browse/{file:file}", _browse),
    PageView("/part/tree/{file:file}", _folder),
    PageView("/part/tags", lambda visit: Shown("tree_tags.html", {"tags": _tags(visit)})),
)
