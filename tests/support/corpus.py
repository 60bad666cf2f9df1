"""A knowledge base whose documents a test hands over as texts, without files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from qmd import KnowledgeBase, Settings
from qmd.ingest.parse_file import new_document
from qmd.parse.document import parse_document
from qmd.store import Writer, open_store
from qmd.store.sql import shared
from qmd.values import FileState
from tests.support.embedder import HashEmbedder


class Corpus:
    """
    One collection, ``notes``, filled and emptied in one transaction each.

    The documents go through the parser, the segmenter and the store as those of `index` do.
    """

    def __init__(self, directory: Path) -> None:
        root = directory / "notes"
        root.mkdir()
        self.path = directory / "index.sqlite"
        self.embedder = HashEmbedder()
        self.store = open_store(self.path, create=True)
        self.kb = KnowledgeBase(self.store, Settings(embedder=self.embedder))
        self.number = self.kb.add_collection(root, name="notes").id
        self.numbers = {"notes": self.number}
        self.directory = directory

    def add_collection(self, name: str) -> None:
        root = self.directory / name
        root.mkdir()
        self.numbers[name] = self.kb.add_collection(root, name=name).id

    def fill(self, pages: Mapping[str, str]) -> None:
        """Replace everything by these documents: ``path`` (or ``collection::path``) → text."""

        def run(writer: Writer) -> None:
            writer.connection.execute("DELETE FROM documents")
            shared.advance_vectors(writer.sql)
            for name, text in pages.items():
                collection, _, path = name.rpartition("::")
                data = text.encode()
                document = new_document(
                    path,
                    parse_document(path, data),
                    hashlib.sha256(data).hexdigest(),
                    FileState(len(data), 1_700_000_000_000_000_000, 1, 1),
                )
                writer.files.put(self.numbers[collection or "notes"], document)

        self.store.write(run)

    def exact(self, query: str) -> set[str]:
        """The paths of the exact hits."""
        return {hit.path for hit in self.kb.search(query, limit=None).hits if hit.match == "exact"}

    def found(self, query: str, limit: int | None = 10) -> list[str]:
        """The paths of all hits, best first."""
        return [hit.path for hit in self.kb.search(query, limit=limit).hits]
