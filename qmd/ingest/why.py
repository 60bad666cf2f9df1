"""Explain why a path is or is not a document: the answer of ``qmd why PATH``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from qmd.errors import NotFoundError
from qmd.ingest.collection_paths import locate
from qmd.ingest.rules import Rules
from qmd.ingest.scan import printable
from qmd.ingest.verdict import SKIP_REMEDIES, RuleVerdict, judge_path
from qmd.parse.formats import format_of
from qmd.values import Explanation

if TYPE_CHECKING:
    from qmd.store import Reader


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
            reason=str(error),
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
    return Explanation(
        file, indexed=False, reason=verdict.detail, detail=detail, remedy=verdict.remedy
    )


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
