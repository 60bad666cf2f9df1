"""An export that is imported into an empty database and exported again is the same export."""

from __future__ import annotations

import hashlib
import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.kb import KnowledgeBase
from qmd.store import Writer
from qmd.store.sql.conversations import ChatSummary
from qmd.store.sql.revisions import NO_FILE, pack_revision
from qmd.values.chats import ChatInfo, StoredTurn
from qmd.values.transfer import KeptChange, KeptRevision

TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
NAMES = st.text("ab文é 1", min_size=1, max_size=6).filter(lambda name: name == name.strip())
TIMES = st.datetimes().map(lambda moment: moment.isoformat(timespec="milliseconds") + "Z")
NUMBERS = st.integers(1, 2**40)
CONTEXTS = st.dictionaries(TEXTS.map(lambda text: text.strip("/")), NAMES, max_size=3)


@st.composite
def changes(draw: st.DrawFn) -> tuple[list[KeptChange], list[tuple[KeptRevision, bytes]]]:
    numbers = draw(st.lists(NUMBERS, unique=True, max_size=3))
    kept = [
        KeptChange(
            number,
            draw(TEXTS),
            draw(TEXTS),
            draw(NUMBERS),
            draw(TIMES),
            draw(st.integers(1, 9)),
            draw(st.none() | NUMBERS),
        )
        for number in sorted(numbers)
    ]
    revisions = []
    for number in sorted(draw(st.lists(NUMBERS, unique=True, max_size=4))):
        kind = draw(st.sampled_from(["content", "metadata", "none"]))
        content = b"" if kind == "none" else draw(st.binary(max_size=30))
        digest = "" if kind == "none" else hashlib.sha256(content).hexdigest()
        revision = KeptRevision(
            number,
            "/notes/" + draw(NAMES),
            digest,
            len(content),
            kind,
            draw(TEXTS),
            draw(TIMES),
            draw(st.none() | st.sampled_from(numbers)) if numbers else None,
            draw(st.sampled_from(["create", "write", "move", "delete"])),
            draw(st.none() | TEXTS),
            draw(st.none() | TEXTS),
        )
        revisions.append((revision, content))
    return kept, revisions


@st.composite
def conversations(draw: st.DrawFn) -> tuple[ChatInfo, ChatSummary, list[StoredTurn]]:
    turns = [
        StoredTurn(
            number,
            draw(TEXTS),
            draw(TEXTS),
            draw(st.sampled_from(["done", "stopped", "failed", "limit", "interrupted"])),
            draw(TIMES),
            draw(st.floats(0, 600)),
            draw(TEXTS),
            draw(TEXTS),
            draw(TEXTS),
        )
        for number in range(1, draw(st.integers(0, 3)) + 1)
    ]
    chat_id = draw(st.text("0123456789abcdef", min_size=4, max_size=8))
    mode = draw(st.sampled_from(["read", "write"]))
    info = ChatInfo(chat_id, draw(TEXTS), mode, draw(TIMES), draw(TIMES), len(turns))
    return info, ChatSummary(draw(TEXTS), draw(st.integers(0, 3))), turns


def files_of(export: Path) -> dict[str, bytes]:
    """The files of an export; its time is left out."""
    files = {
        path.relative_to(export).as_posix(): path.read_bytes()
        for path in export.rglob("*")
        if path.is_file()
    }
    assert json.loads(files.pop("export.json"))["format"] == "qmd export"
    return files


@settings(max_examples=settings().max_examples // 2)
@given(
    folders=st.lists(st.tuples(NAMES, CONTEXTS, st.booleans()), unique_by=lambda each: each[0]),
    overall=st.none() | NAMES,
    history=changes(),
    chats=st.lists(conversations(), max_size=3, unique_by=lambda chat: chat[0].id),
    is_archive=st.booleans(),
    config=st.none() | st.binary(max_size=20),
)
def test_an_export_that_is_imported_is_the_same_export(
    folders: list[tuple[str, dict[str, str], bool]],
    overall: str | None,
    history: tuple[list[KeptChange], list[tuple[KeptRevision, bytes]]],
    chats: list[tuple[ChatInfo, ChatSummary, list[StoredTurn]]],
    is_archive: bool,
    config: bytes | None,
) -> None:
    def fill(writer: Writer) -> None:
        for number, (name, contexts, included) in enumerate(folders):
            path = root / str(number)
            path.mkdir()
            added = writer.collections.add(
                name=name, path=str(path), pattern="**/*.md", ignore=["drafts/**"]
            )
            writer.collections.set_included(name, included=included)
            for prefix, text in contexts.items():
                writer.contexts.put(added.id, prefix, text)
        if overall is not None:
            writer.contexts.put(None, "", overall)
        for change in history[0]:
            writer.revisions.put_change(change)
        for revision, content in history[1]:
            packed = NO_FILE
            if revision.kind != "none":
                packed = pack_revision(content, revision.kind) or NO_FILE
            writer.revisions.put_revision(revision, packed)
        for chat in chats:
            writer.conversations.restore(*chat)

    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder).resolve()
        first = root / ("first.zip" if is_archive else "first")
        with KnowledgeBase.open(root / "kb.sqlite", create=True) as kb:
            kb._store.write(fill)
            report = kb.export(first, settings=config)
            kb.export(root / "before")
        with KnowledgeBase.open(root / "new.sqlite", create=True) as kb:
            planned = kb.import_export(first, dry_run=True)
            assert kb.collections() == []
            done = kb.import_export(first)
            kb.export(root / "after")
            again = kb.import_export(first)
        assert files_of(root / "before") == files_of(root / "after")
        assert done.folders.not_taken == again.folders.not_taken == ()
        assert (again.changes, again.revisions, again.chats, again.folders.contexts) == (0,) * 4
        assert (planned.changes, planned.revisions, planned.chats, planned.folders.contexts) == (
            report.changes,
            report.revisions,
            report.chats,
            report.contexts,
        )
        assert done.changes == report.changes and done.chats == report.chats
        assert (done.settings is None) == (config is None)
