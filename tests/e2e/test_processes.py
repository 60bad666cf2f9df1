"""Several processes on one database, and processes that are killed in the middle of it."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import ModelMismatchError
from tests.support import child, writes
from tests.support.dump import assert_sound, dump, vector_rows
from tests.support.embedder import HashEmbedder

#: Other tests take the same branches.
pytestmark = pytest.mark.unmeasured

FILES = 160

#: Prints each tick of progress; dies at the one that is named, while its writer thread writes.
WORK = """
import os, signal, sys
from qmd import KnowledgeBase, Settings
from qmd.errors import ModelMismatchError
from tests.support.embedder import HashEmbedder
import qmd.ingest.collection_indexer
import qmd.ingest.embedding
qmd.ingest.collection_indexer.BATCH_DOCUMENTS = 16
qmd.ingest.embedding.BATCH = 8
def tick(progress):
    line = f"{progress.stage} {progress.done}"
    print(line, flush=True)
    if line in sys.argv[3:]:
        os.kill(os.getpid(), signal.SIGKILL)
with KnowledgeBase.open(sys.argv[1], Settings(embedder=HashEmbedder()), create=True) as kb:
    getattr(kb, sys.argv[2])(progress=tick)
print("done")
"""


def text(number: int, version: int = 0) -> str:
    return (
        f"---\ntags: [t{number % 7}]\n---\n# Note {number} v{version}\n\n"
        f"sourdough 数据库 [[{(number * 7) % FILES}]]\n\n" + f"## Part\n\nword{number} \n" * 10
    )


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    root.mkdir()
    for number in range(FILES):
        (root / f"{number}.md").write_text(text(number), encoding="utf-8")
    return root


@pytest.fixture
def database(tmp_path: Path, notes: Path) -> Path:
    """With a collection, not indexed yet."""
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, create=True) as kb:
        kb.add_collection(notes, name="notes")
    return path


def fresh(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(notes, name="notes")
        kb.index()
        kb.embed()
    return path


def killed(database: Path, job: str, line: str) -> None:
    """Run a job that dies without warning at a tick of its progress; the file is sound then."""
    process = child.start(WORK, database, job, line)
    out, _ = process.communicate(timeout=child.WAIT_S)
    assert process.returncode == -signal.SIGKILL, out
    assert out.endswith(f"{line}\n")
    assert_sound(database)


def test_killed_while_indexing_nothing_acknowledged_is_lost(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    stored = 0
    for done in (40, 33, 48):
        killed(database, "index", f"index {done}")
        with KnowledgeBase.open(database) as kb:
            now = kb.status().total_documents
            # Batches of 16: when one is handed over, the one before it is in.
            assert now >= stored + (done // 16 - 1) * 16
            files = [document.file for document in kb.documents()]
            assert len(set(files)) == len(files) == now
            stored = now
    with KnowledgeBase.open(database) as kb:
        report = kb.index()
        assert (report.added, report.unchanged) == (FILES - stored, stored)
    assert dump(database) == dump(fresh(tmp_path, notes))


def test_killed_while_taking_over_changes_the_next_run_completes_them(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    with KnowledgeBase.open(database) as kb:
        kb.index()
    for number in range(0, FILES, 2):
        (notes / f"{number}.md").write_text(text(number, 1), encoding="utf-8")
    (notes / "moved").mkdir()
    for number in range(1, FILES, 4):
        (notes / f"{number}.md").rename(notes / f"moved/{number}.md")
    for number in range(3, FILES, 8):
        (notes / f"{number}.md").unlink()
    for done in (20, 64):
        killed(database, "index", f"index {done}")
    child.run(WORK, database, "index")
    assert_sound(database)
    assert dump(database) == dump(fresh(tmp_path, notes))


def test_killed_while_embedding_what_was_embedded_is_kept(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    with KnowledgeBase.open(database) as kb:
        kb.index()
        total = kb.status().chunks
    assert total > 100
    kept = 0
    for done in (8, 48, 16):
        killed(database, "embed", f"embed {done}")
        with KnowledgeBase.open(database) as kb:
            embedded = kb.status().chunks_embedded
        assert embedded >= kept + done
        kept = embedded
    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        report = kb.embed()
        assert (report.embedded + report.reused, report.remaining) == (total - kept, 0)
    assert vector_rows(database) == vector_rows(fresh(tmp_path, notes))


def test_two_processes_that_index_and_embed_at_once_agree(
    tmp_path: Path, notes: Path, database: Path
) -> None:
    for job in ("index", "embed"):
        workers = [child.start(WORK, database, job) for _ in range(2)]
        for worker in workers:
            assert child.finish(worker).endswith("done")
    assert_sound(database)
    good = fresh(tmp_path, notes)
    assert dump(database) == dump(good)
    assert vector_rows(database) == vector_rows(good)


@pytest.mark.migrates
def test_four_processes_that_open_a_new_database_at_once_migrate_it_once(tmp_path: Path) -> None:
    code = """
import sys
from qmd import KnowledgeBase
import qmd.store.sqlite.migrate, sqlite_utils.migrations
print("ready", flush=True)
for line in sys.stdin:
    with KnowledgeBase.open(line.strip(), create=True) as kb:
        kb.add_context("/", "x")
        print(len(kb.contexts()), flush=True)
