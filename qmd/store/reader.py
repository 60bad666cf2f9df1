"""`Reader`: the capabilities of a snapshot. `Writer`: those of a transaction, which also writes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qmd.store.access import Access, AccessWriter
from qmd.store.collections import Collections, CollectionsWriter
from qmd.store.contexts import Contexts, ContextsWriter
from qmd.store.conversations import Conversations, ConversationsWriter
from qmd.store.documents import Documents
from qmd.store.embeddings import Embeddings, EmbeddingsWriter
from qmd.store.files import Files, FilesWriter
from qmd.store.full_text import FullText
from qmd.store.graph import Graph
from qmd.store.links import Links
from qmd.store.meta import Meta, MetaWriter
from qmd.store.model_cache import ModelCache, ModelCacheWriter
from qmd.store.models import Models, ModelsWriter
from qmd.store.pending import PendingWrites, PendingWritesWriter
from qmd.store.posts import Posts
from qmd.store.properties import Properties
from qmd.store.recent import Recent
from qmd.store.revisions import Revisions, RevisionsWriter
from qmd.store.selection import Selection
from qmd.store.tags import Tags
from qmd.store.tokens import Tokens, TokensWriter
from qmd.store.upkeep import Upkeep, UpkeepWriter
from qmd.store.vectors import Vectors
from qmd.values import Filters
from qmd.values.conditions import PropertyCondition


class Reader(Protocol):
    """One snapshot of a store. Its results are consistent, whatever is written meanwhile."""

    @property
    def all_documents(self) -> Selection:
        """The selection that leaves out nothing."""
        ...

    def select(
        self,
        filters: Filters,
        *,
        either: Sequence[Sequence[str | PropertyCondition]] = (),
        none_of: Sequence[str | PropertyCondition] = (),
        one_per_file: bool = True,
    ) -> Selection:
        """
        The documents that satisfy all filters.

        Args:
            filters: A document must pass all of them.
            either: Of each group of tags and conditions, a document must meet at least one.
            none_of: A document must meet none of these tags and conditions.
            one_per_file: Of a file in several of the selected collections, select the document of
                the collection whose folder lies deepest; of equal folders, of the one added first.

        A tag also stands for the tags below it: ``work`` for ``work/plans``.

        Raises:
            CollectionNotFoundError: With suggestions.
            InputError: A filter by a property is no condition.
        """
        ...

    @property
    def documents(self) -> Documents: ...

    @property
    def full_text(self) -> FullText: ...

    @property
    def vectors(self) -> Vectors: ...

    @property
    def models(self) -> Models: ...

    @property
    def embeddings(self) -> Embeddings: ...

    @property
    def tokens(self) -> Tokens: ...

    @property
    def collections(self) -> Collections: ...

    @property
    def contexts(self) -> Contexts: ...

    @property
    def files(self) -> Files: ...

    @property
    def links(self) -> Links: ...

    @property
    def posts(self) -> Posts: ...

    @property
    def graph(self) -> Graph: ...

    @property
    def tags(self) -> Tags: ...

    @property
    def recent(self) -> Recent: ...

    @property
    def properties(self) -> Properties: ...

    @property
    def revisions(self) -> Revisions: ...

    @property
    def conversations(self) -> Conversations: ...

    @property
    def model_cache(self) -> ModelCache: ...

    @property
    def pending(self) -> PendingWrites: ...

    @property
    def meta(self) -> Meta: ...

    @property
    def access(self) -> Access: ...

    @property
    def upkeep(self) -> Upkeep: ...


class Writer(Reader, Protocol):
    """One transaction: all of it is written, or nothing."""

    @property
    def models(self) -> ModelsWriter: ...

    @property
    def embeddings(self) -> EmbeddingsWriter: ...

    @property
    def tokens(self) -> TokensWriter: ...

    @property
    def collections(self) -> CollectionsWriter: ...

    @property
    def contexts(self) -> ContextsWriter: ...

    @property
    def files(self) -> FilesWriter: ...

    @property
    def revisions(self) -> RevisionsWriter: ...

    @property
    def conversations(self) -> ConversationsWriter: ...

    @property
    def model_cache(self) -> ModelCacheWriter: ...

    @property
    def pending(self) -> PendingWritesWriter: ...

    @property
    def meta(self) -> MetaWriter: ...

    @property
    def access(self) -> AccessWriter: ...

    @property
    def upkeep(self) -> UpkeepWriter: ...
