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
    from qmd.values import access as access
    from qmd.values import chats as chats
    from qmd.values import documents as documents
    from qmd.values import graph as graph
    from qmd.values import properties as properties
    from qmd.values import text as text
    from qmd.values import transfer as transfer
    from qmd.values import writing as writing
    from qmd.values.documents import Chunk as Chunk
    from qmd.values.documents import DocumentAnchor as DocumentAnchor
    from qmd.values.documents import FileState as FileState
    from qmd.values.documents import FullTextEntry as FullTextEntry
    from qmd.values.documents import Heading as Heading
    from qmd.values.documents import Link as Link
    from qmd.values.documents import LinkKind as LinkKind
    from qmd.values.documents import NewDocument as NewDocument
    from qmd.values.documents import ParsedDocument as ParsedDocument
    from qmd.values.photos import PhotoChange as PhotoChange
    from qmd.values.photos import PhotoFilter as PhotoFilter
    from qmd.values.photos import PhotoMetadata as PhotoMetadata
    from qmd.values.photos import PhotoWritten as PhotoWritten
    from qmd.values.reading import AuthorPosts as AuthorPosts
    from qmd.values.reading import DocumentSlice as DocumentSlice
    from qmd.values.reading import LeftOut as LeftOut
    from qmd.values.reading import MultiGetReply as MultiGetReply
    from qmd.values.reading import Post as Post
    from qmd.values.reading import PostGroup as PostGroup
    from qmd.values.reading import PostHit as PostHit
    from qmd.values.reading import PostHits as PostHits
    from qmd.values.reading import PostLine as PostLine
    from qmd.values.reading import PostText as PostText
    from qmd.values.reading import SkippedDocument as SkippedDocument
    from qmd.values.reports import Changes as Changes
    from qmd.values.reports import Check as Check
    from qmd.values.reports import CleanupReport as CleanupReport
    from qmd.values.reports import Collection as Collection
    from qmd.values.reports import CollectionStatus as CollectionStatus
    from qmd.values.reports import EmbedReport as EmbedReport
    from qmd.values.reports import Explanation as Explanation
    from qmd.values.reports import Freshness as Freshness
    from qmd.values.reports import IndexReport as IndexReport
    from qmd.values.reports import IndexStatus as IndexStatus
    from qmd.values.reports import ModelChange as ModelChange
    from qmd.values.reports import ModelInfo as ModelInfo
    from qmd.values.reports import ModelSpec as ModelSpec
    from qmd.values.reports import OcrReport as OcrReport
    from qmd.values.reports import Progress as Progress
    from qmd.values.reports import ProgressCallback as ProgressCallback
    from qmd.values.reports import Rescued as Rescued
    from qmd.values.reports import SkippedFile as SkippedFile
    from qmd.values.reports import Status as Status
    from qmd.values.search import Context as Context
    from qmd.values.search import DocumentInfo as DocumentInfo
    from qmd.values.search import Filters as Filters
    from qmd.values.search import Hit as Hit
    from qmd.values.search import Match as Match
    from qmd.values.search import Part as Part
    from qmd.values.search import SearchCommand as SearchCommand
    from qmd.values.search import SearchReply as SearchReply
    from qmd.values.search import SearchRequest as SearchRequest
    from qmd.values.search import Source as Source
    from qmd.values.search import encode_uri as encode_uri
    from qmd.values.writing import Revision as Revision

#: Module → the names that it defines. Loading one module must not load all the others.
_NAMES = {
    "documents": "DocumentAnchor Chunk FileState FullTextEntry Heading Link LinkKind NewDocument"
    " ParsedDocument",
    "photos": "PhotoChange PhotoFilter PhotoMetadata PhotoWritten",
    "reading": "AuthorPosts DocumentSlice LeftOut MultiGetReply Post PostGroup PostHit PostHits"
    " PostLine PostText SkippedDocument",
    "reports": "Changes Check CleanupReport Collection CollectionStatus EmbedReport Explanation"
    " Freshness IndexReport IndexStatus ModelChange ModelInfo ModelSpec OcrReport Progress"
    " ProgressCallback Rescued SkippedFile Status",
    "search": "Context DocumentInfo Filters Hit Match Part SearchCommand SearchReply SearchRequest"
    " Source encode_uri",
    "writing": "Revision",
}
__getattr__ = lazy.load(
    __name__,
    attributes={
        name: f"qmd.values.{module}" for module, names in _NAMES.items() for name in names.split()
    },
)
