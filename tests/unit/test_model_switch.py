"""Another embedding model: the old vectors answer until the new set is complete."""

from __future__ import annotations

import signal
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import child
from support.embedder import HashEmbedder
from support.live import until
from support.tiny_onnx import write_embedder

from qmd import KnowledgeBase, Settings
from qmd.errors import ModelMismatchError
from qmd.ingest import embedding
from qmd.models.catalogue import spec_of
from qmd.values import ModelSpec

PAGES = {
    "boat.md": "# Boat\n\na red boat lies in the harbour\n",
    "ship.md": "# Ship\n\nthe ship crossed the ocean\n",
    "town.md": "# Town\n\na house stands in the town\n",
    "good.md": "# Good\n\ngood ship\n",
    "bad.md": "# Bad\n\nbad boat\n",
}


class Other(HashEmbedder):
    """Another model, which fails after so many texts."""

    spec = ModelSpec("other", "other-1", 384, 512, query_prefix="q: ")

    def __init__(self, most: int | None = None) -> None:
        super().__init__()
        self._most = most

    def embed_passages(self, texts: Sequence[str]) -> Any:
        if self._most is not None and self.calls >= self._most:
            raise KeyboardInterrupt
        return super().embed_passages(texts)


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.fixture
def kb(notes: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KnowledgeBase]:
    """Embedded with `HashEmbedder`; a text a transaction."""
    monkeypatch.setattr(embedding, "BATCH", 1)
    path = notes.parent / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as made:
        made.add_collection(notes)
        made.index()
        made.embed()
        yield made


def model_names(kb: KnowledgeBase) -> tuple[str | None, str | None]:
    """The active and the coming one."""
    with kb._store.reading() as reader:
        active, coming = reader.models.active(), reader.models.coming()
    return active and active.name, coming and coming.name


def rows(kb: KnowledgeBase) -> dict[str, int]:
    """How many vectors of each model there are to scan."""
    with kb._store.reading() as reader:
        return dict(
            reader.connection.execute(
                "SELECT m.name, count(*) FROM z_vectors v JOIN z_models m ON m.id = v.model_id"
                " GROUP BY m.name"
            ).fetchall()
        )


def interrupted(kb: KnowledgeBase, texts: int) -> None:
    """`Other` begins to embed, and is interrupted after so many texts."""
    with pytest.raises(KeyboardInterrupt):
        embedding.embed(kb._store, Other(texts))


def hits(kb: KnowledgeBase) -> list[str]:
    return [hit.path for hit in kb.vsearch("red boat", min_score=0).hits]


def test_the_old_vectors_answer_until_the_new_set_is_complete(kb: KnowledgeBase) -> None:
    before = hits(kb)
    interrupted(kb, 3)
    assert model_names(kb) == ("test-hash", "other")
    assert rows(kb) == {"test-hash": 5, "other": 3}
    assert hits(kb) == before
    assert kb.query("red boat").degraded is None
    assert kb.status().needs_embedding == 0


def test_an_interrupted_change_goes_on_where_it_was(kb: KnowledgeBase) -> None:
    interrupted(kb, 3)
    other = Other()
    report = embedding.embed(kb._store, other)
    assert (report.embedded, report.remaining, report.model) == (2, 0, "other")
    assert other.calls == 2
    assert model_names(kb) == ("other", None)
    assert rows(kb) == {"other": 5}
    with KnowledgeBase.open(kb.path, Settings(embedder=Other())) as new:
        assert len(hits(new)) == 5


def test_a_question_of_the_old_model_is_refused_by_the_new_vectors(kb: KnowledgeBase) -> None:
    embedding.embed(kb._store, Other())
    with pytest.raises(ModelMismatchError):
        kb.vsearch("red boat")
    assert "Answered from full text alone" in (kb.query("red boat").degraded or "")


def test_the_way_back_costs_nothing_until_cleanup(kb: KnowledgeBase) -> None:
    embedding.embed(kb._store, Other())
    back = HashEmbedder()
    report = embedding.embed(kb._store, back)
    assert (report.embedded, report.reused, back.calls) == (0, 5, 0)
    assert model_names(kb) == ("test-hash", None)
    removed = kb.cleanup().removed
    assert removed["vectors of models that are not in use"] == 5
    assert removed["models that are not in use"] == 1
    assert embedding.embed(kb._store, Other()).embedded == 5


