"""
The values that the layers of qmd hand each other: frozen, and almost without behaviour.

Lines are 1-based as an editor counts them (``\\n``, ``\\r\\n`` and ``\\r`` end a line);
character offsets are 0-based into the decoded text, byte offsets into its UTF-8 form.
Spans are half-open.

Each name is loaded with its module on first use: making a dataclass costs half a
millisecond, and `qmd search` needs a third of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.values import access, chats, conditions, edits, exports, graph, properties
    from qmd.values.documents import (
        Chunk,
        FileState,
        FullTextEntry,
        Heading,
        Link,
        LinkKind,
        NewDocument,
        ParsedDocument,
    )
    from qmd.values.edits import Revision
    from qmd.values.photos import PhotoChange, PhotoFilter, PhotoMetadata, PhotoWritten
    from qmd.values.posts import AuthorPosts, Post, PostGroup, PostHit, PostHits, PostLine, PostText
    from qmd.values.reading import DocumentSlice, LeftOut, MultiGetReply, SkippedDocument
    from qmd.values.reports import (
        Changes,
        Check,
        CleanupReport,
        CollectionStatus,
        EmbedReport,
        Explanation,
        Freshness,
        IndexReport,
        IndexStatus,
        ModelChange,
        ModelInfo,
        Progress,
        ProgressCallback,
        Rescued,
        SkippedFile,
        Status,
    )
    from qmd.values.search import (
        Context,
        DocumentInfo,
        Filters,
        Hit,
        Match,
        Part,
        SearchCommand,
        SearchReply,
        SearchRequest,
        Source,
        encode_uri,
    )
    from qmd.values.stored import Collection, ModelSpec

__all__ = [
    "AuthorPosts",
    "Changes",
    "Check",
    "Chunk",
    "CleanupReport",
    "Collection",
    "CollectionStatus",
    "Context",
    "DocumentInfo",
    "DocumentSlice",
    "EmbedReport",
    "Explanation",
    "FileState",
    "Filters",
    "Freshness",
    "FullTextEntry",
    "Heading",
    "Hit",
    "IndexReport",
    "IndexStatus",
    "LeftOut",
    "Link",
    "LinkKind",
    "Match",
    "ModelChange",
    "ModelInfo",
    "ModelSpec",
    "MultiGetReply",
    "NewDocument",
    "ParsedDocument",
    "Part",
    "PhotoChange",
    "PhotoFilter",
    "PhotoMetadata",
    "PhotoWritten",
    "Post",
    "PostGroup",
    "PostHit",
    "PostHits",
    "PostLine",
    "PostText",
    "Progress",
    "ProgressCallback",
    "Rescued",
    "Revision",
    "SearchCommand",
    "SearchReply",
    "SearchRequest",
    "SkippedDocument",
    "SkippedFile",
    "Source",
    "Status",
    "access",
    "chats",
    "conditions",
    "edits",
    "encode_uri",
    "exports",
    "graph",
    "properties",
]

#: Module → the names that it defines. Loading one module must not load all the others.
_NAMES = {
    "documents": "Chunk FileState FullTextEntry Heading Link LinkKind NewDocument ParsedDocument",
    "photos": "PhotoChange PhotoFilter PhotoMetadata PhotoWritten",
    "posts": "AuthorPosts Post PostGroup PostHit PostHits PostLine PostText",
    "reading": "DocumentSlice LeftOut MultiGetReply SkippedDocument",
    "reports": "Changes Check CleanupReport CollectionStatus EmbedReport Explanation Freshness"
    " IndexReport IndexStatus ModelChange ModelInfo Progress ProgressCallback Rescued"
    " SkippedFile Status",
    "edits": "Revision",
    "search": "Context DocumentInfo Filters Hit Match Part SearchCommand SearchReply SearchRequest"
    " Source encode_uri",
    "stored": "Collection ModelSpec",
}
__getattr__ = lazy.load(
    __name__,
    modules=("access", "chats", "conditions", "edits", "exports", "graph", "properties"),
    attributes={
        name: f"qmd.values.{module}" for module, names in _NAMES.items() for name in names.split()
    },
)
