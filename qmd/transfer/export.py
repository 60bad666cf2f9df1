"""
Writes what a knowledge base holds beside the files of the notes: an export.

docs/export.md describes the files. Vectors and documents are left out, because `qmd index` and
`qmd embed` make them again.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from qmd.system import clock
from qmd.transfer import archive
from qmd.values.exports import (
    EXPORT_VERSION,
    ExportedChat,
    ExportedCollection,
    ExportedContext,
    ExportedTurn,
    ExportHead,
    ExportReport,
)
from qmd.values.wire import to_wire

if TYPE_CHECKING:
    from qmd.store import Reader, Store


def content_name(digest: str) -> str:
    """The file that holds the content with this hash."""
    return f"{archive.CONTENTS}/{digest[:2]}/{digest}"


def turns_name(chat_id: str) -> str:
    """The file with the turns of a conversation."""
    return f"{archive.TURNS}/{chat_id}.jsonl"


def export(
    store: Store, target: Path, *, settings: bytes | None, version: str, force: bool
) -> ExportReport:
    """
    Write an export of one moment, while others may write.

    Args:
        settings: The content of ``config.toml``, if there is one. It holds no keys.
        version: The version of qmd.
        force: Replace an export that is there.

    Raises:
        ConflictError, StoreError: As `archive.writing`.
    """
    with archive.writing(target, force=force) as files, store.reading() as reader:
        counted = _Counted(files)
        head = ExportHead("qmd export", EXPORT_VERSION, version, clock.now())
        counted.put(archive.HEAD, json.dumps(to_wire(head), indent=1).encode() + b"\n")
        collections = [
            ExportedCollection(
                each.name, each.path, each.pattern, each.ignore, each.included, each.owner
            )
            for each in sorted(reader.collections.all(), key=lambda each: each.name)
        ]
        contexts = [
            ExportedContext(each.collection, each.prefix, each.text)
            for each in reader.contexts.all()
        ]
        counted.put_lines(archive.COLLECTIONS, collections)
        counted.put_lines(archive.CONTEXTS, contexts)
        changes = reader.revisions.kept_changes()
        counted.put_lines(archive.CHANGES, changes)
        revisions, damaged = _export_revisions(reader, counted)
        chats = _export_chats(reader, counted)
        if settings is not None:
            counted.put(archive.SETTINGS, settings)
    return ExportReport(
        str(target),
        counted.bytes,
        len(collections),
        len(contexts),
        len(changes),
        revisions,
        chats,
        settings is not None,
        damaged,
    )


class _Counted:
    """A target that counts the bytes."""

    def __init__(self, put: archive.Put) -> None:
        self._put = put
        self.bytes = 0

    def put(self, name: str, data: bytes) -> None:
        self._put(name, data)
        self.bytes += len(data)

    def put_lines(self, name: str, values: Iterable[object]) -> None:
        lines = (json.dumps(to_wire(value), ensure_ascii=False) for value in values)
        self.put(name, "".join(f"{line}\n" for line in lines).encode())


def _export_revisions(reader: Reader, target: _Counted) -> tuple[int, int]:
    """How many revisions were written, and how many have a damaged content and were not."""
    sound, damaged = [], 0
    written = set[str]()
    for revision in reader.revisions.kept_revisions():
        if revision.kind != "none" and revision.hash not in written:
            try:
                content = reader.revisions.content(revision.number)
            except (ValueError, TypeError, zlib.error):
                content = None
            if content is None:
                damaged += 1
                continue
            target.put(content_name(revision.hash), content)
            written.add(revision.hash)
        sound.append(revision)
    target.put_lines(archive.REVISIONS, sound)
    return len(sound), damaged


def _export_chats(reader: Reader, target: _Counted) -> int:
    conversations = reader.conversations
    chats = list[ExportedChat]()
    for info in conversations.latest(limit=conversations.count()):
        summary = conversations.summary(info.id)
        about = (info.id, info.name, info.mode, info.created, info.updated)
        chats.append(ExportedChat(*about, *summary))
        turns = [ExportedTurn(*turn) for turn in conversations.turns(info.id)]
        target.put_lines(turns_name(info.id), turns)
    chats.sort(key=lambda chat: chat.id)
    target.put_lines(archive.CHATS, chats)
    return len(chats)
