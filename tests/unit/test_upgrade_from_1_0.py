"""
A database of version 1.0.0 becomes one of this version, and keeps what it held.

``tests/data/qmd-1.0.0.sqlite.gz`` was written by version 1.0.0: four documents, vectors of
`HashEmbedder`, two vectors of a second model that was to take over, and a revision.
"""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.parse.segment import segment
from qmd.store import open_store
from qmd.store.migrations import migrations_folder
from qmd.store.sqlite import library as sqlite
from qmd.store.sqlite import migrate, vectors
from tests.support.dump import assert_sound, vector_rows
from tests.support.embedder import HashEmbedder

OLD = Path(__file__).parents[1] / "data" / "qmd-1.0.0.sqlite.gz"
#: FTS5 quotes the names of its own tables in its own way; a migration renames them.
SCHEMA = (
    "SELECT type, name, tbl_name, iif(name LIKE 'z_documents_fts@_%' ESCAPE '@', NULL, sql)"
    " FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'"
)

LINK_KEYS = {
    ("embed", "Albums.base"): "albums.base",
    ("link", "a%20B.md#x"): "a b.md#x",
    ("link", "https://example.com/a.md"): None,
    ("wikilink", "STRASSE"): "strasse",
    ("wikilink", "folder/Straße.md"): "strasse",
}


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.sqlite"
    path.write_bytes(gzip.decompress(OLD.read_bytes()))
    return path


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite.connect(path, read_only=True)
    try:
        return sorted(map(tuple, connection.execute(query)), key=repr)
    finally:
        connection.close()


def test_its_schema_is_that_of_a_new_database(old: Path, tmp_path: Path) -> None:
    open_store(old).close()
    fresh = tmp_path / "fresh.sqlite"
    open_store(fresh, create=True).close()
    assert rows(old, SCHEMA) == rows(fresh, SCHEMA)
    assert_sound(old)


def test_its_vectors_are_kept_and_none_is_made_again(old: Path) -> None:
    chunks = rows(old, "SELECT id, model_id, next_model_id, hex(hash) FROM chunks")
    embeddings = rows(old, "SELECT model_id, hex(hash), hex(vector) FROM embeddings")
    embedder = HashEmbedder()
    with KnowledgeBase.open(old, Settings(embedder=embedder)) as kb:
        assert kb.status().needs_embedding == 0
        hits = kb.vsearch("deploy the parser", limit=2, min_score=0).hits
        assert [hit.path for hit in hits] == ["plan.md", "retro.md"]
        assert embedder.calls == 1  # the question
        assert kb.embed().embedded == 0
    assert rows(old, "SELECT id, model_id, next_model_id, hex(hash) FROM chunks") == chunks
    assert rows(old, "SELECT model_id, hex(hash), hex(vector) FROM z_embeddings") == embeddings
    scanned = (
        "SELECT m.name, count(*) FROM z_vectors v JOIN z_models m ON m.id = v.model_id GROUP BY 1"
    )
    assert rows(old, scanned) == [("test-hash", 4), ("test-second", 2)]


def test_its_vectors_are_those_that_a_new_index_would_hold(old: Path, tmp_path: Path) -> None:
    open_store(old).close()
    root = tmp_path / "notes"
    for path, text in rows(old, "SELECT path, text FROM documents"):
        (root / str(path)).parent.mkdir(parents=True, exist_ok=True)
        (root / str(path)).write_text(str(text), encoding="utf-8")
    fresh = tmp_path / "fresh.sqlite"
    with KnowledgeBase.open(fresh, Settings(embedder=HashEmbedder()), create=True) as kb:
        kb.add_collection(root, name="notes")
        kb.index()
        kb.embed()
    assert vector_rows(old) == vector_rows(fresh)


def test_its_words_are_found_and_its_revisions_kept(old: Path) -> None:
    with KnowledgeBase.open(old) as kb:
        assert [hit.path for hit in kb.search("数据库").hits] == ["zh/备份.md"]
        assert [hit.path for hit in kb.search("C++").hits] == ["c++.md"]
    assert rows(old, "SELECT path, tool FROM revisions") == [("/n/plan.md", "create_note")]


