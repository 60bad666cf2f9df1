"""What the store in PostgreSQL promises beyond `tests/contract/test_store.py`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from qmd.errors import (
    DatabaseBusyError,
    DatabaseMissingError,
    DatabaseUnreachableError,
    MigrationRequiredError,
    QmdError,
    ReadOnlyError,
    RequestEndedError,
    SchemaTooNewError,
    ServerDatabaseError,
    StoreError,
)
from qmd.kb import KnowledgeBase
from qmd.store import Store, Writer, open_store
from qmd.store.migrations import available, migrations_folder
from qmd.store.postgres.library import SUBSTITUTE, connect
from qmd.system.cancellation import Cancellation
from qmd.values.access import AccessScope
from qmd.values.location import ServerDatabase
from tests.support.postgres import PASSWORD, PostgresServer


@pytest.fixture
def store(postgres_database: ServerDatabase) -> Iterator[Store]:
    with closing(open_store(postgres_database)) as opened:
        yield opened


def end_connections(server: PostgresServer, database: ServerDatabase) -> None:
    """As a restart of the server or a broken network does."""
    server.execute(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
        f" WHERE datname = '{database.name}'"
    )


def put(store: Store, value: str) -> None:
    store.write(lambda writer: writer.meta.put("key", value))


def get(store: Store) -> str | None:
    with store.reading() as reader:
        return reader.meta.get("key")


# --- opening -------------------------------------------------------------------------


def test_of_many_that_open_a_new_database_at_once_one_makes_the_tables(
    postgres_server: PostgresServer,
) -> None:
    database = postgres_server.new_database()
    with pytest.raises(DatabaseMissingError):
        open_store(database)
    with ThreadPoolExecutor(6) as pool:
        opening = [pool.submit(open_store, database, create=True) for _ in range(6)]
    for number, future in enumerate(opening):
        with closing(future.result()) as store:
            put(store, str(number))
            assert get(store) == str(number)
    postgres_server.drop(database)


def test_schemas_of_one_database_hold_two_knowledge_bases(postgres_server: PostgresServer) -> None:
    database = postgres_server.new_database()
    locks = []
    for name in ("one", "two"):
        postgres_server.execute(f"CREATE SCHEMA {name}", database.name)
        place = ServerDatabase(f"{database.url}?options=-csearch_path%3D{name},public")
        with closing(open_store(place, create=True)) as store:
            assert get(store) is None
            put(store, name)
            lock = store.shared_lock("index")
            assert lock.take()  # no lock of the other knowledge base is in the way
            locks.append(lock)
    for lock in locks:
        lock.release()
    postgres_server.drop(database)


def test_a_schema_holds_its_own_knowledge_base_though_public_has_one(
    postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    place = ServerDatabase(f"{postgres_database.url}?options=-csearch_path%3DTeam,public")
    with pytest.raises(StoreError, match="no schema team") as caught:
        open_store(place, create=True)  # the tables would be made in public
    assert 'CREATE SCHEMA "team"' in str(caught.value.hint)
    postgres_server.execute("CREATE SCHEMA team", postgres_database.name)
    with pytest.raises(DatabaseMissingError):
        open_store(place)
    with closing(open_store(postgres_database)) as store:
        put(store, "of public")
    with closing(open_store(place, create=True)) as store:
        assert get(store) is None


def test_a_database_in_another_encoding_is_left_alone(postgres_server: PostgresServer) -> None:
    postgres_server.execute(
        "CREATE DATABASE latin TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C' LOCALE_PROVIDER libc"
    )
    database = ServerDatabase(postgres_server.url("latin"))
    with pytest.raises(StoreError, match="encoding LATIN1; qmd needs UTF8"):
        open_store(database, create=True)
    tables = postgres_server.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database.name
    )
    assert tables == [(0,)]
    postgres_server.drop(database)


def test_tables_of_another_program_are_left_alone(postgres_server: PostgresServer) -> None:
    database = postgres_server.new_database()
    postgres_server.execute("CREATE TABLE documents (a integer)", database.name)
    with pytest.raises(StoreError, match="another program"):
        open_store(database, create=True)
    tables = postgres_server.execute(
        "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'", database.name
    )
    assert tables == [(1,)]
    postgres_server.drop(database)


def test_a_newer_and_an_older_schema_are_not_touched(
    postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    name = postgres_database.name
    postgres_server.execute("INSERT INTO qmd_migrations (name) VALUES ('9999_later')", name)
    with pytest.raises(SchemaTooNewError):
        open_store(postgres_database)
    postgres_server.execute("DELETE FROM qmd_migrations WHERE id > 1", name)
    with pytest.raises(MigrationRequiredError):
        open_store(postgres_database, read_only=True)


def test_a_database_that_is_newer_now_is_neither_read_nor_written(
    postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    scope = AccessScope("owner", "token", frozenset({"notes"}))
    name = postgres_database.name
    with closing(open_store(postgres_database)) as store:
        put(store, "before")
        assert get(store) == "before"
        with store.reading_for(scope) as reader:
            assert reader.collections.all() == []
        postgres_server.execute("INSERT INTO qmd_migrations (name) VALUES ('9999_later')", name)
        for _ in range(2):
            with pytest.raises(SchemaTooNewError, match="9999_later"):
                get(store)
            with pytest.raises(SchemaTooNewError), store.reading_for(scope):
                pass
            with pytest.raises(SchemaTooNewError):
                put(store, "after")
    rows = postgres_server.execute("SELECT value FROM z_meta WHERE key = 'key'", name)
    assert rows == [("before",)]


def test_an_older_index_of_tokens_gets_its_numbers(postgres_server: PostgresServer) -> None:
    database = postgres_server.new_database()
    folder = migrations_folder("postgres")
    before = [name for name in available(folder) if name < "0008"]
    names = ", ".join(f"('{name}')" for name in before)
    for statement in (
        *((folder / f"{name}.sql").read_text("utf-8") for name in before),
        "CREATE TABLE qmd_migrations (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,"
        " name text NOT NULL UNIQUE, applied_at timestamptz NOT NULL DEFAULT now())",
        f"INSERT INTO qmd_migrations (name) VALUES {names}",
        "INSERT INTO collections (id, name, path, created_at) VALUES (1, 'notes', '/notes', '')",
        "INSERT INTO documents (id, collection_id, path, name_key, title, hash, modified_at, bytes,"
        " mtime_ns, inode, device, encoding, parser_version, body_start, indexed_at, text)"
        " VALUES (1, 1, 'a.md', 'a', 'A', '', '2026-11-20', 1, 1, 1, 1, 'utf-8', 1, 0, '', 'A')",
        "INSERT INTO document_tokens (document_id, length, tokens) VALUES (1, 5, '{walk,talk}')",
        # A place is field * 2^26 + position: "walk" is in title, body twice, and path.
        "INSERT INTO postings (token, document_id, weight, places) VALUES"
        " ('walk', 1, 6.5, ARRAY[0, 2 * 67108864, 2 * 67108864 + 3, 3 * 67108864]),"
        " ('talk', 1, 1, ARRAY[2 * 67108864 + 2])",
    ):
        postgres_server.execute(statement, database.name)
    open_store(database, create=True).close()
    rows = "SELECT token, weight, length, fields FROM z_postings ORDER BY token"
    assert postgres_server.execute(rows, database.name) == [
        ("talk", 1, 5, 0b100),
        ("walk", 6.5, 5, 0b1101),
    ]
    postgres_server.drop(database)


def test_no_error_repeats_the_password(postgres_server: PostgresServer) -> None:
    url = postgres_server.url("none")
    for bad in (
        url,
        url.replace("qmd:", "nobody:"),
        url.replace(str(postgres_server.port), "1"),
        f"{url}?sslmode=require",
        f"{url}?nonsense=1",
        url.replace(PASSWORD, f"{PASSWORD}%zz"),
    ):
        with pytest.raises(StoreError) as caught:
            open_store(ServerDatabase(bad))
        chain = [caught.value, caught.value.__cause__]
        assert not any(PASSWORD in f"{error} {getattr(error, 'hint', '')}" for error in chain)
        assert caught.value.hint


def test_a_refused_connection_says_what_to_do() -> None:
    server = PostgresServer()
    try:
        server.execute("CREATE ROLE ann LOGIN PASSWORD 'x' CONNECTION LIMIT 0")
        server.execute("CREATE ROLE bob")
        server.stop()
        (server.data / "pg_hba.conf").write_text(
            "host all qmd,ann,bob 127.0.0.1/32 trust\nhost all eve 127.0.0.1/32 scram-sha-256\n"
        )
        server.start()
        url = server.url("postgres")
        for bad, says, hint in (
            (url.replace("qmd:", "ann:"), "too many connections for role", "max_connections"),
            (url.replace("qmd:", "bob:"), "not permitted to log in", "ask the administrator"),
            (url.replace("qmd:", "eve:"), "password authentication failed", "~/.pgpass"),
            (url.replace(f"qmd:{PASSWORD}", "eve"), "no password supplied", "~/.pgpass"),
            (url.replace("qmd:", "zoe:"), "no pg_hba.conf entry", "(pg_hba.conf)"),
            (f"{url}?sslmode=require", "does not support SSL", "sslmode"),
        ):
            with pytest.raises(DatabaseUnreachableError, match=f"No connection to .*{says}") as no:
                open_store(ServerDatabase(bad))
            assert hint in str(no.value.hint)
        with pytest.raises(StoreError, match="is not understood: invalid URI query parameter"):
            open_store(ServerDatabase(f"{url}?nonsense=1"))
    finally:
        server.remove()


# --- connections ---------------------------------------------------------------------


def test_the_server_knows_its_client(store: Store, postgres_server: PostgresServer) -> None:
    with store.reading():
        names = postgres_server.execute(
            "SELECT DISTINCT application_name FROM pg_stat_activity"
            f" WHERE datname = '{store.location.name}'"  # type: ignore[union-attr]
        )
    assert names == [("qmd",)]


def test_after_a_lost_connection_the_next_use_connects_anew(
    store: Store, postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    put(store, "before")
    assert get(store) == "before"
    end_connections(postgres_server, postgres_database)
    assert get(store) == "before"
    put(store, "after")
    assert get(store) == "after"


def test_a_write_is_reported_as_done_only_if_it_is_committed(
    store: Store, postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    def lose_connection(writer: Writer) -> None:
        writer.meta.put("key", "lost")
        end_connections(postgres_server, postgres_database)

    with pytest.raises(DatabaseUnreachableError):
        store.write(lose_connection)
    assert get(store) is None
    with pytest.raises(DatabaseUnreachableError), store.reading() as reader:
        end_connections(postgres_server, postgres_database)
        reader.meta.get("key")
    put(store, "kept")
    assert get(store) == "kept"


def test_a_write_waits_for_another_process_and_not_for_ever(
    store: Store, postgres_database: ServerDatabase
) -> None:
    dropped = threading.Event()
    with closing(open_store(postgres_database, timeout_s=0.2)) as other:

        def hold(writer: Writer) -> None:
            writer.meta.put("key", "first")
            with pytest.raises(DatabaseBusyError):
                put(other, "second")
            other.write_soon(lambda writer: writer.meta.put("key", "third"), dropped.set)
            other.close()  # waits for it

        store.write(hold)
    assert get(store) == "first"
    assert not dropped.is_set()


def test_a_read_ends_when_its_request_is_cancelled(store: Store) -> None:
    cancellation = Cancellation()
    with pytest.raises(RequestEndedError), cancellation.active(), store.reading() as reader:
        timer = threading.Timer(0.1, cancellation.cancel)
        timer.start()
        reader.connection.execute("SELECT pg_sleep(30)")  # type: ignore[attr-defined]
    assert get(store) is None


def test_a_server_that_can_only_be_read_refuses_writes(
    postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    name = postgres_database.name
    postgres_server.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
    with closing(open_store(postgres_database)) as store:
        assert get(store) is None
        with pytest.raises(ReadOnlyError, match="can only be read"):
            put(store, "x")


# --- locks ---------------------------------------------------------------------------


def test_one_process_of_all_has_the_lock_until_it_ends(
    store: Store, postgres_server: PostgresServer, postgres_database: ServerDatabase
) -> None:
    first, second = store.shared_lock("index"), store.shared_lock("index")
    assert not store.is_locked("index")
    assert first.take()
    assert first.take()
    assert not second.take()
    assert store.is_locked("index")
    assert not store.is_locked("other")
    first.release()
    assert second.take()
    assert second.is_in_place()
    end_connections(postgres_server, postgres_database)  # as if the process were killed
    assert not second.is_in_place()
    assert not second.held
    assert first.take()
    first.release()


# --- content -------------------------------------------------------------------------


def test_a_null_character_is_stored_as_a_substitute_of_the_same_length(store: Store) -> None:
    put(store, "a\0b")
    assert get(store) == f"a{SUBSTITUTE}b"


def test_what_only_a_file_can_do_names_what_to_do_instead(
    postgres_database: ServerDatabase,
) -> None:
    with KnowledgeBase.open(postgres_database.url) as kb:
        assert kb.location == postgres_database
        for call in (
            lambda: kb.path,
            lambda: kb.backup("copy.sqlite"),
            lambda: KnowledgeBase.restore(postgres_database.url, "copy.sqlite"),
            lambda: KnowledgeBase.rescue(postgres_database),
        ):
            with pytest.raises(ServerDatabaseError) as caught:
                call()
            assert caught.value.hint
            assert PASSWORD not in caught.value.with_hint
        assert PASSWORD not in f"{kb.status()} {kb.doctor()}"
        assert not any(isinstance(each, QmdError) for each in kb.doctor())
        assert kb.cleanup().bytes_after > 0


def test_a_connection_notices_that_the_machine_of_the_server_is_gone(
    postgres_database: ServerDatabase,
) -> None:
    for query, idle_s in (("", "30"), ("?keepalives_idle=7", "7")):
        with closing(connect(ServerDatabase(postgres_database.url + query))) as connection:
            parameters = connection.info.get_parameters()
        assert parameters["keepalives_idle"] == idle_s
        assert parameters["tcp_user_timeout"] == "60000"
