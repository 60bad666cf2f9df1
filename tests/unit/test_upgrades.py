"""A database of each released version becomes one of this version, and loses no vector."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.cli.main import main
from qmd.errors import MigrationRequiredError
from qmd.store.sqlite import library as sqlite
from tests.support import released
from tests.support.dump import assert_sound, dump, vector_rows
from tests.support.embedder import HashEmbedder

#: That of 1.0.0 has other notes, and a test file of its own.
VERSIONS = sorted(
    path.name.removeprefix("qmd-").removesuffix(".sqlite.gz")
    for path in released.FOLDER.glob("qmd-1.[1-9]*.sqlite.gz")
)
#: Their titles could be headings of any level.
TITLES_OF_ANY_LEVEL = {"1.1.0", "1.2.0"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    released.write_notes(tmp_path / "notes")
    return tmp_path / "notes"


@pytest.fixture(params=VERSIONS)
def old(request: pytest.FixtureRequest, tmp_path: Path, root: Path) -> tuple[str, Path]:
    """The database of a version, whose collection is in a folder of this test."""
    path = tmp_path / "old.sqlite"
    data = (released.FOLDER / f"qmd-{request.param}.sqlite.gz").read_bytes()
    path.write_bytes(gzip.decompress(data))
    with closing(sqlite.connect(path, read_only=False)) as connection:
        connection.execute("UPDATE collections SET path = ?", [str(root)])
    return request.param, path


def test_every_vector_answers_until_that_of_another_title_is_made(
    old: tuple[str, Path], root: Path, tmp_path: Path
) -> None:
    version, path = old
    embedder = HashEmbedder()
    with KnowledgeBase.open(path, Settings(embedder=embedder)) as kb:
        kb.index(verify=True)
        status = kb.status()
        assert (status.chunks_embedded, status.needs_embedding) == (status.chunks, 0)
        assert kb.vsearch("rivers carry stones", limit=1).hits[0].path == "long.md"
        assert (status.chunks_outdated > 0) == (version in TITLES_OF_ANY_LEVEL)
        embedder.calls = 0
        # Equal text, equal vector: only what has another title or other headings is made again.
        assert kb.embed().embedded == embedder.calls == status.chunks_outdated
        assert kb.status().chunks_outdated == 0
    assert_sound(path)
    fresh = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(fresh, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes", mask="**/*.md")
        kb.index()
        kb.embed()
    assert vector_rows(path) == vector_rows(fresh)
    assert dump(path) == dump(fresh)
    with closing(sqlite.connect(path, read_only=True)) as connection:
        stored = connection.execute(
            "SELECT path, tags FROM documents WHERE tags <>"
            " (SELECT json_group_array(tag) FROM tags t WHERE t.document_id = documents.id)"
        )
        assert stored.fetchall() == []


def everything(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as connection:
        return list(connection.iterdump())


def test_a_backup_is_the_way_back(
    old: tuple[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _, path = old
    before, copy = path.read_bytes(), tmp_path / "copy.sqlite"
    assert main(["--db", str(path), "db", "backup", str(copy)]) == 0
    assert path.read_bytes() == before
    assert everything(copy) == everything(path)
    assert main(["--db", str(path), "index", "--no-embed"]) == 0
    assert "It is brought up to date; earlier versions cannot" in capsys.readouterr().err
    assert main(["--db", str(path), "db", "restore", str(copy)]) == 0
    assert "It is of an earlier version" in capsys.readouterr().out
    with pytest.raises(MigrationRequiredError):
        KnowledgeBase.open(path, read_only=True)
