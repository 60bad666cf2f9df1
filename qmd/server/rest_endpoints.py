"""
The REST endpoints, each once: method, path, what it takes, what it does, what it answers.

Handlers block and run on worker threads. Those that a tool has as well call the tool.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel

from qmd.errors import (
    ContextNotFoundError,
    InputError,
    ModelMissingError,
    NoMatchError,
    NotFoundError,
)
from qmd.kb import KnowledgeBase
from qmd.model import IndexReport
from qmd.server import rest_models as models
from qmd.tools import texts
from qmd.tools.arguments import (
    Arguments,
    GetArguments,
    MultiGetArguments,
    SearchArguments,
    StatusArguments,
    VsearchArguments,
)
from qmd.tools.definition import DocumentBlock, TextBlock
from qmd.tools.definition import Reply as ToolReply
from qmd.tools.knowledge import TOOLS

Method = Literal["GET", "POST", "PUT", "DELETE"]
Lane = Literal["read", "write", "embed", "health"]
"""Which queue a call waits in: reads run side by side, writes and embeddings one by one."""

_EMBED_AT_ONCE = 16  # texts; between two lots an abandoned call stops


class RestError(Exception):
    """What only HTTP knows: an error with a status that no error of the engine has."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


@dataclass(frozen=True, slots=True)
class Call:
    """One request, checked. ``given_up`` is set when nobody waits for the reply any more."""

    kb: KnowledgeBase
    arguments: Any
    path: Mapping[str, str]
    given_up: threading.Event


@dataclass(frozen=True, slots=True)
class Endpoint:
    """
    One operation.

    ``path`` as OpenAPI writes it; a parameter named ``path`` may hold slashes. ``errors``
    are the statuses it has beside those that all of its kind have.
    """

    method: Method
    path: str
    name: str
    group: str
    summary: str
    description: str
    reply: type[models.Reply]
    run: Callable[[Call], BaseModel]
    body: type[Arguments] | None = None
    query: type[Arguments] = models.NoArguments
    errors: tuple[int, ...] = ()
    lane: Lane = "read"
    examples: tuple[Mapping[str, Any], ...] = ()

    @property
    def writes(self) -> bool:
        return self.lane == "write"


# --- search and read -----------------------------------------------------------------

_TOOLS = {tool.name: tool for tool in TOOLS}


def _tool(name: str) -> Callable[[Call], ToolReply]:
    tool = _TOOLS[name]
    return lambda call: tool.run(call.kb, call.arguments, texts.REST)


def _search(name: str) -> Callable[[Call], BaseModel]:
    run = _tool(name)

    def answer(call: Call) -> BaseModel:
        reply = run(call)
        return models.SearchReply.model_validate(
            {**_structured(reply), "content": _first_text(reply)}
        )

    return answer


def _status(call: Call) -> BaseModel:
    reply = _TOOLS["status"].run(call.kb, StatusArguments(), texts.REST)
    return models.StatusReply.model_validate({**_structured(reply), "content": _first_text(reply)})


def _get(call: Call) -> BaseModel:
    (block,) = _tool("get")(call).blocks
    assert isinstance(block, DocumentBlock)
    return models.GetReply(document=_document(block), content=None)


def _multi_get(call: Call) -> BaseModel:
    reply = _tool("multi_get")(call)
    if reply.is_error:  # names only, and none of them is known
        raise NoMatchError(_first_text(reply))
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


def _structured(reply: ToolReply) -> Mapping[str, Any]:
    assert reply.structured is not None
    return reply.structured


def _first_text(reply: ToolReply) -> str:
    """The text of the interface; what a tool adds behind it has a field of its own here."""
    block = reply.blocks[0]
    assert isinstance(block, TextBlock)
    return block.text


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


def _embed(call: Call) -> BaseModel:
    arguments: models.EmbedArguments = call.arguments
    given = arguments.texts
    if not given:
        raise InputError("Empty texts list")
    if len(given) > models.MAX_TEXTS:
        raise RestError(413, f"Too many texts ({len(given)} > {models.MAX_TEXTS})")
    vectors: list[list[float]] = []
    for start in range(0, len(given), _EMBED_AT_ONCE):
        if call.given_up.is_set():
            break
        lot = given[start : start + _EMBED_AT_ONCE]
        try:
            vectors += call.kb.embed_texts(lot, kind=arguments.kind).tolist()
        except ModelMissingError as error:
            raise RestError(503, "Model not loaded") from error
    spec = call.kb.embedding_model()
    return models.EmbedReply(embeddings=vectors, model=spec.name, fingerprint=spec.fingerprint)


