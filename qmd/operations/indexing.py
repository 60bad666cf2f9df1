"""Bringing the index in line with the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.values import Changes, Explanation, IndexReport
from qmd.values.facts import Describe, OmitDefault, Range, Shell

FAMILY = {"toolset": None, "group": "index"}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@dataclass(frozen=True, slots=True)
class Indexed:
    status: Literal["indexed"]
    collections: Annotated[int, Range(0)]
    total_documents: Annotated[int, Range(0)]
    content: str
    changes: Changes
    errors: Annotated[
        tuple[str, ...], OmitDefault(), Describe("Collections that could not be scanned")
    ] = ()


def _indexed(replied: Replied) -> Indexed:
    report: IndexReport = replied.value
    collections = count(report.collections, "collection")
    return Indexed(
        status="indexed",
        collections=report.collections,
        total_documents=report.total_documents,
        content=f"Indexed {collections}: {count(report.total_documents, 'document')}",
        changes=report.changes,
        errors=report.errors,
    )


@operation(
    sends=_indexed,
    command=None,  # it shows the progress, and embeds: `qmd.cli.indexing`
    lane="write",
)
def index(kb: KnowledgeBase) -> IndexReport:
    """
    Bring the index in line with the disk.

    Scans all collections; vanished files leave the index. Takes no body.
    """
    return kb.index()


@dataclass(frozen=True, slots=True)
class Updated:
    status: Literal["updated"]
    collections: Annotated[int, Range(0)]
    content: str
    changes: Changes
    errors: Annotated[
        tuple[str, ...], OmitDefault(), Describe("Collections that could not be pulled or scanned")
    ] = ()


def _updated(replied: Replied) -> Updated:
    report: IndexReport = replied.value
    return Updated(
        status="updated",
        collections=report.collections,
        content=f"Updated {count(report.collections, 'collection')}",
        changes=report.changes,
        errors=report.errors,
    )


@operation(
    sends=_updated,
    command=None,  # as `index`
    bodies=({"pull": False},),
    lane="write",
)
def update(
    kb: KnowledgeBase,
    pull: Annotated[
        bool,
        Describe(
            "Fetch and fast-forward collections that are git work trees. No program that a"
            " collection brings is run; errors lists what could not be pulled"
        ),
    ] = False,
) -> IndexReport:
    """
    Pull, then index.

    As /index; with pull, git first fetches and fast-forwards.
    """
    return kb.update(pull=pull)


@operation(
    in_shell_alone=True,
    view="render_explanation",
    section="Look after it",
    examples=("qmd why ~/notes/build/report.md",),
)
def why(kb: KnowledgeBase, path: Annotated[str, Shell(completes="files")]) -> Explanation:
    """Explain why a file is a document, or which rule leaves it out."""
    return kb.why(path)
