"""A knowledge base copied to another engine and back is equal."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from qmd.errors import ConflictError
from qmd.kb import KnowledgeBase
from qmd.settings import Settings
from qmd.store import Store, open_store
from qmd.store.full_text import Phrase, any_of
from qmd.values import Progress
from qmd.values.location import ServerDatabase
from tests.support import photos, tiny_ocr
from tests.support.embedder import HashEmbedder
from tests.support.live import put


@pytest.fixture
def database(tmp_path: Path) -> Path:
    notes = tmp_path / "notes"
    put(
        notes / "plan.md",
        "---\ntags: [work]\nstatus: draft\n---\n# Plan\n\nSee [[data]]. 数据库备份\n",
    )
    put(notes / "data.md", "# Data\n\n## Tables\n\nrows and columns\n\n## Keys\n\nunique\n")
    put(notes / "deep/old.md", "# Old\n\nnothing of interest\n")
    photos.make(notes / "beach.jpg")
    (notes / "sign.png").write_bytes(tiny_ocr.photo("No swimming"))
    database = tmp_path / "index.sqlite"
    with KnowledgeBase.open(
        database, Settings(embedder=HashEmbedder(), ocr=tiny_ocr.TINY), create=True
    ) as kb:
        kb.add_collection(notes, mask=photos.MASK)
        kb.add_context("qmd://notes/deep", "what is old")
        kb.index()
        kb.ocr()
        kb.embed()
        kb.notes.create("notes/new.md", "# New\n\nwritten by a tool\n")
        kb.notes.create("notes/new.md", "# New\n\nwritten again\n")
    return database


def contents(store: Store) -> dict[str, object]:
    """What a person can find in a database, without the numbers that only it uses."""
    with store.reading() as reader:
        files = {each.id: f"{name}/{path}" for each, name, path in _documents(reader)}
        words = any_of(
            Phrase("data"), Phrase("数据 据库"), Phrase("written"), Phrase("unique"), Phrase("x100")
        )
        model = reader.models.active()
        assert model is not None
        return {
            "collections": {
                (each.name, each.path, each.pattern) for each in reader.collections.all()
            },
            "contexts": [(each.path, each.text) for each in reader.contexts.all()],
            "pictures": {
                (files[number], *picture, str(reader.pictures.texts(picture.source)))
                for number in files
                for picture in reader.pictures.of_document(number)
            },
            "documents": sorted(
                (files[number], reader.documents.text(number), str(reader.documents.facts(number)))
                for number in files
            ),
            "hits": {
                (files[number], round(score, 9))
                for number, score in reader.full_text.search(words, reader.all_documents, None)
            },
            "waiting": reader.embeddings.count_waiting(model),
            "model": model.name,
            "links": sorted(
                (link.path, link.seq, link.target)
                for link in reader.links.of_documents(sorted(files))
            ),
        }


def _documents(reader):  # type: ignore[no-untyped-def]
    for collection in reader.collections.all():
        for path, file in reader.files.in_collection(collection.id).items():
            yield file, collection.name, path


def test_there_and_back(database: Path, tmp_path: Path, postgres_database: ServerDatabase) -> None:
    with KnowledgeBase.open(database) as kb:
        report = kb.copy_to(postgres_database.url)
        again = kb.copy_to(postgres_database.url)
    assert (report.documents, report.unchanged, report.revisions) == (6, 0, 2)
    assert report.vectors > 0
    assert (again.documents, again.unchanged, again.vectors, again.revisions) == (0, 6, 0, 0)
    assert "s3cret" not in report.target
    with closing(open_store(postgres_database)) as there, closing(open_store(database)) as here:
        expected = contents(here)
        assert contents(there) == expected
    back = tmp_path / "back.sqlite"
    with KnowledgeBase(open_store(postgres_database)) as kb:
        kb.copy_to(str(back))
    with closing(open_store(back)) as store:
        assert contents(store) == expected
    with KnowledgeBase.open(back, create=True) as kb:
        indexed = kb.index()
        assert (indexed.added, indexed.updated, indexed.unchanged) == (0, 0, 6)
        assert len(kb.revisions.history("notes/new.md")) >= 1


def test_a_collection_of_another_folder_is_left_alone(database: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.sqlite"
    (tmp_path / "elsewhere").mkdir()
    with KnowledgeBase.open(other, create=True) as kb:
        kb.add_collection(tmp_path / "elsewhere", name="notes")
    with KnowledgeBase.open(database) as kb, pytest.raises(ConflictError, match="another folder"):
        kb.copy_to(str(other))


def test_a_collection_is_copied_wherever_its_folder_is(database: Path, tmp_path: Path) -> None:
    with KnowledgeBase.open(database) as kb:
        kb._store.write(
            lambda writer: writer.collections.add(
                name="pushed", path="/srv/pushed", pattern="**/*.md", ignore=(), owner="ann"
            )
        )
        (tmp_path / "notes").rename(tmp_path / "on another machine")
        report = kb.copy_to(str(tmp_path / "copy.sqlite"))
        assert (report.collections, report.documents, report.not_taken) == (2, 6, ())
    with closing(open_store(database)) as here, closing(open_store(tmp_path / "copy.sqlite")) as to:
        assert contents(to) == contents(here)
        with to.reading() as reader:
            assert reader.collections.by_name("pushed").owner == "ann"


def test_a_copy_that_ended_behind_the_last_document_goes_on(database: Path, tmp_path: Path) -> None:
    class EndedError(Exception):
        pass

    def end(tick: Progress) -> None:
        if tick.done == tick.total:
            raise EndedError

    copy = tmp_path / "copy.sqlite"
    with KnowledgeBase.open(database) as kb:
        with pytest.raises(EndedError):
            kb.copy_to(str(copy), progress=end)
        kb.copy_to(str(copy))
    with closing(open_store(copy)) as store, store.reading() as reader:
        assert not reader.collections.is_vault("notes")
        assert reader.collections.by_name("notes").last_indexed is not None


def test_a_history_that_differs_there_is_named(database: Path, tmp_path: Path) -> None:
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        kb.copy_to(str(tmp_path / "copy.sqlite"))
        kb.notes.create("notes/new.md", "# New\n\nwritten once more\n")
        report = kb.copy_to(str(tmp_path / "copy.sqlite"))
    assert (report.documents, report.revisions) == (1, 0)
    assert [each.subject for each in report.not_taken] == ["history"]
