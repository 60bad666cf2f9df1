"""
What a move changes for the links of one collection: which file each of them means, and its path.

Paths are written as Obsidian would write them, and as the link was written before.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import quote

from qmd.ingest.vault import LinkFormat
from qmd.parse.link_spans import PathForm
from qmd.search.lookup.link_targets import LinkedFiles
from qmd.store.sql.links import NamedFile
from qmd.values.names import FOLDER_PAGES, NOTE_SUFFIXES, fold, link_path, path_from

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
