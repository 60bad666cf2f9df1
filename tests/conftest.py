"""Fixtures that several test directories share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from qmd.inference.embedded import source
from qmd.inference.embedders import DEFAULT_MODEL, open_embedder


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