# --- collections ---------------------------------------------------------------------


def _add_collection(call: Call) -> BaseModel:
    arguments: models.AddCollectionArguments = call.arguments
    directory = call.kb.policy.new_collection(arguments.path)
    try:
        added = call.kb.add_collection(
            directory, name=arguments.name, mask=arguments.glob_pattern or "**/*.md"
        )
    except NotFoundError as error:  # what the request names beside its own resource
        raise InputError(str(error), hint=error.hint) from error
    report = call.kb.index([added.name])
    indexed = call.kb.collection(added.name)
    return models.CollectionAdded(
        status="added",
        name=indexed.name,
        path=indexed.path,
        documents=indexed.documents,
        content=f"Added collection '{indexed.name}' with {_count(indexed.documents, 'document')}",
        **_errors(report),
    )


def _collections(call: Call) -> BaseModel:
    found = call.kb.collections()
    lines = [f"Collections: {len(found)}"]
    lines += [f"- {each.name} ({each.documents} docs)" for each in found]
    return models.CollectionList(
        collections=[
            models.ListedCollection(
                name=each.name, path=each.path, pattern=each.pattern, documents=each.documents
            )
            for each in found
        ],
        content="\n".join(lines),
    )


def _collection(call: Call) -> BaseModel:
    found = call.kb.collection(call.path["name"])
    return models.CollectionDetails(
        name=found.name,
        path=found.path,
        pattern=found.pattern,
        documents=found.documents,
        last_indexed=found.last_indexed,
    )


def _remove_collection(call: Call) -> BaseModel:
    removed = call.kb.remove_collection(call.path["name"])
    return models.CollectionRemoved(
        status="removed", name=removed.name, content=f"Removed collection '{removed.name}'"
    )


def _rename_collection(call: Call) -> BaseModel:
    arguments: models.RenameCollectionArguments = call.arguments
    old = call.path["name"]
    renamed = call.kb.rename_collection(old, arguments.new_name)
    return models.CollectionRenamed(
        status="renamed",
        old_name=old,
        new_name=renamed.name,
        content=f"Renamed '{old}' to '{renamed.name}'",
    )


# --- index ---------------------------------------------------------------------------


def _index(call: Call) -> BaseModel:
    report = call.kb.index()
    collections = _count(report.collections, "collection")
    return models.Indexed(
        status="indexed",
        collections=report.collections,
        total_documents=report.total_documents,
        content=f"Indexed {collections}: {_count(report.total_documents, 'document')}",
        changes=_changes(report),
        **_errors(report),
    )


