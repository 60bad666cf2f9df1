"""What a move changes for the links of one collection: which file each of them means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from qmd.search.lookup.link_targets import LinkedFiles
from qmd.store.sql.links import NamedFile
from qmd.values.names import fold, link_path
from qmd.values.vaults import LinkFormat


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
