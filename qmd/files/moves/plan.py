"""Reads from the index which notes a move concerns, and what their links meant."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from qmd.files.moves.move import LinkTree, Move
from qmd.files.moves.rewrite import CANVAS_SUFFIX
from qmd.ingest.vault import LinkFormat
from qmd.parse.link_spans import link_spans
from qmd.values.names import FOLDER_PAGES, keys_of_target, link_keys_to, link_path, name_key

if TYPE_CHECKING:
    from qmd.store import Reader


@dataclass(frozen=True, slots=True)
class LinkingNotes:
    """The notes of one collection whose links a move may concern."""

    collection: str
    paths: tuple[str, ...]
    move: Move


@dataclass(frozen=True, slots=True)
class MovePlan:
    """
    A move: what it changes for the links in the moved note, and for those in other notes.

    Attributes:
        inside: For the moved note.
        others: One of each collection that the move concerns.
    """

    inside: Move
    others: tuple[LinkingNotes, ...]


def plan_move(
    reader: Reader,
    old: tuple[str, str],
    new: tuple[str, str],
    text: str | None,
    formats: dict[str, LinkFormat | None],
) -> MovePlan:
    """
    Plan a move.

    Args:
        old, new: Collection and path of the note before and after.
        text: That of the note; None if it is no text.
        formats: `Move.link_format` of each collection.
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
        return MovePlan(move, (LinkingNotes(collection, linking, move),))
    paths = _paths(reader, old[0], old_keys | inside_keys) | {old[1]}
    paths_there = _paths(reader, new[0], new_keys | inside_keys) - {new[1]}
    before, without = tree(old[0], paths), tree(old[0], paths - {old[1]})
    there, with_new = tree(new[0], paths_there), tree(new[0], paths_there | {new[1]})
    leaving = Move(before, without, old[1], None, formats.get(old[0]))
    arriving = Move(there, with_new, None, new[1], formats.get(new[0]))
    return MovePlan(
        Move(before, with_new, old[1], new[1], formats.get(new[0]), leaves=True),
        (
            LinkingNotes(old[0], _linking(reader, old[0], old_keys, besides=old[1]), leaving),
            LinkingNotes(new[0], _linking(reader, new[0], new_keys, besides=new[1]), arriving),
        ),
    )


def _paths(reader: Reader, collection: str, keys: Iterable[str]) -> set[str]:
    return {file.path for file in reader.links.files_with_keys(collection, keys)}


def _linking(
    reader: Reader, collection: str, keys: Iterable[str], *, besides: str
) -> tuple[str, ...]:
    """The notes with links that have one of these keys, and the canvases that are no documents."""
    paths = {link.path for link in reader.links.to_keys(collection, keys)}
    attachments = reader.links.attachments(collection)
    paths.update(path for path in attachments if path.lower().endswith(CANVAS_SUFFIX))
    return tuple(sorted(paths - {besides}))


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
