"""Find changed files, parse and store them, and embed their chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.ingest import collection_paths as collection_paths
    from qmd.ingest import embedding as embedding
    from qmd.ingest import events as events
    from qmd.ingest import git_pull as git_pull
    from qmd.ingest import index as index
    from qmd.ingest import new_collection as new_collection
    from qmd.ingest import ocr as ocr
    from qmd.ingest import parse_workers as parse_workers
    from qmd.ingest import read_file as read_file
    from qmd.ingest import rules as rules
    from qmd.ingest import why as why

__getattr__ = lazy.load(__name__)
