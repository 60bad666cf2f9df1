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
    from qmd.values.documents import *
    from qmd.values.photos import *
    from qmd.values.reading import *
    from qmd.values.reports import *
    from qmd.values.search import *
    from qmd.values.writing import *

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