def test_its_descriptions_are_a_field_at_once_and_what_was_misread_is_read_again(
    old: Path, tmp_path: Path
) -> None:
    texts = {
        "ferry.md": "---\ndescription: How ferries cross\n---\nbody\n",
        "zh.md": "---\nsummary: 渡轮怎么走\n---\nbody\n",
        "minute.md": "---\ndate: 202503011015\n---\nbody\n",
        "plain.md": "---\ntags: [a]\n---\nbody\n",
    }
    root = tmp_path / "more"
    root.mkdir()
    for path, text in texts.items():
        (root / path).write_text(text, encoding="utf-8")
    # Rows as 1.0.0 has written them.
    connection = sqlite.connect(old, read_only=False)
    connection.execute(
        "INSERT INTO collections (id, name, path, created_at) VALUES (7, 'more', ?, '2025')",
        [str(root)],
    )
    properties = ['{"description": "How ferries cross"}', '{"summary": "渡轮怎么走"}',
                  '{"date": 202503011015}', '{"tags": ["a"]}']  # fmt: skip
    for number, (path, text) in enumerate(texts.items()):
        connection.execute(
            "INSERT INTO documents (id, collection_id, path, name_key, title, hash, date,"
            " modified_at, bytes, mtime_ns, inode, device, encoding, parser_version, body_start,"
            " properties, indexed_at, text)"
            " VALUES (?, 7, ?, ?, ?, ?, ?, '2025', 1, 1, 1, 1, 'utf-8', 2002, ?, ?, '2025', ?)",
            [70 + number, path, path[:-3], path[:-3], f"{number}",
             "1976-06-01T21:36:51+00:00" if path == "minute.md" else None,
             text.index("body"), properties[number], text],
        )  # fmt: skip
        connection.execute(
            "INSERT INTO searchable (document_id, headings, front, words) VALUES (?, '', ?, '')",
            [70 + number, segment(text[: text.index("body")])],
        )
    connection.close()
    open_store(old).close()
    assert_sound(old)
    with KnowledgeBase.open(old) as kb:
        for query, path in (("description:ferries", "ferry.md"), ("description:怎么", "zh.md")):
            assert [hit.path for hit in kb.search(query).hits] == [path]
    versions = rows(old, "SELECT path, parser_version FROM documents WHERE id >= 70")
    assert dict(versions)["minute.md"] == 0
    assert [path for path, version in versions if not version] == ["minute.md"]
    upgraded = rows(old, "SELECT description FROM z_documents_fts WHERE rowid >= 70")
    with KnowledgeBase.open(old) as kb:
        kb.index(collections=["more"])
    assert rows(old, "SELECT date FROM documents WHERE path = 'minute.md'") == [
        ("2025-03-01T10:15:00",)
    ]
    assert rows(old, "SELECT description FROM z_documents_fts WHERE rowid >= 70") == upgraded


def test_its_names_and_links_get_the_keys_of_a_new_index(old: Path, tmp_path: Path) -> None:
    connection = sqlite.connect(old, read_only=False)
    connection.execute("UPDATE documents SET path = 'É.v1.MD', name_key = 'É.v1' WHERE id = 1")
    connection.execute("DELETE FROM links")
    for seq, (kind, target) in enumerate(LINK_KEYS):
        connection.execute(
            "INSERT INTO links VALUES (1, ?, ?, ?, 'old', NULL, NULL, NULL, 1)", [seq, kind, target]
        )
    connection.execute("INSERT INTO aliases VALUES (1, 'STRASSE')")
    [(title,)] = connection.execute("SELECT title FROM documents WHERE id = 1").fetchall()
    connection.close()
    open_store(old).close()
    assert rows(old, "SELECT name_key FROM documents WHERE id = 1") == [("é.v1",)]
    assert rows(old, "SELECT kind, name_key FROM z_names WHERE document_id = 1") == [
        ("alias", "strasse"), ("title", title.lower())
    ]  # fmt: skip
    keys = rows(old, "SELECT kind, target, target_key FROM links")
    assert {(kind, target): key for kind, target, key in keys} == LINK_KEYS


def test_what_an_older_program_writes_afterwards_is_parsed_again(old: Path, tmp_path: Path) -> None:
    """A server of 1.1.0 that runs through the upgrade knows no descriptions."""
    root = tmp_path / "more"
    root.mkdir()
    for number in range(3):
        (root / f"{number}.md").write_text(f"---\ndescription: boat{number}\n---\nbody\n")
    with KnowledgeBase.open(old) as kb:
        kb.add_collection(root, name="more")
        kb.index(collections=["more"])
        assert kb.index(collections=["more"]).updated == 0
    connection = sqlite.connect(old, read_only=False)
    connection.execute(
        "UPDATE documents SET parser_version = parser_version - 1000, description = '',"
        " properties = '{}' WHERE path = '1.md'"
    )
    connection.close()
    with KnowledgeBase.open(old) as kb:
        kb.index(collections=["more"])
        assert [hit.path for hit in kb.search("description:boat1").hits] == ["1.md"]
    assert rows(old, "SELECT description FROM documents WHERE path = '1.md'") == [("boat1",)]