def test_cleanup_keeps_what_is_being_made(kb: KnowledgeBase) -> None:
    interrupted(kb, 3)
    assert not any(kb.cleanup().removed.values())
    assert embedding.embed(kb._store, Other()).embedded == 2


def test_what_changes_meanwhile_is_in_both_sets(kb: KnowledgeBase, notes: Path) -> None:
    interrupted(kb, 4)
    (notes / "bad.md").unlink()
    (notes / "boat.md").write_text("# Boat\n\na red ship, and a boat in the harbour\n")
    (notes / "new.md").write_text("# New\n\na red boat\n")
    kb.index()
    assert kb.embed().embedded == 2  # for the model that answers
    assert model_names(kb) == ("test-hash", "other")
    assert "new.md" in hits(kb)
    assert "bad.md" not in hits(kb)
    embedding.embed(kb._store, Other())
    assert model_names(kb) == ("other", None)
    assert rows(kb) == {"other": 5}
    with KnowledgeBase.open(kb.path, Settings(embedder=Other())) as new:
        assert sorted(hits(new)) == ["boat.md", "good.md", "new.md", "ship.md", "town.md"]


def test_it_takes_over_only_when_nothing_is_missing(kb: KnowledgeBase, notes: Path) -> None:
    """Another process stores a document between the last batch and the end."""
    late = notes / "late.md"

    class Slow(Other):
        def embed_passages(self, texts: Sequence[str]) -> Any:
            if self.calls == 4:
                late.write_text("# Late\n\na good house\n")
                kb.index()
            return super().embed_passages(texts)

    report = embedding.embed(kb._store, Slow())
    assert (report.embedded, report.remaining) == (6, 0)
    assert model_names(kb) == ("other", None)
    with KnowledgeBase.open(kb.path, Settings(embedder=Other())) as new:
        assert "late.md" in hits(new)


def test_a_part_of_the_collections_is_not_enough(kb: KnowledgeBase, notes: Path) -> None:
    more = notes.parent / "more"
    more.mkdir()
    (more / "x.md").write_text("# X\n\nanother boat\n")
    number = kb.add_collection(more).id
    kb.index()
    kb.embed()
    embedding.embed(kb._store, Other(), collection_ids=[number])
    assert model_names(kb) == ("test-hash", "other")
    assert len(hits(kb)) == 6
    assert embedding.embed(kb._store, Other()).embedded == 5
    assert model_names(kb) == ("other", None)


def test_a_third_model_takes_the_place_of_the_second(kb: KnowledgeBase) -> None:
    class Third(HashEmbedder):
        spec = ModelSpec("third", "third-1", 384, 512)

    interrupted(kb, 3)
    report = embedding.embed(kb._store, Third())
    assert (report.embedded, model_names(kb)) == (5, ("third", None))
    assert rows(kb) == {"third": 5}


def test_whoever_fills_a_set_that_is_given_up_is_told(kb: KnowledgeBase) -> None:
    class Late(Other):
        def embed_passages(self, texts: Sequence[str]) -> Any:
            if self.calls == 2:
                kb._store.write(lambda writer: writer.models.cancel())
            return super().embed_passages(texts)

    with pytest.raises(ModelMismatchError, match="Another process"):
        embedding.embed(kb._store, Late())
    assert model_names(kb) == ("test-hash", None)
    assert rows(kb) == {"test-hash": 5}
    assert len(hits(kb)) == 5


def test_prefixes_and_dimension_are_recorded(kb: KnowledgeBase) -> None:
    embedding.embed(kb._store, Other())
    with kb._store.reading() as reader:
        rows = reader.connection.execute(
            "SELECT name, dimension, query_prefix, passage_prefix FROM z_models WHERE active"
        ).fetchall()
    assert rows == [("other", 384, "q: ", "")]