"""
    workers = [child.start(code) for _ in range(4)]
    try:
        for worker in workers:
            assert worker.stdout is not None
            assert worker.stdout.readline() == "ready\n"
        for number in range(6):
            path = tmp_path / f"{number}.sqlite"
            for worker in workers:
                assert worker.stdin is not None
                worker.stdin.write(f"{path}\n")
                worker.stdin.flush()
            for worker in workers:
                assert worker.stdout is not None
                assert worker.stdout.readline() == "1\n"
            assert_sound(path)
    finally:
        for worker in workers:
            worker.communicate()


def test_readers_see_whole_batches_while_another_process_writes(
    notes: Path, database: Path
) -> None:
    worker = child.start(WORK, database, "index")
    assert worker.stdout is not None
    seen = 0
    with KnowledgeBase.open(database, read_only=True) as kb:
        for _ in worker.stdout:
            total = kb.status().total_documents
            assert total >= seen
            assert total % 16 == 0 or total == FILES
            if total == seen:
                continue
            hits = kb.search("sourdough", limit=None).hits
            assert total <= len(hits)
            for hit in hits[:3]:
                assert kb.get(hit.file).text
            seen = total
        assert len(kb.search("sourdough", limit=None).hits) == FILES
    child.finish(worker)


@pytest.mark.parametrize("others", [False, True])
def test_a_collection_removed_while_it_is_indexed_ends_with_a_clear_error(
    tmp_path: Path, database: Path, others: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "only.md").write_text("# Only\n")

    def remove(done: int) -> None:
        if done != 20:
            return
        with KnowledgeBase.open(database) as second:
            second.remove_collection("notes")
            if others:  # takes the id that has become free
                second.add_collection(other, name="other")
                second.index()

    with KnowledgeBase.open(database) as kb:
        report = kb.index(progress=lambda tick: remove(tick.done))
        assert [error.split(":")[0] for error in report.errors] == ["notes"]
        assert "not found" in report.errors[0]
        expected = ["other/only.md"] if others else []
        assert [document.file for document in kb.documents()] == expected
    assert_sound(database)


def test_a_collection_renamed_while_it_is_indexed_is_indexed_all_the_same(database: Path) -> None:
    def rename(done: int) -> None:
        if done == 20:
            with KnowledgeBase.open(database) as second:
                second.rename_collection("notes", "journal")

    with KnowledgeBase.open(database) as kb:
        assert kb.index(progress=lambda tick: rename(tick.done)).errors == ()
        assert kb.collection("journal").documents == FILES


def test_a_move_that_two_processes_see_leaves_one_document(notes: Path, database: Path) -> None:
    """The one stores the new place while the other still believes the document at the old."""
    with KnowledgeBase.open(database) as kb:
        kb.index()
        before = kb.get("notes/0.md").document.id
        (notes / "0.md").rename(notes / "moved.md")

        def meanwhile(stage: str) -> None:
            if stage == "index":
                with KnowledgeBase.open(database) as second:
                    second.index()

        report = kb.index(progress=lambda tick: meanwhile(tick.stage))
        assert not report.errors
        assert kb.status().total_documents == FILES
        assert kb.get("notes/moved.md").document.id == before
    assert_sound(database)


def test_of_two_processes_that_embed_with_different_models_one_says_so(database: Path) -> None:
    class Other(HashEmbedder):
        spec = replace(HashEmbedder.spec, name="other", fingerprint="other-1")

    with KnowledgeBase.open(database, Settings(embedder=HashEmbedder())) as kb:
        kb.index()

        def stop(done: int) -> None:
            if done:
                raise KeyboardInterrupt

        def meanwhile(done: int) -> None:
            with (
                KnowledgeBase.open(database, Settings(embedder=Other())) as second,
                pytest.raises(KeyboardInterrupt),
            ):
                second.embed(progress=lambda tick: stop(tick.done))

        with pytest.raises(ModelMismatchError) as caught:
            kb.embed(progress=lambda tick: meanwhile(tick.done))
        assert "same model" in (caught.value.hint or "")
        assert kb.status().model == "other"
        assert 0 < kb.status().chunks_embedded < kb.status().chunks
    assert_sound(database)


def test_what_a_tool_wrote_while_the_indexer_ran_is_not_replaced_by_what_was_before(
    notes: Path, database: Path
) -> None:
    with KnowledgeBase.open(database) as kb:
        kb.index()
        (notes / "0.md").write_text("# Zero\n\nbefore the tool\n", encoding="utf-8")
        (notes / "1.md").write_text("# One\n\nalso changed\n", encoding="utf-8")

        def write(item: str) -> None:
            if item == "1.md":  # 0.md has been read, and is not stored yet
                with KnowledgeBase.open(database, Settings(write_roots=[notes])) as second:
                    writes.write(
                        second.files, notes / "0.md", b"# Zero\n\nby the tool\n", tool="test"
                    )
                    assert second.get("notes/0.md").text == "# Zero\n\nby the tool\n"

        kb.index(progress=lambda tick: write(tick.item))
        assert kb.get("notes/0.md").text == "# Zero\n\nby the tool\n"
        assert [hit.file for hit in kb.search('"by the tool"').hits] == ["notes/0.md"]
        assert kb.get("notes/1.md").text == "# One\n\nalso changed\n"
    assert_sound(database)
