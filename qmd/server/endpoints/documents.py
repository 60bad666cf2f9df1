"""The endpoints that read documents, list them, and report what is indexed."""

from __future__ import annotations

from functools import partial

from qmd.errors import CollectionNotFoundError, NoMatchError
from qmd.operations import reading
from qmd.operations.replies import DocumentBlock, Reply, TextBlock
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint
from qmd.server.endpoints.operations import endpoint_by_hand, first_text, in_order
from qmd.tools.schemas import reply_model
from qmd.values import Freshness, IndexStatus


def _get(reply: Reply) -> models.GetReply:
    block = reply.blocks[0]
    assert isinstance(block, DocumentBlock)
    return models.GetReply(models.Document(block))


def _multi_get(reply: Reply) -> models.DocumentBatch:
    if reply.is_error:  # the pattern is a list of names, and none has a document
        raise NoMatchError(first_text(reply))
    return models.DocumentBatch(
        tuple(
            models.Notice("text", block.text)
            if isinstance(block, TextBlock)
            else models.Document(block)
            for block in reply.blocks
        )
    )


def _documents(call: Call) -> models.DocumentList:
    arguments: models.DocumentsArguments = call.arguments
    prefix = arguments.prefix or ""
    documents = call.kb.documents(
        prefix,
        properties=arguments.properties,
        sort=arguments.sort,
        group_by=arguments.group_by,
        limit=arguments.limit,
        offset=arguments.offset,
    )
    return models.DocumentList(
        documents=tuple(map(models.ListedDocument, documents)),
        total=call.kb.count_documents(prefix, properties=arguments.properties),
        limit=arguments.limit,
        offset=arguments.offset,
    )


_BATCH = reply_model(models.DocumentBatch, "MultiGetReply")
_STATUS = reply_model(IndexStatus, "StatusReply", content=str, freshness=Freshness)

ENDPOINTS: tuple[RestEndpoint, ...] = (
    endpoint_by_hand(reading.get, models.GetReply, _get),
    endpoint_by_hand(reading.multi_get, _BATCH, _multi_get),
    RestEndpoint(
        method="GET",
        path="/documents",
        name="documents",
        group="read",
        summary="The documents, by collection and path",
        description="A page of the listing, and how many documents there are in all.",
        query=models.DocumentsArguments,
        reply=models.DocumentList,
        run=_documents,
        raises=(CollectionNotFoundError,),
    ),
    endpoint_by_hand(reading.status, _STATUS, partial(in_order, _STATUS)),
)
