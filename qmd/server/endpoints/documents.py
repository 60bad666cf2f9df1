"""The endpoints that read documents, list them, and report what is indexed."""

from __future__ import annotations

from qmd.errors import NoMatchError
from qmd.operations.replies import DocumentBlock, TextBlock
from qmd.server import rest_models as models
from qmd.server.endpoints import tool
from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.tools.documents import GetArguments, MultiGetArguments
from qmd.tools.index_status import StatusArguments
from qmd.tools.schemas import reply_model
from qmd.values import Freshness, IndexStatus


def _get(call: Call) -> models.GetReply:
    block = tool.run("get", call.kb, call.arguments).blocks[0]
    assert isinstance(block, DocumentBlock)
    return models.GetReply(models.Document(block))


def _multi_get(call: Call) -> models.DocumentBatch:
    reply = tool.run("multi_get", call.kb, call.arguments)
    if reply.is_error:  # the pattern is a list of names, and none has a document
        raise NoMatchError(tool.first_text(reply))
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


_STATUS = reply_model(IndexStatus, "StatusReply", content=str, freshness=Freshness)


def _status(call: Call) -> Answer:
    reply = tool.run("status", call.kb, StatusArguments(collection=None))
    return tool.answer(_STATUS, reply)


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="POST",
        path="/get",
        name="get",
        group="read",
        summary="One document",
        description=tool.TOOLS["get"].description,
        body=GetArguments,
        reply=models.GetReply,
        run=_get,
        errors=(404,),
        examples=({"file": "notes/2025/plan.md:3", "max_lines": 20, "line_numbers": True},),
    ),
    RestEndpoint(
        method="POST",
        path="/multi_get",
        name="multi_get",
        group="read",
        summary="Several documents",
        description=tool.TOOLS["multi_get"].description,
        body=MultiGetArguments,
        reply=reply_model(models.DocumentBatch, "MultiGetReply"),
        run=_multi_get,
        errors=(404,),
        lane="bulk",
        examples=({"pattern": "journals/2025-05*.md"},),
    ),
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
        errors=(404,),
    ),
    RestEndpoint(
        method="GET",
        path="/status",
        name="status",
        group="read",
        summary="What is indexed",
        description="Collections, documents, and whether vectors are ready.",
        reply=_STATUS,
        run=_status,
    ),
)
