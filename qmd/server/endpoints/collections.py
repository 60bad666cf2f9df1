"""The endpoints that add, list, show, remove and rename collections."""

from __future__ import annotations

from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint
from qmd.server.endpoints.index import count
from qmd.server.new_collection import add_collection, permitted_directory


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


def _collections(call: Call) -> models.CollectionList:
    collections = call.kb.collections()
    lines = [f"Collections: {len(collections)}"]
    lines += [f"- {collection.name} ({collection.documents} docs)" for collection in collections]
    return models.CollectionList(
        tuple(map(models.ListedCollection, collections)), content="\n".join(lines)
    )


def _collection(call: Call) -> models.CollectionDetails:
    return models.CollectionDetails(call.kb.collection(call.path["name"]))


def _remove_collection(call: Call) -> models.CollectionRemoved:
    removed = call.kb.remove_collection(call.path["name"])
    return models.CollectionRemoved(
        status="removed", name=removed.name, content=f"Removed collection '{removed.name}'"
    )


def _rename_collection(call: Call) -> models.CollectionRenamed:
    arguments: models.RenameCollectionArguments = call.arguments
    old = call.path["name"]
    renamed = call.kb.rename_collection(old, arguments.new_name)
    return models.CollectionRenamed(
        status="renamed",
        old_name=old,
        new_name=renamed.name,
        content=f"Renamed '{old}' to '{renamed.name}'",
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
    RestEndpoint(
        method="GET",
        path="/collections",
        name="collections",
        group="collections",
        summary="All collections",
        description="The one whose documents changed last comes first.",
        reply=models.CollectionList,
        run=_collections,
    ),
    RestEndpoint(
        method="GET",
        path="/collections/{name}",
        name="collection",
        group="collections",
        summary="One collection",
        description="Its directory, its mask, and when it was last indexed.",
        reply=models.CollectionDetails,
        run=_collection,
        errors=(404,),
    ),
    RestEndpoint(
        method="DELETE",
        path="/collections/{name}",
        name="remove_collection",
        group="collections",
        summary="Remove a collection",
        description="Its documents leave the index; the files on the disk stay.",
        reply=models.CollectionRemoved,
        run=_remove_collection,
        errors=(404,),
        lane="write",
    ),
    RestEndpoint(
        method="PUT",
        path="/collections/{name}",
        name="rename_collection",
        group="collections",
        summary="Rename a collection",
        description="Its documents and contexts stay.",
        body=models.RenameCollectionArguments,
        reply=models.CollectionRenamed,
        run=_rename_collection,
        errors=(404, 409),
        lane="write",
        examples=({"new_name": "my-docs-v2"},),
    ),
)
