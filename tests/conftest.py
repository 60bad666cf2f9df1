"""Fixtures that several test directories share."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from qmd.inference.embedded import source
from qmd.models.embedders import DEFAULT_MODEL, open_embedder

# How long an example takes is the machine's business: a fifth of a second, Hypothesis's own
# limit, can pass while another process has the core.
settings.register_profile("qmd", deadline=None)
settings.load_profile("qmd")

# A shell ignores Ctrl-C for what it starts in the background, and so would the processes that
# the tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def model_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache directory with the default embedding model, built once for all workers."""
    if source.installed_file() is None:
        pytest.skip(f"{source.REQUIREMENT} is not installed (it has wheels for Linux x86-64 only)")
    base = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        base = base.parent
    cache = base / "model-cache"
    open_embedder(DEFAULT_MODEL, cache_dir=cache)  # its own lock lets one worker build
    return cache
