"""Reading and listing documents, and what is indexed."""

from __future__ import annotations

from pydantic import BaseModel

from qmd.errors import NoMatchError
from qmd.server import rest_models as models
from qmd.server.endpoints import tool
from qmd.server.endpoints.definition import Call, Endpoint
from qmd.tools.arguments import GetArguments, MultiGetArguments, StatusArguments
from qmd.tools.definition import DocumentBlock, TextBlock


def _get(call: Call) -> BaseModel:
    (block,) = tool.run("get", call.kb, call.arguments).blocks
    assert isinstance(block, DocumentBlock)
    return models.GetReply(document=_document(block), content=None)


def _multi_get(call: Call) -> BaseModel:
    reply = tool.run("multi_get", call.kb, call.arguments)
    if reply.is_error:  # names only, and none of them is known
        raise NoMatchError(tool.first_text(reply))
    items = [
        models.Notice(type="text", text=block.text)
        if isinstance(block, TextBlock)
        else _document(block)
        for block in reply.blocks
    ]
    return models.MultiGetReply(results=items, content=None)


def _document(block: DocumentBlock) -> models.Document:
    return models.Document(
        uri=block.document.uri,
        name=block.document.file,
        title=block.document.title,
        mimeType="text/markdown",
        text=block.text,
        context=block.context,
    )


def _documents(call: Call) -> BaseModel:
    arguments: models.DocumentsArguments = call.arguments
    prefix = arguments.prefix or ""
    found = call.kb.documents(prefix, limit=arguments.limit, offset=arguments.offset)
    return models.DocumentList(
        documents=[
            models.ListedDocument(
                file=each.file,
                uri=each.uri,
                collection=each.collection,
                path=each.path,
                title=each.title,
                docid=each.docid,
                bytes=each.bytes,
                modified=each.modified,
            )
            for each in found
        ],
        total=call.kb.count_documents(prefix),
        limit=arguments.limit,
        offset=arguments.offset,
    )


def _status(call: Call) -> BaseModel:
    reply = tool.run("status", call.kb, StatusArguments())
    return models.StatusReply.model_validate(tool.fields(reply))


ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
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
    Endpoint(
        method="POST",
        path="/multi_get",
        name="multi_get",
        group="read",
        summary="Several documents",
        description=tool.TOOLS["multi_get"].description,
        body=MultiGetArguments,
        reply=models.MultiGetReply,
        run=_multi_get,
        errors=(404,),
        lane="bulk",
        examples=({"pattern": "journals/2025-05*.md"},),
    ),
    Endpoint(
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
    Endpoint(
        method="GET",
        path="/status",
        name="status",
        group="read",
        summary="What is indexed",
        description="Collections, documents, and whether vectors are ready.",
        reply=models.StatusReply,
        run=_status,
    ),
)
