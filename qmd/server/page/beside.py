"""
Shows what stands beside a note: the notes that links join to it, the trees of folders and tags.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from unicodedata import east_asian_width

from qmd.errors import DocumentNotFoundError
from qmd.kb import KnowledgeBase
from qmd.server.page.links import address, note_address
from qmd.server.page.views import PageView, Shown, Visit
from qmd.values.graph import Backlinks, Neighbourhood, NoteLinks, TagCount
from qmd.values.text import file_stem

# --- a note and its neighbours ----------------------------------------------------------
# On the left stand those that link to it, on the right its own links. The names stand in rows, so
# that all of them can be read, and the rows bend around the note.

#: Neighbours in the large drawing; the small one has room for `MOST_IN_COLUMN`.
MOST_DRAWN = 40

MOST_IN_COLUMN = 16
#: Notes on the canvas, the one in the middle among them.
MOST_NEAR = 100

_ROW = 26  # pixels between names
_CHARACTER = 7.4  # pixels of a Latin letter in a wide font; others take twice as much


@dataclass(frozen=True, slots=True)
class Neighbour:
    """
    A document that is linked with another one.

    Attributes:
        count: How many links there are between both.
    """

    file: str
    count: int
    links_here: bool
    is_linked: bool

    @property
    def name(self) -> str:
        return file_stem(self.file)

    @property
    def address(self) -> str:
        return note_address(self.file)


@dataclass(frozen=True, slots=True)
class Node:
    """A neighbour in the drawing; ``edge`` is the path of the line to the note."""

    neighbour: Neighbour
    label: str
    x: float
    y: float
    text_x: float
    is_left: bool
    edge: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """
    What the template draws.

    Attributes:
        left_out: Neighbours that are not drawn.
    """

    width: int
    height: int
    x: float
    y: float
    label: str
    nodes: tuple[Node, ...]
    left_out: int


def neighbours(file: str, links: NoteLinks, backlinks: Backlinks) -> list[Neighbour]:
    """The documents that a note links to, or that link to it: those with most links first."""
    outgoing = _counts(
        each.file for each in links.links if each.state in ("document", "section missing")
    )
    incoming = _counts(each.file for each in backlinks.links)
    linked = [
        Neighbour(
            each, incoming.get(each, 0) + outgoing.get(each, 0), each in incoming, each in outgoing
        )
        for each in incoming | outgoing
        if each != file
    ]
    return sorted(linked, key=lambda each: (-each.count, each.file))


def draw(file: str, around: Sequence[Neighbour], *, width: int, most: int) -> Drawing | None:
    """
    A drawing that is ``width`` pixels wide, with at most ``most`` neighbours; None without any.

    The same links give the same drawing.
    """
    if not around:
        return None
    shown = around[:most]
    left = sorted((each for each in shown if not each.is_linked), key=_by_name)
    right = sorted((each for each in shown if each.is_linked), key=_by_name)
    rows = max(len(left), len(right), 3)
    height = (rows + 1) * _ROW
    middle = (width / 2, height / 2)
    reach = width * 0.17
    room = width / 2 - reach - 14
    nodes = [
        *_side(left, middle, -reach, room, height),
        *_side(right, middle, reach, room, height),
    ]
    label = _cut(file_stem(file), width * 0.5)
    return Drawing(width, height, *middle, label, tuple(nodes), len(around) - len(shown))


def near_notes(near: Neighbourhood, places: Sequence[int]) -> list[dict[str, object]]:
    """Some notes of a neighbourhood, as the script and the list need them."""
    return [
        {
            "name": file_stem(note.file),
            "file": note.file,
            "address": note_address(note.file),
            "steps": note.steps,
        }
        for note in (near.notes[place] for place in places)
    ]


def links_among(near: Neighbourhood, places: Sequence[int]) -> list[tuple[int, int]]:
    """The links among them, by their places in this selection; those in both directions once."""
    numbers = {place: number for number, place in enumerate(places)}
    pairs = {
        (min(numbers[one], numbers[other]), max(numbers[one], numbers[other]))
        for one, other in near.links
        if one in numbers and other in numbers
    }
    return sorted(pairs)


def _side(
    side: Sequence[Neighbour], middle: tuple[float, float], reach: float, room: float, height: float
) -> Iterable[Node]:
    """The nodes of one side, on an arc that is widest at the middle row."""
    x0, y0 = middle
    is_left = reach < 0
    for row, each in enumerate(side):
        y = y0 + (row - (len(side) - 1) / 2) * _ROW
        bend = math.cos((y - y0) / height * math.pi)
        x = x0 + reach * (0.55 + 0.45 * bend)
        text_x = x - 9 if is_left else x + 9
        space = room + abs(reach) - abs(x - x0)
        half = (x0 + x) / 2
        edge = f"M{x0:.0f} {y0:.0f}C{half:.0f} {y0:.0f} {half:.0f} {y:.0f} {x:.0f} {y:.0f}"
        yield Node(each, _cut(each.name, space), round(x), round(y), round(text_x), is_left, edge)


def _cut(name: str, room: float) -> str:
    """A name that takes at most so many pixels; "…" stands for the rest."""
    used = 0.0
    for at, character in enumerate(name):
        used += _CHARACTER * (2 if east_asian_width(character) in "WF" else 1)
        if used > room - _CHARACTER and at < len(name) - 1:
            return f"{name[:at].rstrip()}…"
    return name


def _by_name(neighbour: Neighbour) -> tuple[str, str]:
    return (neighbour.name.casefold(), neighbour.file)


def _counts(files: Iterable[str | None]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for file in files:
        if file is not None:
            counts[file] = counts.get(file, 0) + 1
    return counts


# --- trees ------------------------------------------------------------------------------

#: Entries of one folder that are listed at once, collections among them.
MOST_LISTED = 200

_NUMBER = re.compile(r"([0-9]+)")
_MOST_TAGS = 500
_MOST_DEPTH = 40  # folders inside each other that are opened

#: The cookie of a browser whose person wants no tree beside notes; its value is "off".
NO_TREE = "qmd_tree"


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
        before, after: Addresses of the entries that are left out; "" if there are none.
    """

    entries: Sequence[TreeEntry]
    before: str = ""
    after: str = ""


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
    after = ""
    if len(paths) > MOST_LISTED:
        after = f"{folder_view(folder)}?from={address(paths.pop())}"
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
    return TreeLevel(entries, folder_view(folder) if start else "", after)


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
    if not _is_there(visit.kb, folder):
        raise DocumentNotFoundError(folder)
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
