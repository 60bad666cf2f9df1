"""Restricted transactions in PostgreSQL: closed by default, and no pool gives one to another."""

from __future__ import annotations

import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from qmd import KnowledgeBase, Settings
from qmd.errors import StoreError
from qmd.store import Reader
from qmd.store.postgres import scope as views
from qmd.store.postgres.library import Error, connect
from qmd.values.access import AccessScope
from qmd.values.location import ServerDatabase
from tests.support.embedder import HashEmbedder
from tests.support.live import put
from tests.support.postgres import PostgresServer

NAMES = ("a", "b", "c")
SCOPES = [
    frozenset[str](),
    *({name} for name in NAMES),
    frozenset({"a", "c"}),
    frozenset({"gone"}),
]


@pytest.fixture(scope="module")
def kb(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[KnowledgeBase]:
    folder = tmp_path_factory.mktemp("kb")
    settings = Settings(embedder=HashEmbedder())
    with KnowledgeBase.open(postgres_server.migrated(), settings, create=True) as kb:
        for name in NAMES:
            put(folder / name / f"{name}.md", f"# {name}\n\nrocket\n")
            kb.add_collection(folder / name, name=name)
        kb.index()
        kb.embed()
        yield kb


def scope(names: frozenset[str] | set[str]) -> AccessScope:
    return AccessScope("token:1", "t", frozenset(names), frozenset())


def collections(reader: Reader) -> set[str]:
    names = {each.name for each in reader.collections.all()}
    assert {path for _, _, path in reader.documents.places()} == {f"{name}.md" for name in names}
    return names


class Interrupted(Exception):
    pass


def test_no_connection_of_the_pool_keeps_a_scope_or_its_absence(kb: KnowledgeBase) -> None:
    """Readers of many threads, with and without a scope; some blocks fail, some statements."""
    store = kb._store

    def read(seed: int) -> None:
        choice = random.Random(seed)
        for _ in range(25):
            names = choice.choice([None, *SCOPES])
            opened = store if names is None else store.scoped(scope(names))
            with suppress(Interrupted, StoreError), opened.reading() as reader:
                expected = set(NAMES if names is None else names) & set(NAMES)
                assert collections(reader) == expected
                failure = choice.randrange(6)
                if failure == 0:
                    raise Interrupted
                if failure == 1:
                    reader.connection.execute("SELECT nothing")  # type: ignore[attr-defined]

    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(read, seed) for seed in range(16)]:
            done.result()


def test_without_settings_a_view_gives_no_row(kb: KnowledgeBase) -> None:
    with connect(kb.location) as connection:  # type: ignore[arg-type]
        connection.execute("BEGIN")
        assert views.restrict(connection, scope({"a"}))
        (path,) = connection.execute("SHOW search_path").fetchone() or ("",)
        assert connection.execute("SELECT name FROM collections").fetchall() == [("a",)]
        connection.execute("COMMIT")
        assert connection.execute("SELECT count(*) FROM collections").fetchone() == (3,)
        connection.execute(f"SET search_path = {path}")
        tables = connection.execute(
            "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace", [path]
        ).fetchall()
        assert {"documents", "z_postings", "audit", "z_access_tokens"} <= {
            name for (name,) in tables
        }
        for (name,) in tables:
            if views._ROWS.get(name) in (None, "true"):
                continue
            rows: list[object] = []
            with suppress(Error):  # an empty table evaluates no condition
                rows += connection.execute(f"SELECT * FROM {name}")
            assert rows == []
        with pytest.raises(Error, match=r"collection_ids|malformed"):
            connection.execute("SELECT * FROM documents")


def test_a_table_that_nobody_assigned_is_empty_and_a_later_one_does_not_exist(
    kb: KnowledgeBase,
) -> None:
    store = kb._store
    kb.create_token("logged", read=["a"])
    with store.scoped(scope({"a"})).reading() as reader:
        connection = reader.connection  # type: ignore[attr-defined]
        for table in (
            "audit",
            "z_access_tokens",
            "z_access_scopes",
            "z_model_cache",
            "v_documents",
        ):
            assert connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)
    store.write(lambda writer: writer.connection.execute("CREATE TABLE later (a text)"))  # type: ignore[attr-defined]
    with (
        pytest.raises(StoreError, match="does not exist"),
        store.scoped(scope({"a"})).reading() as reader,
    ):
        reader.connection.execute("SELECT * FROM later")  # type: ignore[attr-defined]
    kb.revoke_token("logged")


def test_vectors_are_compared_in_the_scope_and_their_table_can_be_dropped(
    kb: KnowledgeBase,
) -> None:
    part = kb._store.scoped(scope({"b"}))
    vector = HashEmbedder().embed_passages(["rocket"])[0]

    def has_pgvector_and_hits() -> tuple[bool, int]:
        with part.reading() as reader:
            model = reader.models.active()
            assert model is not None
            near = reader.vectors.nearest(model, vector, 10, reader.all_documents)
            return reader.vectors.require_engine().startswith("pgvector"), len(near)

    assert has_pgvector_and_hits() == (True, 1)
    kb._store.write(lambda writer: writer.connection.execute("DROP TABLE z_vectors CASCADE"))  # type: ignore[attr-defined]
    assert has_pgvector_and_hits() == (False, 1)
    kb.embed(force=True)
    assert has_pgvector_and_hits() == (True, 1)


def test_views_are_made_when_they_are_missing_and_an_error_says_who_can(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    database = postgres_server.migrated()
    name = database.name
    (schema,) = postgres_server.execute(
        "SELECT nspname::text FROM pg_namespace WHERE nspname LIKE 'qmd_scoped_%'", name
    )
    drop = f"DROP SCHEMA {schema[0]} CASCADE"
    postgres_server.execute(drop, name)
    with KnowledgeBase.open(database) as kb:
        kb.add_collection(tmp_path, name="a")
        with kb._store.scoped(scope({"a"})).reading() as reader:
            assert len(reader.collections.all()) == 1
        postgres_server.execute(drop, name)
        with KnowledgeBase.open(database, read_only=True) as readonly:
            part = readonly._store.scoped(scope({"a"}))
            with pytest.raises(StoreError, match="no views yet") as raised, part.reading():
                pass
            assert "qmd server token create" in raised.value.with_hint
    postgres_server.execute("CREATE ROLE poor LOGIN", name)
    postgres_server.execute("GRANT ALL ON ALL TABLES IN SCHEMA public TO poor", name)
    poor = ServerDatabase(database.url.replace("qmd:", "poor:", 1))
    with KnowledgeBase.open(poor) as kb:
        with pytest.raises(StoreError, match="may not"):
            kb.create_token("t", read=["a"])
        assert kb.tokens() == []
    postgres_server.drop(database)
