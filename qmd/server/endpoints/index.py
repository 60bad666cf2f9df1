"""The endpoints that bring the index in line with the disk."""

from __future__ import annotations

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint


def _index(call: Call) -> models.Indexed:
    report = call.kb.index()
    collections = count(report.collections, "collection")
    return models.Indexed(
        status="indexed",
        collections=report.collections,
        total_documents=report.total_documents,
        content=f"Indexed {collections}: {count(report.total_documents, 'document')}",
        changes=report.changes,
        errors=report.errors,
    )


def _update(call: Call) -> models.Updated:
    arguments: models.UpdateArguments = call.arguments
    report = call.kb.update(pull=arguments.pull)
    return models.Updated(
        status="updated",
        collections=report.collections,
        content=f"Updated {count(report.collections, 'collection')}",
        changes=report.changes,
        errors=report.errors,
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
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
    RestEndpoint(
        method="POST",
        path="/update",
        name="update",
        group="index",
        summary="Pull, then index",
        description="As /index; with pull, git first fetches and fast-forwards.",
        body=models.UpdateArguments,
        reply=models.Updated,
        run=_update,
        lane="write",
        examples=({"pull": False},),
    ),
)
