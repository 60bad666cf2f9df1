"""
The machines that change files at random, with a database in PostgreSQL.

What it holds is compared with a fresh index in SQLite, so both engines say the same of any tree.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from hypothesis import HealthCheck, settings

from qmd import KnowledgeBase, Settings
from qmd.store import Reader
from qmd.store.postgres.library import SUBSTITUTE
from qmd.values.location import ServerDatabase
from tests.properties.test_edit_state_machine import Edits
from tests.properties.test_index_state_machine import Files
from tests.properties.test_push import PushedNotes
from tests.support.dump import Dump, dump, vector_rows
from tests.support.postgres import PostgresServer

_FILE = "(SELECT c.name || '/' || d.path FROM documents d JOIN collections c"
_FILE += " ON c.id = d.collection_id WHERE d.id = {})"
#: As those of `tests.support.dump`, but for the texts of the full text, which PostgreSQL has not.
_QUERIES = {
    "collections": "SELECT name, path, pattern, ignore::text, excluded::text FROM collections",
    "documents": f"SELECT {_FILE.format('x.id')}, name_key, title, description, hash, date,"
    " modified_at, bytes, mtime_ns, device, encoding, parser_version, body_start,"
    " properties::text, warnings::text, text FROM documents x",
    "tags": f"SELECT {_FILE.format('document_id')}, tag FROM tags",
    "aliases": f"SELECT {_FILE.format('document_id')}, alias FROM aliases",
    "names": f"SELECT {_FILE.format('document_id')}, kind, name_key FROM z_names",
    "attachments": "SELECT c.name, a.path, a.name_key"
    " FROM attachments a JOIN collections c ON c.id = a.collection_id",
    "links": f"SELECT {_FILE.format('document_id')}, seq, kind, target, target_key, text, heading,"
    " block, line FROM links",
    "chunks": f"SELECT {_FILE.format('document_id')}, seq, start_char, end_char, start_byte,"
    " end_byte, start_line, end_line, heading_path, upper(encode(hash, 'hex')) FROM chunks",
    "skipped": "SELECT c.name, s.path, s.reason, s.detail, s.bytes, s.mtime_ns"
    " FROM skipped_files s JOIN collections c ON c.id = s.collection_id",
}
_VECTORS = (
    f"SELECT {_FILE.format('k.document_id')}, k.seq, upper(encode(k.hash, 'hex')),"
    " upper(encode(e.vector, 'hex')), c.name"
    " FROM chunks k JOIN z_models m ON m.active"
    " LEFT JOIN z_embeddings e ON e.hash = k.hash AND e.model_id = m.id"
    " LEFT JOIN z_vectors v ON v.chunk_id = k.id AND v.model_id = k.model_id"
    " LEFT JOIN collections c ON c.id = v.collection_id"
)
#: What must never be found: the full text of a document, or a vector, without the other parts.
_UNSOUND = (
    "SELECT document_id FROM z_postings EXCEPT SELECT id FROM documents",
    "SELECT id FROM documents EXCEPT SELECT document_id FROM z_document_tokens",
    "SELECT document_id, token FROM z_postings"
    " EXCEPT SELECT document_id, unnest(tokens) FROM z_document_tokens",
    "SELECT document_id, unnest(tokens) FROM z_document_tokens"
    " EXCEPT SELECT document_id, token FROM z_postings",
    "SELECT documents, length FROM z_full_text_totals"
    " EXCEPT SELECT count(*), coalesce(sum(length), 0) FROM z_document_tokens",
)


@pytest.fixture(scope="module", autouse=True)
def database(postgres_server: PostgresServer) -> Iterator[None]:
    """Databases for all examples: each begins with the removal of what the last one left."""
    PostgresFiles.location = postgres_server.migrated()
    PushedToPostgres.location = postgres_server.migrated()
    EditsInPostgres.server = postgres_server
    yield
    postgres_server.drop(PostgresFiles.location)
    postgres_server.drop(PushedToPostgres.location)


def rows(reader: Reader, sql: str) -> list[tuple[Any, ...]]:
    return sorted(reader.connection.execute(sql).fetchall(), key=repr)  # type: ignore[attr-defined]


def storable(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A row of SQLite as PostgreSQL can store it."""
    return tuple(each.replace("\0", SUBSTITUTE) if isinstance(each, str) else each for each in row)


def opened_empty(location: ServerDatabase, settings_: Settings) -> KnowledgeBase:
    kb = KnowledgeBase.open(location, settings_)
    for collection in kb.collections():
        kb.remove_collection(collection.name)
    return kb


class PostgresFiles(Files):
    location: ClassVar[ServerDatabase]

    def begin(self, mask: str, ignore: tuple[str, ...]) -> None:
        self.kb = opened_empty(self.location, Settings(embedder=self.embedder))
        self.kb.add_collection(self.root, name="notes", mask=mask, ignore=ignore)

    def assert_as(self, fresh: Path) -> None:
        with self.kb._store.reading() as reader:
            found: Dump = {table: rows(reader, query) for table, query in _QUERIES.items()}
        expected = dump(fresh)
        for table, there in found.items():
            assert there == sorted(map(storable, expected[table]), key=repr), table
        self.assert_sound()

    def assert_vectors_as(self, fresh: Path) -> None:
        with self.kb._store.reading() as reader:
            found = rows(reader, _VECTORS)
        *expected, _ = vector_rows(fresh) or [()]
        assert found == [
            (file, seq, key, vector, c) for file, seq, key, _, vector, c, _ in expected
        ]

    def assert_sound(self) -> None:
        with KnowledgeBase.open(self.location) as kb, kb._store.reading() as reader:
            for query in _UNSOUND:
                assert rows(reader, query) == [], query

    def ids(self) -> dict[str, tuple[tuple[int, str], dict[int, bytes]]]:
        with self.kb._store.reading() as reader:
            chunks: dict[int, dict[int, bytes]] = {}
            for document, number, key in rows(reader, "SELECT document_id, id, hash FROM chunks"):
                chunks.setdefault(document, {})[number] = key
            return {
                path: ((number, digest), chunks.get(number, {}))
                for number, path, digest in rows(reader, "SELECT id, path, hash FROM documents")
            }


class EditsInPostgres(Edits):
    server: ClassVar[PostgresServer]
    location: ServerDatabase

    def open(self) -> KnowledgeBase:
        # A new one, because the history of changes stays when their collection is removed.
        self.location = self.server.migrated()
        return KnowledgeBase.open(self.location)

    def teardown(self) -> None:
        super().teardown()
        self.server.drop(self.location)


class PushedToPostgres(PushedNotes):
    location: ClassVar[ServerDatabase]

    def open(self, settings_: Settings) -> KnowledgeBase:
        return opened_empty(self.location, settings_)


TestPostgresFiles = PostgresFiles.TestCase
TestPostgresFiles.settings = settings(
    deadline=None,
    max_examples=6,
    stateful_step_count=12,
    suppress_health_check=list(HealthCheck),
)
TestEditsInPostgres = EditsInPostgres.TestCase
TestEditsInPostgres.settings = settings(
    deadline=None,
    max_examples=5,
    stateful_step_count=15,
    suppress_health_check=list(HealthCheck),
)
TestPushedToPostgres = PushedToPostgres.TestCase
TestPushedToPostgres.settings = settings(max_examples=3, stateful_step_count=5, deadline=None)