def test_an_empty_index_takes_another_model_at_once(notes: Path) -> None:
    path = notes.parent / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.embed()
        assert model_names(kb) == ("test-hash", None)
    with KnowledgeBase.open(path, Settings(embedder=Other())) as kb:
        kb.embed()
        assert model_names(kb) == ("other", None)
        assert rows(kb) == {}


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no kill -9 here")
def test_a_killed_process_leaves_a_set_that_answers_and_one_that_goes_on(
    kb: KnowledgeBase, notes: Path
) -> None:
    code = """
import sys
from qmd import KnowledgeBase, Settings
from qmd.models.catalogue import spec_of
from qmd.ingest import embedding
from qmd.values import ModelSpec
from tests.support.embedder import HashEmbedder

class Other(HashEmbedder):
    spec = ModelSpec("other", "other-1", 384, 512, query_prefix="q: ")
    def embed_passages(self, texts):
        if self.calls == 3:
            print("three", flush=True)
            sys.stdin.readline()
        return super().embed_passages(texts)

embedding.BATCH = 1
with KnowledgeBase.open(sys.argv[1], Settings(embedder=HashEmbedder())) as kb:
    embedding.embed(kb._store, Other())
"""
    process = child.start(code, kb.path)
    assert process.stdout is not None
    assert process.stdout.readline() == "three\n"
    process.kill()
    process.communicate()
    assert model_names(kb) == ("test-hash", "other")
    assert len(hits(kb)) == 5
    assert embedding.embed(kb._store, Other()).embedded == 2
    assert model_names(kb) == ("other", None)


# --- by name -------------------------------------------------------------------------


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    return (
        write_embedder(tmp_path / "models/one", 8),
        write_embedder(tmp_path / "models/two", 16, seed="two"),
    )


@pytest.fixture
def named(notes: Path, folders: tuple[Path, Path]) -> Iterator[KnowledgeBase]:
    """Embedded with the first of two models in folders."""
    with KnowledgeBase.open(
        notes.parent / "named.sqlite", Settings(model=str(folders[0])), create=True
    ) as made:
        made.add_collection(notes)
        made.index()
        made.embed()
        yield made


def test_every_process_embeds_questions_as_the_vectors_are(
    named: KnowledgeBase, folders: tuple[Path, Path]
) -> None:
    """Whatever its own settings say."""
    for setting in (None, str(folders[1])):
        with KnowledgeBase.open(named.path, Settings(model=setting)) as kb:
            assert kb.embedding_model().name == str(folders[0])
            assert hits(kb)[0] in {"boat.md", "bad.md"}
            assert np.allclose(kb.embed_texts(["red"], kind="query").shape, (1, 8))


def test_a_setting_counts_for_what_is_embedded_next(
    named: KnowledgeBase, folders: tuple[Path, Path]
) -> None:
    with KnowledgeBase.open(named.path, Settings(model=str(folders[1]))) as kb:
        assert kb.embed().model == str(folders[1])
        assert kb.status().model == str(folders[1])
        assert kb.embedding_model().dimension == 16
        assert len(hits(kb)) == 5
    assert len(hits(named)) == 5  # whose own setting is the first


def test_a_moved_folder_is_the_same_model(
    named: KnowledgeBase, folders: tuple[Path, Path], tmp_path: Path
) -> None:
    moved = folders[0].rename(tmp_path / "elsewhere")
    with KnowledgeBase.open(named.path, Settings(model=str(moved))) as kb:
        assert kb.embed().embedded == 0
        assert kb.status().model == str(moved)
        assert len(hits(kb)) == 5


def test_what_embed_has_begun_is_ended_by_whoever_has_no_setting_of_its_own(
    named: KnowledgeBase, folders: tuple[Path, Path]
) -> None:
    one, two = map(str, folders)

    def begin(writer: Any) -> None:
        writer.models.begin(spec_of(two))

    named._store.write(begin)
    assert model_names(named) == (one, two)
    with KnowledgeBase.open(named.path, Settings(model=one)) as kb:
        kb.embed()
    assert model_names(named) == (one, two)
    with KnowledgeBase.open(named.path) as kb:
        kb.keep()
        until(lambda: model_names(kb) == (two, None))


def test_a_keeper_begins_no_change_because_of_its_own_setting(
    named: KnowledgeBase, folders: tuple[Path, Path], notes: Path
) -> None:
    """Two servers with different settings would take turns for ever."""
    one, two = map(str, folders)
    with KnowledgeBase.open(named.path, Settings(model=two)) as kb:
        kb.keep()
        until(lambda: any("'qmd models use" in each for each in kb.freshness().notices))
        (notes / "new.md").write_text("# New\n\na good red ship\n")
        until(lambda: "new.md" in hits(kb))
    assert model_names(named) == (one, None)
