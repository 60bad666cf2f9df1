"""Explain why a path is or is not a document: the answer of ``qmd why PATH``."""

from __future__ import annotations

import os
import shlex
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from qmd.errors import NotFoundError
from qmd.ingest.collection_paths import locate
from qmd.ingest.rules import Rules
from qmd.ingest.scan import printable
from qmd.ingest.verdict import NAME, SKIP_REMEDIES, RuleVerdict, judge_path
from qmd.parse.formats import format_of
from qmd.values import Explanation
from qmd.values.names import fold
from qmd.values.search import encode_uri

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import Collection

#: The most files and folders that are looked at for a name: some seconds of a cold disk.
MOST_LOOKED_AT = 200_000
#: The most files of a name that are listed.
MOST_NAMED = 10


def explain_path(reader: Reader, path: str) -> Explanation:
    """Explain why a path is or is not a document."""
    location = locate(path, reader.collections.all())
    if location is None:
        return Explanation(
            path,
            indexed=False,
            reason="It lies in no collection.",
            remedy="Add its directory: qmd collection add DIRECTORY",
        )
    collection, relative = location
    shown = printable(relative)
    file = f"{collection.name}/{shown}" if relative else collection.name
    detail: dict[str, Any] = {"collection": collection.name, "path": shown}
    root = Path(collection.path)
    if not relative:
        return Explanation(
            file,
            indexed=True,
            reason=f"It is the collection '{collection.name}' with"
            f" {_documents(collection.documents)} that match {collection.pattern}.",
            detail=detail,
        )
    document = reader.documents.by_path(collection.name, shown)
    skip = reader.files.skips_in_collection(collection.id).get(shown)
    try:
        verdict = judge_path(root, Rules(root, collection.pattern, collection.ignore), relative)
    except NotFoundError as error:
        return Explanation(
            file,
            indexed=document is not None,
            reason=error.message,
            remedy=error.hint,
            detail=detail,
        )
    detail |= _rule(verdict)
    if verdict.included and verdict.reason == "directory":
        document_count = len(reader.documents.below(collection.name, shown))
        return Explanation(
            file,
            indexed=document_count > 0,
            reason=f"It is a folder of the collection '{collection.name}'"
            f" with {_documents(document_count)} below it.",
            detail=detail,
        )
    if verdict.included and skip is not None:
        return Explanation(
            file,
            indexed=False,
            reason=f"The rules include it, but it is no document: {skip[0].reason}."
            f" {skip[0].detail}",
            detail=detail | {"skipped": skip[0].reason},
            remedy=SKIP_REMEDIES.get(skip[0].reason) or _other_format(relative),
        )
    if document is not None:
        detail |= {
            "docid": document.docid,
            "title": document.title,
            "modified": document.modified,
            "warnings": reader.documents.warnings(document.id),
        }
        if verdict.included:
            reason = f"It is a document ({document.docid}, “{document.title}”)."
            for warning in detail["warnings"]:
                reason += f" Warning: {warning}"
            return Explanation(file, indexed=True, reason=reason, detail=detail)
        return Explanation(
            file,
            indexed=True,
            reason=f"It is still in the index, but the next run drops it: {verdict.detail}",
            detail=detail,
            remedy="qmd index",
        )
    if verdict.included:
        return Explanation(
            file,
            indexed=False,
            reason="The rules include it, but it has not been indexed yet.",
            detail=detail,
            remedy="qmd index",
        )
    named = f" {shlex.quote(collection.name)} "
    remedy = verdict.remedy and verdict.remedy.replace(f" {NAME} ", named)
    return Explanation(file, indexed=False, reason=verdict.detail, detail=detail, remedy=remedy)


def explain_named_file(reader: Reader, name: str, explanation: Explanation) -> Explanation:
    """
    Explain the file that somebody names without its whole path.

    Args:
        explanation: That of the name as a path.

    Returns:
        ``explanation`` if the name is the path of something that is there, or of a file nowhere.
    """
    is_missing = explanation.detail.get("rule", "missing") == "missing"
    if not is_missing or os.path.lexists(Path(name).expanduser()):
        return explanation
    named = files_of_name(reader.collections.all(), name.removeprefix("qmd://"))
    if named.paths:
        first = explain_path(reader, named.paths[0])
        if others := named.paths[1:]:
            more = ", ".join(explain_path(reader, other).path for other in others)
            reason = f"{first.reason} Others of this name: {more}."
            return replace(first, reason=reason)
        return first
    sentence = (
        "No file or folder of this name lies below the folders of the collections."
        if named.is_complete
        else f"It is not among the first {MOST_LOOKED_AT:,} files below those of the collections."
    )
    return replace(explanation, reason=f"{explanation.reason} {sentence}")


class FilesOfName(NamedTuple):
    """
    Files below the folders of collections with one name; folders of this name if there is no file.

    Attributes:
        paths: ``qmd://`` addresses, at most `MOST_NAMED`.
        is_complete: Whether all folders were looked through.
    """

    paths: Sequence[str]
    is_complete: bool


def files_of_name(collections: Sequence[Collection], name: str) -> FilesOfName:
    """
    Look for a file, or else a folder, on the disk, whatever the rules say of it and of those above.

    Folders near the root come first. The search ends after `MOST_LOOKED_AT` entries.

    Args:
        name: The end of a path: a file's name, with or without its suffix and folders above it.
    """
    parts = _parts(name)
    if not parts:
        return FilesOfName((), True)
    paths: list[str] = []
    named_folders: list[str] = []
    folders = deque((each, "") for each in sorted(collections, key=lambda each: each.name))
    left = MOST_LOOKED_AT
    while folders and left > 0 and len(paths) < MOST_NAMED:
        collection, folder = folders.popleft()
        entries = _entries(Path(collection.path, folder))
        left -= len(entries)
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            named = paths
            if entry.is_dir(follow_symlinks=False):
                folders.append((collection, path))
                named = named_folders
            if _ends_with(path, parts):
                named.append(encode_uri(f"{collection.name}/{path}"))
    return FilesOfName((paths or named_folders)[:MOST_NAMED], left > 0 and not folders)


def _parts(name: str) -> list[str]:
    return [fold(part) for part in name.replace(os.sep, "/").split("/") if part not in ("", ".")]


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    """What lies in a folder, by name; nothing in one that cannot be read, or is gone."""
    try:
        with os.scandir(folder) as listed:
            return sorted(listed, key=_name_of_entry)
    except OSError:
        return []


def _name_of_entry(entry: os.DirEntry[str]) -> str:
    return entry.name


def _ends_with(path: str, parts: Sequence[str]) -> bool:
    """Whether a path ends with these folded names; the last may lack the suffix of the file."""
    *folders, name = [fold(part) for part in path.split("/")[-len(parts) :]]
    stem = name.rpartition(".")[0] or name
    return folders == list(parts[:-1]) and parts[-1] in (name, stem)


def _other_format(path: str) -> str:
    return f"{format_of(path).remedy}, then run 'qmd index'."


def _documents(count: int) -> str:
    return "1 document" if count == 1 else f"{count:,} documents"


def _rule(verdict: RuleVerdict) -> dict[str, Any]:
    parts = {
        "rule": verdict.reason,
        "subject": verdict.subject,
        "ignore_file": verdict.file,
        "line": verdict.line,
        "pattern": verdict.pattern,
    }
    return {key: value for key, value in parts.items() if value is not None}
