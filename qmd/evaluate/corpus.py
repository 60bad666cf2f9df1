"""Writes the documents of a fixture as files, so that they can be indexed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path

COLLECTION = "bench"


def fingerprint(documents: Mapping[str, str]) -> str:
    """The beginning of a hash of the documents; different documents have different ones."""
    text = json.dumps(documents, ensure_ascii=False, sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:12]


def write(documents: Mapping[str, str], folder: Path) -> dict[str, str]:
    """
    Write each document to a separate file below ``folder``.

    The names of the files are numbers, because an id in a name could match a query.

    Returns:
        id → ``collection/path``, if the folder is the collection `COLLECTION`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = {}
    for number, (document_id, text) in enumerate(documents.items(), 1):
        name = f"{number:07}.md"
        data = text.encode("utf-8", "replace")
        path = folder / name
        if not path.is_file() or path.read_bytes() != data:
            path.write_bytes(data)
        names[document_id] = f"{COLLECTION}/{name}"
    return names
