"""The endpoint that adds a collection, which is indexed at once."""

from __future__ import annotations

from qmd.operations.indexing import count
from qmd.server import rest_models as models
from qmd.server.endpoints.client_paths import add_collection, permitted_directory
from qmd.server.endpoints.definition import Call, RestEndpoint


def _add_collection(call: Call) -> models.CollectionAdded:
    arguments: models.AddCollectionArguments = call.arguments
    directory = permitted_directory(call.kb, arguments.path)
    notice = call.kb.overlap_notice(directory)
    added = add_collection(
        call.kb,
        directory,
        name=arguments.name,
        mask=arguments.glob_pattern or "**/*.md",
    )
    report = call.kb.index([added.name])
    indexed = call.kb.collection(added.name)
    return models.CollectionAdded(
        status="added",
        collection=indexed,
        content=f"Added collection '{indexed.name}' with {count(indexed.documents, 'document')}",
        errors=report.errors,
        notice=notice,
    )


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/collections/add",
        name="add_collection",
        group="collections",
        summary="Add a collection and index it",
        description="The directory must lie below a write root of the server.",
        body=models.AddCollectionArguments,
        reply=models.CollectionAdded,
        run=_add_collection,
        errors=(409,),
        lane="write",
        examples=({"name": "my-docs", "path": "/home/me/docs", "glob_pattern": "**/*.md"},),
    ),
)
