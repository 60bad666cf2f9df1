"""
The values that flow through qmd: frozen, without behaviour beyond naming themselves.

Lines are 1-based as an editor counts them (``\\n``, ``\\r\\n`` and ``\\r`` end a line);
character offsets are 0-based into the decoded text, byte offsets into its UTF-8 form.
Spans are half-open.

Each name is loaded with its module on first use: making a dataclass costs half a
millisecond, and `qmd search` needs a third of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.model.documents import (
        Chunk,
        FileState,
        FullText,
        Heading,
        Link,
        LinkKind,
        NewDocument,
        ParsedDocument,
    )
    from qmd.model.live import Freshness
    from qmd.model.photos import PhotoChange, PhotoMetadata, PhotoWritten
    from qmd.model.posts import AuthorPosts, Post, PostGroup, PostHit, PostHits, PostText
    from qmd.model.reading import (
        DocumentSlice,
        MultiGetReply,
        SkippedDocument,
    )
    from qmd.model.reports import (
        Check,
        CleanupReport,
        EmbedReport,
        Explanation,
        IndexReport,
        ModelChange,
        ModelInfo,
        Progress,
        ProgressCallback,
        Rescued,
        SkippedFile,
        Status,
    )
    from qmd.model.revisions import Revision
    from qmd.model.search import (
        Context,
        DocumentInfo,
        Filters,
        Hit,
        Match,
        SearchReply,
        Source,
        encode_uri,
    )
    from qmd.model.stored import (
        Collection,
        ModelSpec,
    )

__all__ = [
    "AuthorPosts",
    "Check",
    "Chunk",
    "CleanupReport",
    "Collection",
    "Context",
    "DocumentInfo",
    "DocumentSlice",
    "EmbedReport",
    "Explanation",
    "FileState",
    "Filters",
    "Freshness",
    "FullText",
    "Heading",
    "Hit",
    "IndexReport",
    "Link",
    "LinkKind",
    "Match",
    "ModelChange",
    "ModelInfo",
    "ModelSpec",
    "MultiGetReply",
    "NewDocument",
    "ParsedDocument",
    "PhotoChange",
    "PhotoMetadata",
    "PhotoWritten",
    "Post",
    "PostGroup",
    "PostHit",
    "PostHits",
    "PostText",
    "Progress",
    "ProgressCallback",
    "Rescued",
    "Revision",
    "SearchReply",
    "SkippedDocument",
    "SkippedFile",
    "Source",
    "Status",
    "encode_uri",
]

_MODULES = (
    *("search", "stored", "reading", "reports", "documents", "live"),
    *("revisions", "photos", "posts"),
)


def __getattr__(name: str) -> object:
    if name in __all__:
        from importlib import import_module

        for module in _MODULES:
            found: object = getattr(import_module(f"qmd.model.{module}"), name, None)
            if found is not None:
                globals()[name] = found
                return found
    raise AttributeError(f"module 'qmd.model' has no attribute {name!r}")
