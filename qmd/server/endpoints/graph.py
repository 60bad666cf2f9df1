"""The endpoints of the graph: links, tags, what changed and what is similar."""

from __future__ import annotations

from qmd.server.endpoints.definition import Answer, Call, RestEndpoint
from qmd.tools.graph import (
    CollectionArguments,
    FileArguments,
    RecentArguments,
    SimilarArguments,
    TagsArguments,
)
from qmd.values.graph import (
    Backlinks,
    BrokenLinks,
    NoteLinks,
    Orphans,
    RecentChanges,
    SimilarDocuments,
    TagTree,
)
from qmd.values.list_budget import ListBudget


def _links(call: Call) -> Answer:
    arguments: FileArguments = call.arguments
    value = call.kb.links(arguments.file, limit=arguments.limit)
    return ListBudget(arguments.max_tokens).fit(value, "links")


def _backlinks(call: Call) -> Answer:
    arguments: FileArguments = call.arguments
    value = call.kb.backlinks(arguments.file, limit=arguments.limit)
    return ListBudget(arguments.max_tokens).fit(value, "links")


def _broken(call: Call) -> Answer:
    arguments: CollectionArguments = call.arguments
    value = call.kb.broken_links(collection=arguments.collection, limit=arguments.limit)
    return ListBudget(arguments.max_tokens).fit(value, "links")


def _orphans(call: Call) -> Answer:
    arguments: CollectionArguments = call.arguments
    value = call.kb.orphans(collection=arguments.collection, limit=arguments.limit)
    return ListBudget(arguments.max_tokens).fit(value, "documents")


def _tags(call: Call) -> Answer:
    arguments: TagsArguments = call.arguments
    value = call.kb.tags(
        arguments.prefix or "", collection=arguments.collection, limit=arguments.limit
    )
    return ListBudget(arguments.max_tokens).fit(value, "tags")


def _recent(call: Call) -> Answer:
    arguments: RecentArguments = call.arguments
    value = call.kb.recent(
        since=arguments.since, collection=arguments.collection, limit=arguments.limit
    )
    return ListBudget(arguments.max_tokens).fit(value, "changes")


def _similar(call: Call) -> Answer:
    arguments: SimilarArguments = call.arguments
    value = call.kb.similar(arguments.file, collection=arguments.collection, limit=arguments.limit)
    return ListBudget(arguments.max_tokens).fit(value, "documents")


ENDPOINTS: tuple[RestEndpoint, ...] = (
    RestEndpoint(
        method="GET",
        path="/links",
        name="links",
        group="graph",
        summary="The links in a note",
        description="Where each leads: to a document, an attachment, the web, or nothing.",
        query=FileArguments,
        reply=NoteLinks,
        run=_links,
        errors=(404,),
    ),
    RestEndpoint(
        method="GET",
        path="/backlinks",
        name="backlinks",
        group="graph",
        summary="The links in other notes that lead to a note",
        description="Each with its line and the text of the line.",
        query=FileArguments,
        reply=Backlinks,
        run=_backlinks,
        errors=(404,),
    ),
    RestEndpoint(
        method="GET",
        path="/broken",
        name="broken",
        group="graph",
        summary="The links that lead nowhere",
        description="Each with the existing file whose name is most similar.",
        query=CollectionArguments,
        reply=BrokenLinks,
        run=_broken,
        errors=(404,),
        lane="bulk",
    ),
    RestEndpoint(
        method="GET",
        path="/orphans",
        name="orphans",
        group="graph",
        summary="The documents to which no other document links",
        description="Embeds count as links. Photos are left out.",
        query=CollectionArguments,
        reply=Orphans,
        run=_orphans,
        errors=(404,),
        lane="bulk",
    ),
    RestEndpoint(
        method="GET",
        path="/tags",
        name="tags",
        group="graph",
        summary="The tags as a tree",
        description="Each with its number of documents.",
        query=TagsArguments,
        reply=TagTree,
        run=_tags,
        errors=(404,),
    ),
    RestEndpoint(
        method="GET",
        path="/recent",
        name="recent",
        group="graph",
        summary="What changed last",
        description='And who wrote it: a tool, or "disk" for other programs.',
        query=RecentArguments,
        reply=RecentChanges,
        run=_recent,
        errors=(404,),
    ),
    RestEndpoint(
        method="GET",
        path="/similar",
        name="similar",
        group="graph",
        summary="The documents most similar to one",
        description="By their vectors; each says whether it is linked with the document.",
        query=SimilarArguments,
        reply=SimilarDocuments,
        run=_similar,
        errors=(404, 409),
    ),
)
