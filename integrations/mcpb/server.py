"""
Starts the MCP server of the bundle.

    server.py FOLDER…

Each folder that no collection contains yet becomes one; the server then indexes it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from qmd import KnowledgeBase
from qmd.__main__ import run
from qmd.config import load_settings
from qmd.errors import QmdError


def add_collections(folders: list[Path]) -> None:
    """Make collections of the folders that are in none; what cannot be added is named on stderr."""
    settings = load_settings()
    settings.db.parent.mkdir(parents=True, exist_ok=True)
    with KnowledgeBase.open(settings.db, create=True) as kb:
        for folder in folders:
            roots = [Path(collection.path) for collection in kb.collections()]
            if any(folder.is_relative_to(root) for root in roots):
                continue
            try:
                kb.add_collection(folder)
            except QmdError as error:
                print(f"qmd: {folder}: {error}", file=sys.stderr)


if __name__ == "__main__":
    add_collections([Path(folder).expanduser().resolve() for folder in sys.argv[1:]])
    sys.argv[1:] = ["mcp"]
    run()
