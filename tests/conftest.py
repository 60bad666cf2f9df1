"""Fixtures that several test directories share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest
from hypothesis import settings

from qmd.inference.embedded import build
from qmd.models.catalogue import DEFAULT_MODEL, open_embedder
from qmd.system.worker import process
from tests.support.new_database import new_databases
from tests.support.postgres import postgres_database, postgres_server
from tests.support.warm import warm

__all__ = ["postgres_database", "postgres_server"]

# The SDKs of others, which need an environment of their own: see tests/clients/run.
collect_ignore = ["clients"]

# How long an example takes is the machine's business: a fifth of a second, Hypothesis's own
# limit, can pass while another process has the core.
#
# The examples are the same in each run, so that a commit passes or fails by what it changes and
# not by chance. ``pytest --hypothesis-profile=explore tests/properties`` looks for new ones, as a
# workflow does every night.
settings.register_profile("qmd", deadline=None, derandomize=True, max_examples=30)
settings.register_profile("explore", deadline=None, max_examples=200)
settings.load_profile("qmd")

# All modules and tests stay: looking for garbage among them is a quarter of collecting them, and
# a part of what each test takes.
gc.disable()


# A shell ignores Ctrl-C for what it starts in the background, and so would the processes that
# the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


def measure_worker_processes() -> None:
    """
    Have the branches counted that a worker process takes.

    It starts without Python's `site`, which is where coverage would otherwise begin. This holds
    for the workers of the tests' own process.
    """
    start = process._command
    site_packages = str(Path(coverage.__file__).parents[1])
    begin = f"import sys; sys.path.append({site_packages!r}); import coverage;"

    def measured(function: str, idle_s: float) -> list[str]:
        *command, code = start(function, idle_s)
        if MEASURED not in os.environ:
            return [*command, code]
        return [*command, f"{begin} coverage.process_startup(slug='worker'); {code}"]

    process._command = measured


#: The variable by which coverage begins in every process that a test starts.
MEASURED = "COVERAGE_PROCESS_CONFIG"
if MEASURED in os.environ:
    measure_worker_processes()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test begins first: at the end, only one processor would be busy with it."""
    items.sort(key=lambda item: item.get_closest_marker("longest") is None)


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> None:
    """Before the fixtures of a test, also those that several share."""
    new_databases.is_on = item.get_closest_marker("migrates") is None
    warm.is_on = item.get_closest_marker("cold") is None


@pytest.fixture(scope="session", autouse=True)
def _log_of_the_servers(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep the servers that tests start from writing into the log of the person who runs them."""
    os.environ["XDG_STATE_HOME"] = str(tmp_path_factory.mktemp("state"))


@pytest.fixture(scope="session", autouse=True)
def _new_databases(tmp_path_factory: pytest.TempPathFactory) -> None:
    new_databases.start(tmp_path_factory.mktemp("databases"))


@pytest.fixture(scope="session", autouse=True)
def _warm_process() -> Iterator[None]:
    yield
    warm.close()


@pytest.fixture(scope="session", autouse=True)
def _reader_of_photos() -> Iterator[None]:
    """Processes of xdist end without what atexit has, and their exiftool would outlive them."""
    yield
    if photos := sys.modules.get("tests.support.photos"):
        photos.close()


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with the default embedding model, built once for all workers."""
    if build.installed_file() is None:
        pytest.skip(f"{build.REQUIREMENT} is not installed (it has wheels for Linux x86-64 only)")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    cache = base / "model-cache"
    open_embedder(DEFAULT_MODEL, cache_dir=cache)  # its own lock lets one worker build
    return cache
