"""
What a move changes for the links of one collection: which file each of them means, and its path.
Which notes it concerns is read from the index.

Paths are written as Obsidian would write them, and as the link was written before.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import quote

from qmd.ingest.vault import LinkFormat
from qmd.parse.formats import CANVAS
from qmd.parse.links import PathForm, link_spans
from qmd.search.lookup.link_targets import LinkedFiles
from qmd.store.sql.links import NamedFile
from qmd.values.names import (
    FOLDER_PAGES,
    NOTE_SUFFIXES,
    fold,
    keys_of_target,
    link_keys_to,
    link_path,
    name_key,
    path_from,
)

if TYPE_CHECKING:
    from qmd.store import Reader

CANVAS_SUFFIX = CANVAS.suffixes[0]

_UNLINKABLE = re.compile(r"[\[\]|#^\r\n]|\A\s|\s\Z")
_CODE_OF_OTHER_SCRIPT = re.compile(r"%[89A-Fa-f][0-9A-Fa-f]")
#: What stays as it is in the path of a Markdown link, besides letters, digits and ``_.-~``.
_SAFE = "/!$&'*+,;=:@"


class LinkTree:
    """
    The files of a collection at one time, as far as links may lead to them.

    Args:
        is_vault: Whether the collection is an Obsidian vault.
    """

    def __init__(self, paths: Iterable[str], *, is_vault: bool = True) -> None:
        unique = dict.fromkeys(paths)
        self._files = LinkedFiles(is_vault=is_vault)
        self._files.add(NamedFile(path, None) for path in unique)
        self._names = Counter(fold(path.rpartition("/")[2]) for path in unique)

    def find(self, path: str, source: str, kind: str) -> str | None:
        """The file that a link path in the note ``source`` leads to, as `LinkedFiles.find`."""
        file = self._files.find(path, source, kind) if path else None
        return None if file is None else file.path

    def has_one_name(self, path: str) -> bool:
        """Whether no other file has the name of this one, in any letter case."""
        return self._names[fold(path.rpartition("/")[2])] <= 1


@dataclass(frozen=True, slots=True)
class Move:
    """
    A move, as the links of one collection see it.

    Attributes:
        before, after: The files; at least those that the links may lead to which are rewritten.
        old, new: The moved file; None in ``old`` if it comes from another collection, None in
            ``new`` if it goes to another.
        leaves: Whether the note with the links goes to another collection, without their targets.
        link_format: That of the Obsidian vault; None if the collection is no vault. Then Markdown
            links that were relative to their note stay so, as other programs need them.
    """

    before: LinkTree
    after: LinkTree
    old: str | None
    new: str | None
    link_format: LinkFormat | None = None
    leaves: bool = False

    def meaning_before(self, kind: str, target: str, source: str) -> str | None:
        """The file that a link led to; None for none, and for a link into its own note."""
        path = link_path(kind, target)
        return self.before.find(path, source, kind) if path else None

    def meaning_after(self, kind: str, target: str, source: str) -> str | None:
        path = link_path(kind, target)
        return self.after.find(path, source, kind) if path else None

    def place_after(self, path: str) -> str | None:
        """Where links find a file after the move; None if they cannot lead there any more."""
        if path == self.old:
            return self.new
        return None if self.leaves else path


def is_relative(path: str, source: str, target: str) -> bool:
    """
    Whether a link path leads to the target if it is read from the folder of its note.

    Letter case counts, as it does for most programs and disks.
    """
    if not path or path.startswith("/"):
        return False
    whole = path_from(path, source)
    folder, _, name = target.rpartition("/")
    if fold(name) in FOLDER_PAGES and (folder or ".") == whole:
        return True
    return target == whole or target in [whole + suffix for suffix in NOTE_SUFFIXES]


def written_path(
    move: Move, kind: str, old: str, source: str, target: str, form: PathForm, *, was_relative: bool
) -> str | None:
    """
    The text of a link's path, so that the link leads to a file after the move.

    Args:
        old: The path as the link was written, without ``#heading``.
        source: The note with the link, after the move.
        target: The file to lead to, after the move.
        was_relative: Whether a Markdown link led to the file from the folder of its note.

    Returns:
        None if no such link can be written, as to a name with ``#`` in a wikilink.
    """
    is_markdown = kind in ("link", "image")
    path = link_path(kind, old) or ""
    names_folder = path.rpartition("/")[2] in ("", ".", "..")  # and so its README
    omits_suffix = not is_markdown or not (fold(path).endswith(NOTE_SUFFIXES) or names_folder)
    style = _style(move, path, is_markdown=is_markdown, was_relative=was_relative)
    for candidate in _candidates(
        move,
        source,
        target,
        style,
        keeps_dot=is_markdown and path.startswith("./"),
        keeps_slash=path.startswith("/"),
    ):
        for spelling in _spellings(candidate, omits_suffix=omits_suffix):
            text = _encoded(spelling, old, form) if is_markdown else spelling
            if not is_markdown and _UNLINKABLE.search(text):
                continue
            if move.meaning_after(kind, text, source) == target:
                return text
    return None


def _style(move: Move, path: str, *, is_markdown: bool, was_relative: bool) -> LinkFormat:
    if move.link_format is not None and not (is_markdown and path.startswith(("./", "../"))):
        return move.link_format
    if path.startswith("/"):
        return "absolute"
    if path.startswith(("./", "../")) or (is_markdown and was_relative):
        return "relative"
    return "shortest"


def _candidates(
    move: Move, source: str, target: str, style: LinkFormat, *, keeps_dot: bool, keeps_slash: bool
) -> Iterator[str]:
    """Ways to name the target, the best first; the last one always leads there."""
    if style == "relative":
        relative = posixpath.relpath(target, posixpath.dirname(source) or ".")
        if not keeps_dot:
            yield relative
        if not relative.startswith("../"):
            yield f"./{relative}"
    elif style == "shortest" and move.after.has_one_name(target):
        yield target.rpartition("/")[2]
    if not keeps_slash:
        yield target
    yield f"/{target}"


def _spellings(path: str, *, omits_suffix: bool) -> Iterator[str]:
    if omits_suffix:
        # Obsidian leaves out .md alone.
        suffix = next((each for each in NOTE_SUFFIXES if fold(path).endswith(each)), None)
        if suffix is not None and path[-len(suffix) - 1 : -len(suffix)] not in ("", "/"):
            yield path[: -len(suffix)]
    yield path


def _encoded(path: str, old: str, form: PathForm) -> str:
    """The path of a Markdown link, with percent signs where it needs them or had them before."""
    in_angles = form in ("angle", "angle definition")
    keeps_spaces = in_angles and "%20" not in old
    encodes_scripts = _CODE_OF_OTHER_SCRIPT.search(old) is not None
    safe = _SAFE + (" ()" if keeps_spaces else "")

    def encoded(character: str) -> str:
        if not character.isascii() and not encodes_scripts and not character.isspace():
            return character
        return quote(character, safe=safe)

    return "".join(map(encoded, path))


# --- which notes a move concerns ------------------------------------------------------------


def plan_move(
    reader: Reader,
    old: tuple[str, str],
    new: tuple[str, str],
    text: str | None,
    formats: dict[str, LinkFormat | None],
) -> tuple[Move, list[tuple[str, Move]]]:
    """
    Read from the index which notes a move concerns.

    Args:
        old, new: Collection and path of the note before and after.
        text: That of the note; None if it is no text.
        formats: `Move.link_format` of each collection.

    Returns:
        The move for the links in the moved note, and the other notes with links that it concerns:
        the ``collection/path`` of each, with the move as the links of its collection see it.
    """
    old_keys, new_keys = set(link_keys_to(old[1])), set(link_keys_to(new[1]))
    inside_keys = _link_keys(reader, *old, text)

    def tree(collection: str, paths: Iterable[str]) -> LinkTree:
        return LinkTree(sorted(paths), is_vault=reader.collections.is_vault(collection))

    if old[0] == new[0]:
        collection = old[0]
        paths = _paths(reader, collection, old_keys | new_keys | inside_keys) - {new[1]} | {old[1]}
        move = Move(
            tree(collection, paths),
            tree(collection, paths - {old[1]} | {new[1]}),
            *(old[1], new[1], formats.get(collection)),
        )
        linking = _linking(reader, collection, old_keys | new_keys, besides=old[1])
        return move, [(file, move) for file in linking]
    paths = _paths(reader, old[0], old_keys | inside_keys) | {old[1]}
    paths_there = _paths(reader, new[0], new_keys | inside_keys) - {new[1]}
    before, without = tree(old[0], paths), tree(old[0], paths - {old[1]})
    there, with_new = tree(new[0], paths_there), tree(new[0], paths_there | {new[1]})
    leaving = Move(before, without, old[1], None, formats.get(old[0]))
    arriving = Move(there, with_new, None, new[1], formats.get(new[0]))
    there_before = _linking(reader, old[0], old_keys, besides=old[1])
    there_after = _linking(reader, new[0], new_keys, besides=new[1])
    return Move(before, with_new, old[1], new[1], formats.get(new[0]), leaves=True), [
        *((file, leaving) for file in there_before),
        *((file, arriving) for file in there_after),
    ]


def _paths(reader: Reader, collection: str, keys: Iterable[str]) -> set[str]:
    return {file.path for file in reader.links.files_with_keys(collection, keys)}


def _linking(reader: Reader, collection: str, keys: Iterable[str], *, besides: str) -> list[str]:
    """The notes with links that have one of these keys, and the canvases that are no documents."""
    paths = {link.path for link in reader.links.to_keys(collection, keys)}
    attachments = reader.links.attachments(collection)
    paths.update(path for path in attachments if path.lower().endswith(CANVAS_SUFFIX))
    return [f"{collection}/{path}" for path in sorted(paths - {besides})]


def _link_keys(reader: Reader, collection: str, path: str, text: str | None) -> set[str]:
    """The keys of the files that the links of a note may lead to."""
    links = [(span.link.kind, span.link.target) for span in link_spans(text or "")]
    document = reader.documents.by_path(collection, path)
    if document is not None:  # of a canvas, the text of the document has the links of its cards
        stored = reader.links.of_documents([document.id])
        links += [(link.kind, link.target) for link in stored]
    paths = {link_path(kind, target) for kind, target in links}
    keys = {key for each in paths if each for key in keys_of_target(each)}
    return keys | set(map(name_key, FOLDER_PAGES))
