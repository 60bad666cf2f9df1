"""Bringing the index in line with the disk."""

from __future__ import annotations

from pydantic import BaseModel

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, Endpoint
from qmd.values import IndexReport


def _index(call: Call) -> BaseModel:
    report = call.kb.index()
    collections = count(report.collections, "collection")
    return models.Indexed(
        status="indexed",
        collections=report.collections,
        total_documents=report.total_documents,
        content=f"Indexed {collections}: {count(report.total_documents, 'document')}",
        changes=_changes(report),
        **errors(report),
    )


def _update(call: Call) -> BaseModel:
    arguments: models.UpdateArguments = call.arguments
    report = call.kb.update(pull=arguments.pull)
    return models.Updated(
        status="updated",
        collections=report.collections,
        content=f"Updated {count(report.collections, 'collection')}",
        changes=_changes(report),
        **errors(report),
    )


def _changes(report: IndexReport) -> models.Changes:
    return models.Changes(
        added=report.added,
        updated=report.updated,
        moved=report.moved,
        removed=report.removed,
        unchanged=report.unchanged,
        skipped=len(report.skipped),
    )


def errors(report: IndexReport) -> dict[str, list[str]]:
    """Only what happened is sent."""
    return {"errors": list(report.errors)} if report.errors else {}


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/index",
        name="index",
        group="index",
        summary="Bring the index in line with the disk",
        description="Scans all collections; vanished files leave the index. Takes no body.",
        body=models.NoArguments,
        reply=models.Indexed,
        run=_index,
        lane="write",
    ),
    Endpoint(
        method="POST",
        path="/update",
        name="update",
        group="index",
        summary="Pull, then index",
        description="As /index, after a fetch and a fast-forward by git where it was asked for.",
        body=models.UpdateArguments,
        reply=models.Updated,
        run=_update,
        lane="write",
        examples=({"pull": False},),
    ),
)
