"""Status, why, cleanup, doctor; and nothing left open."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import StoreError
from qmd.health.status import FolderState, folder_state
from qmd.ingest.collection_indexer import BATCH_DOCUMENTS
from qmd.store import Writer
from qmd.store.sqlite import library as sqlite
from qmd.values import Progress
from qmd.values.text import DEFAULT_MASK
from tests.support.dump import assert_sound
from tests.support.embedder import HashEmbedder

LONG = "# Long\n\n" + "\n\n".join(f"## Part {n}\n\n" + "many words here " * 60 for n in range(9))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = tmp_path / "notes"
    files = {
        "plan.md": "# Plan\n", "copy.md": "# Plan\n", "long.md": LONG, "empty.md": "",
        "drafts/x.md": "# X\n", ".hidden.md": "# H\n", "node_modules/y.md": "# Y\n",
        "list.txt": "a list", ".gitignore": "# ours\ndrafts/\n*.tmp.md\n", "a.tmp.md": "# T\n",
    }  # fmt: skip
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "nul.md").write_bytes(b"\x89PNG\r\n\x1a\n\x00")
    return root


@pytest.fixture
def kb(tmp_path: Path, root: Path) -> Iterator[KnowledgeBase]:
    path = tmp_path / "kb.sqlite"
    with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root)
        kb.index()
        yield kb


def test_status_counts_what_is_there(kb: KnowledgeBase) -> None:
    status = kb.status()
    assert status.total_documents == 4
    # "copy" and "plan" are one content; an empty document has nothing to embed.
    assert (status.needs_embedding, status.chunks_embedded) == (2, 0)
    assert kb.freshness().embeddings_pending == kb.search("plan").needs_embedding == 2
    assert not status.has_vector_index
    assert status.model is None
    assert [(skip.path, skip.reason) for skip in status.skipped] == [("nul.md", "binary")]
    assert status.excluded == {".gitignore": 2, "hidden": 2, "mask": 1, "node_modules": 1}
    assert status.last_indexed == kb.collection("notes").last_indexed
    assert status.database_bytes > 0
    kb.embed()
    status = kb.status()
    assert (status.needs_embedding, status.chunks_embedded) == (0, status.chunks)
    assert status.has_vector_index
    assert status.model == "test-hash"


def test_an_index_run_reports_the_same_as_status(kb: KnowledgeBase) -> None:
    report, status = kb.index(), kb.status()
    assert report.skipped == status.skipped
    assert report.excluded == status.excluded
    assert report.total_documents == status.total_documents == report.unchanged


@pytest.mark.parametrize(
    ("path", "rule", "says"),
    [
        ("drafts/x.md", ".gitignore", "Line 2 of .gitignore, 'drafts/'"),
        ("a.tmp.md", ".gitignore", "Line 3 of .gitignore"),
        (".hidden.md", "hidden", "begins with a dot"),
        ("node_modules/y.md", "node_modules", "node_modules"),
        ("list.txt", "mask", f"mask '{DEFAULT_MASK}' does not match"),
        ("nowhere.md", "missing", "Nothing of this name"),
        ("nul.md", "included", "binary"),
    ],
)
def test_why_names_the_rule_whatever_the_path_is_written_like(
    kb: KnowledgeBase, root: Path, monkeypatch: pytest.MonkeyPatch, path: str, rule: str, says: str
) -> None:
    monkeypatch.chdir(root)
    for spelling in (str(root / path), path, f"./{path}", f"notes/{path}", f"qmd://notes/{path}"):
        why = kb.why(spelling)
        assert not why.indexed
        assert why.detail["rule"] == rule
        assert says in why.reason
        assert why.path == f"notes/{path}"


def test_why_follows_a_document_through_its_life(kb: KnowledgeBase, root: Path) -> None:
    new = root / "new.md"
    new.write_text("# New\n")
    assert "not been indexed yet" in kb.why(new).reason
    kb.index()
    why = kb.why(new)
    assert why.indexed
    assert why.detail["docid"] == kb.get("notes/new.md").document.docid
    new.unlink()
    why = kb.why(new)
    assert why.indexed
    assert "next run drops it" in why.reason
    kb.index()
    assert not kb.why(new).indexed


def test_why_outside_of_collections_and_for_a_collection(kb: KnowledgeBase, root: Path) -> None:
    assert "no collection" in kb.why(root.parent).reason
    assert "no collection" in kb.why("a\0b").reason
    assert "4 documents" in kb.why(root).reason
    shutil.rmtree(root)
    why = kb.why(root / "plan.md")
    assert why.indexed
    assert "does not exist" in why.reason


def test_a_dry_run_of_cleanup_says_what_the_run_then_does(kb: KnowledgeBase, root: Path) -> None:
    kb.embed()
    (root / "long.md").write_text("# Short now\n")
    kb.index()
    # An orphan of each kind: of another model, of the index, of the full text.
    kb._store.write(lambda writer: writer.connection.execute(
        "INSERT INTO z_models (name, fingerprint, dimension, active, created_at)"
        " VALUES ('old', 'old', 3, 0, '')"))  # fmt: skip
    kb._store.write(lambda writer: writer.connection.execute(
        "INSERT INTO z_embeddings (model_id, hash, vector) SELECT id, x'00', x'00'"
        " FROM z_models WHERE name = 'old'"))  # fmt: skip
    kb._store.write(lambda writer: writer.connection.execute(
        "INSERT INTO z_embeddings (model_id, hash, vector) SELECT m.id, k.hash, x'00'"
        " FROM z_models m, chunks k WHERE m.name = 'old' LIMIT 1"))  # fmt: skip

    kb._store.write(lambda writer: writer.connection.execute(
        "INSERT INTO z_picture_texts (source, page, read_by) VALUES (x'00', 1, '')"))  # fmt: skip

    def insert_rows_of_nothing(writer: Writer) -> None:
        writer.connection.execute("PRAGMA foreign_keys = OFF")
        writer.connection.execute(
            "INSERT INTO z_vectors (chunk_id, model_id, collection_id, embedding)"
            " VALUES (9999, 1, 1, zeroblob(384))"
        )
        writer.connection.execute(
            "INSERT INTO z_token_states (embedding_id, codes) VALUES (9999, zeroblob(24))"
        )
        writer.connection.execute("PRAGMA foreign_keys = ON")

    kb._store.write_outside_transaction(insert_rows_of_nothing)
    kb._store.write(
        lambda writer: writer.connection.execute(
            "INSERT INTO z_documents_fts (rowid, body) VALUES (999, 'x')"
        )
    )
    dry = kb.cleanup(dry_run=True)
    assert dry.dry_run
    assert dry == kb.cleanup(dry_run=True)
    steps: list[Progress] = []
    report = kb.cleanup(progress=steps.append)
    assert dict(report.removed) == dict(dry.removed)
    assert [step.item for step in steps] == [*dry.removed, "free space of the database"]
    assert [(step.done, step.total) for step in steps] == [
        (n, len(steps)) for n in range(len(steps))
    ]
    assert all(report.removed.values())
    assert not any(kb.cleanup().removed.values())
    assert kb.index().unchanged == 4
    assert kb.embed().embedded == 1
    assert_sound(kb.path)


def pages(path: Path) -> tuple[int, int, int]:
    """The pages of a file, how many are free, and how free ones are given back; 2 is one by one."""
    connection = sqlite.connect(path, read_only=True)
    try:
        row: tuple[int, int, int] = connection.execute(
            "SELECT page_count, freelist_count, auto_vacuum"
            " FROM pragma_page_count, pragma_freelist_count, pragma_auto_vacuum"
        ).fetchone()
    finally:
        connection.close()
    return row


@pytest.mark.parametrize("of_an_earlier_version", [False, True])
def test_indexing_many_documents_leaves_no_free_pages(
    tmp_path: Path, kb: KnowledgeBase, root: Path, of_an_earlier_version: bool
) -> None:
    path = tmp_path / "kb.sqlite"
    for number in range(BATCH_DOCUMENTS + 1):
        (root / f"{number}.md").write_text(f"# {number}\n\n{LONG}")
    kb.index()
    full, free, _ = pages(path)
    assert free == 0
    kb.close()
    if of_an_earlier_version:
        connection = sqlite.connect(path, read_only=False)
        connection.execute("PRAGMA auto_vacuum = NONE")
        connection.execute("VACUUM")
        connection.close()
        assert pages(path)[2] == 0
    for number in range(BATCH_DOCUMENTS + 1):
        (root / f"{number}.md").write_text(f"# {number}\n")
    with KnowledgeBase.open(path) as kb:
        kb.index()
    left, free, auto_vacuum = pages(path)
    assert (free, auto_vacuum) == (0, 2)
    assert left < full / 2
    assert_sound(path)


def test_cleanup_gives_space_back(kb: KnowledgeBase, root: Path) -> None:
    for number in range(60):
        (root / f"{number}.md").write_text(LONG + str(number))
    kb.index()
    kb.cleanup()
    for number in range(60):
        (root / f"{number}.md").unlink()
    kb.index()
    report = kb.cleanup()
    assert report.bytes_after < report.bytes_before
    assert report.bytes_after == kb.path.stat().st_size


def doctor(kb: KnowledgeBase) -> dict[str, str]:
    ticks: list[Progress] = []
    checks = kb.doctor(home=kb.path.parent, progress=ticks.append)
    assert [tick.done for tick in ticks] == list(range(len(ticks)))
    assert {tick.total for tick in ticks} == {len(ticks)}
    assert {"documents", "z_documents_fts", "z_vectors"} < {tick.item for tick in ticks}
    assert all(check.message for check in checks)
    assert all(check.remedy for check in checks if check.status != "ok")
    return {check.name: check.status for check in checks}


def test_the_disk_of_a_folder_is_not_waited_for(tmp_path: Path) -> None:
    answer = threading.Event()

    def dead_disk(_: Path) -> FolderState:
        answer.wait()
        return "sound"

    assert folder_state(tmp_path, 0.01, dead_disk) == "silent"
    answer.set()
    assert folder_state(tmp_path) == "sound"
    assert folder_state(tmp_path / "gone") == "missing"


def test_doctor_finds_what_is_wrong_and_nothing_else(
    tmp_path: Path, kb: KnowledgeBase, root: Path
) -> None:
    found = doctor(kb)
    assert found["vectors"] == "warning"
    assert found["skipped files"] == "warning"
    (root / "nul.md").unlink()
    kb.index()
    kb.embed()
    healthy = doctor(kb)
    del healthy["exiftool"]  # a busy machine starts it too slowly to write with it, and it says so
    assert set(healthy.values()) == {"ok"}
    kb.add_collection(tmp_path, name="new")
    assert doctor(kb)["collection new"] == "warning"
    kb.remove_collection("new")
    root.rename(tmp_path / "away")
    assert doctor(kb)["collection notes"] == "error"
    (tmp_path / "away").rename(root)
    kb._store.write(
        lambda writer: writer.connection.execute("DELETE FROM z_searchable WHERE document_id = 1")
    )
    assert doctor(kb)["integrity"] == "error"
    kb.remove_collection("notes")
    assert doctor(kb)["collections"] == "warning"


def descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_opening_and_closing_leaves_no_descriptor_and_no_thread(tmp_path: Path, root: Path) -> None:
    path = tmp_path / "kb.sqlite"

    def use() -> None:
        with KnowledgeBase.open(path, Settings(embedder=HashEmbedder()), create=True) as kb:
            if not kb.collections():
                kb.add_collection(root)
            kb.index()
            kb.embed()
            kb.query("plan")
        with KnowledgeBase.open(path, read_only=True) as kb:
            kb.search("plan")
        for options in ({"read_only": True}, {}):
            with pytest.raises(StoreError):
                KnowledgeBase.open(root / "long.md", **options)

    use()
    before = descriptors(), threading.active_count()
    for _ in range(50):
        use()
    assert (descriptors(), threading.active_count()) == before


def test_many_threads_may_use_one_knowledge_base(kb: KnowledgeBase, root: Path) -> None:
    done: list[int] = []

    def work(number: int) -> None:
        for turn in range(5):
            (root / f"t{number}.md").write_text(f"# Thread {number} turn {turn}\n")
            kb.index()
            assert kb.search("plan").hits
            kb.add_context(f"qmd://notes/t{number}.md", f"{turn}")
            kb.status()
        done.append(number)

    threads = [threading.Thread(target=work, args=[number]) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(done) == list(range(6))
    kb.index()
    for number in range(6):
        assert kb.get(f"notes/t{number}.md").text == f"# Thread {number} turn 4\n"
        assert kb.get(f"notes/t{number}.md").context == "4"


def test_a_closed_knowledge_base_says_so(kb: KnowledgeBase) -> None:
    kb.close()
    kb.close()
    for use in (kb.status, kb.index, lambda: kb.add_context("/", "x")):
        with pytest.raises(StoreError, match="closed"):
            use()


def test_skipped_files_are_counted_by_reason_and_listed_by_page(kb: KnowledgeBase) -> None:
    counts = kb.overview().skips
    skipped = kb.status().skipped
    assert sum(each.count for each in counts) == len(skipped) > 0
    for each in counts:
        assert [skip.reason for skip in kb.skips(each.reason)] == [each.reason] * each.count
        assert kb.skips(each.reason, offset=each.count) == []


def test_documents_with_warnings_are_listed(kb: KnowledgeBase, root: Path) -> None:
    (root / "odd.md").write_bytes("# Odd\n\nGr\xfc\xdfe aus K\xf6ln\n".encode("latin-1"))
    (root / "bad.md").write_text("---\nunclosed: [\n---\n# Bad\n")
    kb.index()
    documents = kb.warned()
    assert "notes/bad.md" in [each.file for each in documents]
    assert all(each.warnings for each in documents)
    assert kb.count_warned() == len(documents)
    assert kb.warned(offset=len(documents)) == []
    [check] = [each for each in kb.doctor() if each.name == "warnings"]
    assert check.status == "warning"
    assert check.message == (
        f"Something is wrong inside {' and '.join(each.file for each in documents)}."
    )


def test_documents_are_counted_by_the_hour_in_which_they_were_indexed(kb: KnowledgeBase) -> None:
    now = datetime.now(timezone.utc)
    hours = kb.indexed_per_hour(now - timedelta(hours=1))
    assert sum(hours.values()) == kb.status().total_documents
    assert all(hour.minute == 0 and hour <= now for hour in hours)
    assert kb.indexed_per_hour(now + timedelta(hours=1)) == {}


def test_a_file_of_two_collections_counts_once(kb: KnowledgeBase, root: Path) -> None:
    before = kb.status()
    (root / "inner").mkdir()
    (root / "inner/twice.md").write_text("# Twice\n\nIn both.\n")
    kb.add_collection(root / "inner", name="inner")
    kb.index()
    status = kb.status()
    assert status.total_documents == before.total_documents + 1 == len(kb.documents())
    assert sum(each.documents for each in status.collections) == status.total_documents + 1
    assert kb.overview().documents == status.total_documents
    kb.include_collection("inner", included=False)
    assert kb.status().total_documents == status.total_documents


@pytest.mark.parametrize("embed", [False, True])
def test_the_overview_has_the_figures_of_status(kb: KnowledgeBase, embed: bool) -> None:
    if embed:
        kb.embed()
    overview, status = kb.overview(), kb.status()
    assert overview.documents == status.total_documents
    assert overview.chunks - overview.chunks_waiting == status.chunks_embedded
    for name in ("database", "chunks", "model", "next_model", "collections", "excluded"):
        assert getattr(overview, name) == getattr(status, name), name
    assert overview.database_bytes > 0