def _update(call: Call) -> BaseModel:
    arguments: models.UpdateArguments = call.arguments
    report = call.kb.update(pull=arguments.pull)
    return models.Updated(
        status="updated",
        collections=report.collections,
        content=f"Updated {_count(report.collections, 'collection')}",
        changes=_changes(report),
        **_errors(report),
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


def _errors(report: IndexReport) -> dict[str, list[str]]:
    """Only what happened is sent."""
    return {"errors": list(report.errors)} if report.errors else {}


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


# --- contexts ------------------------------------------------------------------------


def _add_context(call: Call) -> BaseModel:
    arguments: models.AddContextArguments = call.arguments
    try:
        added = call.kb.add_context(arguments.path, arguments.text)
    except NotFoundError as error:
        raise InputError(str(error), hint=error.hint) from error
    return models.ContextAdded(
        status="added", path=added.path, content=f"Added context for {added.path}"
    )


def _contexts(call: Call) -> BaseModel:
    return models.ContextList(
        contexts=[
            models.ListedContext(path=each.path, text=each.text) for each in call.kb.contexts()
        ]
    )


def _remove_context(call: Call) -> BaseModel:
    given = call.path["path"]
    # A client that joins "/contexts" and "/path/to/docs" has lost the first slash.
    spellings = [given] if given.startswith("/") else [given, f"/{given}"]
    for spelling in spellings if given else ():
        try:
            removed = call.kb.remove_context(spelling)
        except (NotFoundError, InputError):
            continue
        return models.ContextRemoved(status="removed", path=removed.path)
    raise ContextNotFoundError(
        f"There is no context for {given}", hint="GET /contexts lists the paths that have one."
    )


# --- health --------------------------------------------------------------------------


def _health(call: Call) -> BaseModel:
    call.kb.contexts()  # the smallest true read
    return models.Health(status="healthy", model_loaded=call.kb.model_loaded())


# --- the table -----------------------------------------------------------------------

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="POST",
        path="/search",
        name="search",
        group="search",
        summary="Full-text search (BM25)",
        description=_TOOLS["search"].description,
        body=SearchArguments,
        reply=models.SearchReply,
        run=_search("search"),
        errors=(404,),
        examples=({"query": "meeting notes", "limit": 5, "min_score": 0.5},),
    ),
    Endpoint(
        method="POST",
        path="/vsearch",
        name="vsearch",
        group="search",
        summary="Semantic search by vectors",
        description=_TOOLS["vsearch"].description,
        body=VsearchArguments,
        reply=models.SearchReply,
        run=_search("vsearch"),
        errors=(404,),
        examples=({"query": "how do we back up the database?"},),
    ),
    Endpoint(
        method="POST",
        path="/query",
        name="query",
        group="search",
        summary="Hybrid search, the best results",
        description=_TOOLS["query"].description,
        body=SearchArguments,
        reply=models.SearchReply,
        run=_search("query"),
        errors=(404,),
        examples=({"query": "how do we back up the database?", "collection": "notes"},),
    ),
    Endpoint(
        method="POST",
        path="/get",
        name="get",
        group="read",
        summary="One document",
        description=_TOOLS["get"].description,
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
        description=_TOOLS["multi_get"].description,
        body=MultiGetArguments,
        reply=models.MultiGetReply,
        run=_multi_get,
        errors=(404,),
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
    Endpoint(
        method="POST",
        path="/embed",
        name="embed",
        group="models",
        summary="Texts to vectors",
        description="The vectors of the server's embedding model; nothing is stored.",
        body=models.EmbedArguments,
        reply=models.EmbedReply,
        run=_embed,
        lane="embed",
        examples=({"texts": ["First text", "Second text"]},),
    ),
    Endpoint(
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
    Endpoint(
        method="GET",
        path="/collections",
        name="collections",
        group="collections",
        summary="All collections",
        description="The one whose documents changed last comes first.",
        reply=models.CollectionList,
        run=_collections,
    ),
    Endpoint(
        method="GET",
        path="/collections/{name}",
        name="collection",
        group="collections",
        summary="One collection",
        description="Where it lies, and when it was last indexed.",
        reply=models.CollectionDetails,
        run=_collection,
        errors=(404,),
    ),
    Endpoint(
        method="DELETE",
        path="/collections/{name}",
        name="remove_collection",
        group="collections",
        summary="Forget a collection",
        description="Its documents leave the index; the files on the disk stay.",
        reply=models.CollectionRemoved,
        run=_remove_collection,
        errors=(404,),
        lane="write",
    ),
    Endpoint(
        method="PUT",
        path="/collections/{name}",
        name="rename_collection",
        group="collections",
        summary="Rename a collection",
        description="Its documents and contexts follow.",
        body=models.RenameCollectionArguments,
        reply=models.CollectionRenamed,
        run=_rename_collection,
        errors=(404, 409),
        lane="write",
        examples=({"new_name": "my-docs-v2"},),
    ),
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
        description="As /index, after a git pull where it was asked for.",
        body=models.UpdateArguments,
        reply=models.Updated,
        run=_update,
        lane="write",
        examples=({"pull": False},),
    ),
    Endpoint(
        method="POST",
        path="/contexts/add",
        name="add_context",
        group="contexts",
        summary="Say what lies below a path",
        description="Replaces what was said there before; hits below it carry the text.",
        body=models.AddContextArguments,
        reply=models.ContextAdded,
        run=_add_context,
        lane="write",
        examples=({"path": "/home/me/docs", "text": "Project documentation"},),
    ),
    Endpoint(
        method="GET",
        path="/contexts",
        name="contexts",
        group="contexts",
        summary="All contexts",
        description="From the global one to the most specific.",
        reply=models.ContextList,
        run=_contexts,
    ),
    Endpoint(
        method="DELETE",
        path="/contexts/{path}",
        name="remove_context",
        group="contexts",
        summary="Remove a context",
        description=(
            "The path as /contexts lists it, or as qmd://collection/prefix, percent-encoded: "
            "/contexts/%2Fhome%2Fme%2Fdocs."
        ),
        reply=models.ContextRemoved,
        run=_remove_context,
        errors=(404,),
        lane="write",
    ),
    Endpoint(
        method="GET",
        path="/health",
        name="health",
        group="server",
        summary="Whether the server can answer",
        description="Needs no token and tells nothing more. 503 when the index cannot be read.",
        reply=models.Health,
        run=_health,
        lane="health",
    ),
)