def test_half_a_surrogate_pair_does_not_stop_the_upgrade(old: Path) -> None:
    connection = sqlite.connect(old, read_only=False)
    connection.execute('UPDATE documents SET properties = \'{"description": "half \\ud800"}\'')
    connection.close()
    open_store(old).close()
    assert_sound(old)
    assert set(rows(old, "SELECT DISTINCT description FROM documents")) == {("half \ufffd",)}


@pytest.mark.unmeasured
@pytest.mark.nightly
def test_its_full_text_is_one_segment_afterwards(old: Path) -> None:
    connection = sqlite.connect(old, read_only=False)
    for (document_id,) in connection.execute("SELECT id FROM documents").fetchall():
        # Each of these texts is more than FTS5 keeps in memory before it begins a new segment.
        words = " ".join(f"{document_id}word{number:07}" for number in range(150_000))
        connection.execute(
            "UPDATE documents SET text = text || ? WHERE id = ?", [words, document_id]
        )
        connection.execute(
            "INSERT INTO searchable (document_id, headings, front, words) VALUES (?, '', '', ?)",
            [document_id, words],
        )
    connection.close()
    open_store(old).close()
    assert rows(old, "SELECT count(DISTINCT segid) FROM z_documents_fts_idx") == [(1,)]


def test_a_chunk_whose_exact_vector_is_missing_waits_for_a_new_one(old: Path) -> None:
    connection = sqlite.connect(old, read_only=False)
    connection.execute("DELETE FROM embeddings WHERE model_id = 1 AND hash ="
                       " (SELECT hash FROM chunks WHERE id = 1)")  # fmt: skip
    connection.close()
    with KnowledgeBase.open(old, Settings(embedder=HashEmbedder())) as kb:
        assert kb.status().needs_embedding == 1
        assert kb.embed().embedded == 1


def a_process_of_1_0_0_embeds_a_chunk(path: Path) -> None:
    """What one that was running before the upgrade does to the upgraded file."""
    connection = sqlite.connect(path, read_only=False)
    vectors.load(connection)
    connection.execute(
        "CREATE VIRTUAL TABLE IF NOT EXISTS vectors_1 USING vec0("
        "chunk_id INTEGER PRIMARY KEY, collection_id INTEGER, embedding int8[64])"
    )
    connection.execute(
        "INSERT INTO vectors_1 (chunk_id, collection_id, embedding) VALUES (1, 1, vec_int8(?))",
        [bytes(64)],
    )
    connection.execute("DELETE FROM z_vectors WHERE chunk_id = 1 AND model_id = 1")
    connection.close()


def test_what_a_process_of_1_0_0_embedded_after_an_earlier_upgrade_is_made_again(
    old: Path, tmp_path: Path
) -> None:
    steps = tmp_path / "migrations"
    steps.mkdir()
    for script in migrations_folder().iterdir():
        if script.suffix in {".sql", ".py"} and script.stem < "0024":
            (steps / script.name).write_bytes(script.read_bytes())
    connection = sqlite.connect(old, read_only=False)
    migrate.migrate(connection, old, steps)
    connection.close()
    scanned = rows(old, "SELECT chunk_id, model_id, hex(embedding) FROM z_vectors")
    a_process_of_1_0_0_embeds_a_chunk(old)
    with KnowledgeBase.open(old, Settings(embedder=HashEmbedder())) as kb:
        assert kb.status().needs_embedding == 1
        report = kb.embed()
        assert (report.embedded, report.reused) == (0, 1)
    assert rows(old, "SELECT chunk_id, model_id, hex(embedding) FROM z_vectors") == scanned
    fresh = tmp_path / "fresh.sqlite"
    open_store(fresh, create=True).close()
    assert rows(old, SCHEMA) == rows(fresh, SCHEMA)
    assert_sound(old)


def test_an_interrupted_upgrade_leaves_the_old_database(
    old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last step fails: none of those before it may stay."""
    folder = tmp_path / "migrations"
    folder.mkdir()
    for script in migrations_folder().iterdir():
        if script.suffix in {".sql", ".py"}:
            (folder / script.name).write_bytes(script.read_bytes())
    (folder / "0099_fails.sql").write_text("INSERT INTO nowhere VALUES (1);\n")
    before = rows(old, SCHEMA)
    connection = sqlite.connect(old, read_only=False)
    with pytest.raises(sqlite.OperationalError, match="nowhere"):
        migrate.migrate(connection, old, folder)
    connection.close()
    assert rows(old, SCHEMA) == before
    open_store(old).close()
    assert_sound(old)
