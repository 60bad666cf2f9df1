"""
Upgrades a knowledge base that an earlier version made: which chunks keep their vectors?

    python benchmarks/upgrade.py DOCUMENTS REVISION...

A revision is a commit of this repository, such as that of a release. Its program indexes the
documents with an embedder that needs no model; then this program indexes them again without
embedding, and counts:

- same: chunks whose embedded text is the same, with their vector,
- renewed: chunks that answer with their earlier vector, because the title or the headings in front
  of their text are read otherwise now, until `qmd embed` has made the new one,
- none: chunks without a vector, because their own text is another one.

The last column is what a new index of this program would say to that: how many of its chunks have
a vector under the very hash that the old program stored. It is 'same', or something was lost.
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from qmd import KnowledgeBase, Settings
from tests.support.embedder import HashEmbedder

ROOT = Path(__file__).resolve().parents[1]
_OLD = """
import sys
from qmd import KnowledgeBase, Settings
from tests.support.embedder import HashEmbedder
with KnowledgeBase.open(sys.argv[1], Settings(embedder=HashEmbedder()), create=True) as kb:
    kb.add_collection(sys.argv[2], name="docs")
    kb.index()
    kb.embed()
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("documents", type=Path)
    parser.add_argument("revisions", nargs="+")
    arguments = parser.parse_args()
    print("| indexed by | chunks | same | renewed | none | a new index |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder) / "new.sqlite"
        with KnowledgeBase.open(new, Settings(embedder=HashEmbedder()), create=True) as kb:
            kb.add_collection(arguments.documents, name="docs")
            kb.index()
        expected = _hashes(new)
        for revision in arguments.revisions:
            old = Path(folder) / f"{revision}.sqlite"
            index_by(revision, old, arguments.documents, Path(folder) / revision)
            vectors = set(_hashes(old, "embeddings"))
            with KnowledgeBase.open(old, Settings(embedder=HashEmbedder())) as kb:
                kb.index()
                status = kb.status()
            kept = status.chunks_embedded - status.chunks_outdated
            figures = [
                revision,
                status.chunks,
                kept,
                status.chunks_outdated,
                status.chunks - status.chunks_embedded,
                sum(digest in vectors for digest in expected),
            ]
            print("| " + " | ".join(map(str, figures)) + " |", flush=True)


def index_by(revision: str, database: Path, documents: Path, tree: Path) -> None:
    """Index and embed with the program of a commit, in the environment of this one."""
    tree.mkdir()
    archive = subprocess.run(
        ["git", "-C", ROOT, "archive", revision], check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "x", "-C", tree], input=archive, check=True)
    subprocess.run(
        [sys.executable, "-c", _OLD, database, documents.resolve()],
        cwd=tree,
        env=os.environ | {"PYTHONPATH": str(tree)},
        check=True,
    )


def _hashes(database: Path, table: str = "chunks") -> list[bytes]:
    """The hashes of the embedded texts, one per row."""
    with closing(sqlite3.connect(database)) as connection:
        return [row[0] for row in connection.execute(f"SELECT hash FROM {table}")]


if __name__ == "__main__":
    main()
