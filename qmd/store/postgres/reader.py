"""
Implements `Reader`, a snapshot of the database, and `Writer`, a transaction.

A capability is imported when it is first used: a command line search needs few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.postgres.access import PostgresAccess, PostgresAccessWriter
    from qmd.store.postgres.collections import PostgresCollections, PostgresCollectionsWriter
    from qmd.store.postgres.contexts import PostgresContexts, PostgresContextsWriter
    from qmd.store.postgres.conversations import PostgresConversations, PostgresConversationsWriter
    from qmd.store.postgres.documents import PostgresDocuments
    from qmd.store.postgres.embeddings import PostgresEmbeddings, PostgresEmbeddingsWriter
    from qmd.store.postgres.files import PostgresFiles, PostgresFilesWriter
    from qmd.store.postgres.filters import PostgresSelection
    from qmd.store.postgres.full_text import PostgresFullText
    from qmd.store.postgres.graph import PostgresGraph
    from qmd.store.postgres.library import Connection
    from qmd.store.postgres.links import PostgresLinks
    from qmd.store.postgres.meta import PostgresMeta, PostgresMetaWriter
    from qmd.store.postgres.model_cache import PostgresModelCache, PostgresModelCacheWriter
    from qmd.store.postgres.models import PostgresModels, PostgresModelsWriter
    from qmd.store.postgres.pending import PostgresPendingWrites, PostgresPendingWritesWriter
    from qmd.store.postgres.posts import PostgresPosts
    from qmd.store.postgres.properties import PostgresProperties
    from qmd.store.postgres.recent import PostgresRecent
    from qmd.store.postgres.revisions import PostgresRevisions, PostgresRevisionsWriter
    from qmd.store.postgres.tags import PostgresTags
    from qmd.store.postgres.tokens import PostgresTokens, PostgresTokensWriter
    from qmd.store.postgres.upkeep import PostgresUpkeep, PostgresUpkeepWriter
    from qmd.store.postgres.vectors import PostgresVectors
    from qmd.values import Filters
    from qmd.values.conditions import PropertyCondition


class PostgresReader:
    """A read-only snapshot of the database."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def all_documents(self) -> PostgresSelection:
        """The selection of all documents."""
        from qmd.store.postgres.filters import ALL_DOCUMENTS

        return ALL_DOCUMENTS

    def select(
        self,
        filters: Filters,
        *,
        either: Sequence[Sequence[str | PropertyCondition]] = (),
        none_of: Sequence[str | PropertyCondition] = (),
        one_per_file: bool = True,
    ) -> PostgresSelection:
        from qmd.store.postgres.filters import select

        return select(
            self.connection, filters, either=either, none_of=none_of, one_per_file=one_per_file
        )

    @cached_property
    def documents(self) -> PostgresDocuments:
        from qmd.store.postgres.documents import PostgresDocuments

        return PostgresDocuments(self.connection)

    @cached_property
    def full_text(self) -> PostgresFullText:
        from qmd.store.postgres.full_text import PostgresFullText

        return PostgresFullText(self.connection)

    @cached_property
    def vectors(self) -> PostgresVectors:
        from qmd.store.postgres.vectors import PostgresVectors

        return PostgresVectors(self.connection)

    @cached_property
    def models(self) -> PostgresModels:
        from qmd.store.postgres.models import PostgresModels

        return PostgresModels(self.connection)

    @cached_property
    def embeddings(self) -> PostgresEmbeddings:
        from qmd.store.postgres.embeddings import PostgresEmbeddings

        return PostgresEmbeddings(self.connection)

    @cached_property
    def tokens(self) -> PostgresTokens:
        from qmd.store.postgres.tokens import PostgresTokens

        return PostgresTokens(self.connection)

    @cached_property
    def collections(self) -> PostgresCollections:
        from qmd.store.postgres.collections import PostgresCollections

        return PostgresCollections(self.connection)

    @cached_property
    def contexts(self) -> PostgresContexts:
        from qmd.store.postgres.contexts import PostgresContexts

        return PostgresContexts(self.connection)

    @cached_property
    def files(self) -> PostgresFiles:
        from qmd.store.postgres.files import PostgresFiles

        return PostgresFiles(self.connection)

    @cached_property
    def links(self) -> PostgresLinks:
        from qmd.store.postgres.links import PostgresLinks

        return PostgresLinks(self.connection)

    @cached_property
    def posts(self) -> PostgresPosts:
        from qmd.store.postgres.posts import PostgresPosts

        return PostgresPosts(self.connection)

    @cached_property
    def graph(self) -> PostgresGraph:
        from qmd.store.postgres.graph import PostgresGraph

        return PostgresGraph(self.connection)

    @cached_property
    def tags(self) -> PostgresTags:
        from qmd.store.postgres.tags import PostgresTags

        return PostgresTags(self.connection)

    @cached_property
    def recent(self) -> PostgresRecent:
        from qmd.store.postgres.recent import PostgresRecent

        return PostgresRecent(self.connection)

    @cached_property
    def properties(self) -> PostgresProperties:
        from qmd.store.postgres.properties import PostgresProperties

        return PostgresProperties(self.connection)

    @cached_property
    def revisions(self) -> PostgresRevisions:
        from qmd.store.postgres.revisions import PostgresRevisions

        return PostgresRevisions(self.connection)

    @cached_property
    def conversations(self) -> PostgresConversations:
        from qmd.store.postgres.conversations import PostgresConversations

        return PostgresConversations(self.connection)

    @cached_property
    def model_cache(self) -> PostgresModelCache:
        from qmd.store.postgres.model_cache import PostgresModelCache

        return PostgresModelCache(self.connection)

    @cached_property
    def pending(self) -> PostgresPendingWrites:
        from qmd.store.postgres.pending import PostgresPendingWrites

        return PostgresPendingWrites(self.connection)

    @cached_property
    def meta(self) -> PostgresMeta:
        from qmd.store.postgres.meta import PostgresMeta

        return PostgresMeta(self.connection)

    @cached_property
    def access(self) -> PostgresAccess:
        from qmd.store.postgres.access import PostgresAccess

        return PostgresAccess(self.connection)

    @cached_property
    def upkeep(self) -> PostgresUpkeep:
        from qmd.store.postgres.upkeep import PostgresUpkeep

        return PostgresUpkeep(self.connection)


class PostgresWriter(PostgresReader):
    """A transaction that can write."""

    @cached_property
    def models(self) -> PostgresModelsWriter:
        from qmd.store.postgres.models import PostgresModelsWriter

        return PostgresModelsWriter(self.connection)

    @cached_property
    def embeddings(self) -> PostgresEmbeddingsWriter:
        from qmd.store.postgres.embeddings import PostgresEmbeddingsWriter

        return PostgresEmbeddingsWriter(self.connection)

    @cached_property
    def tokens(self) -> PostgresTokensWriter:
        from qmd.store.postgres.tokens import PostgresTokensWriter

        return PostgresTokensWriter(self.connection)

    @cached_property
    def collections(self) -> PostgresCollectionsWriter:
        from qmd.store.postgres.collections import PostgresCollectionsWriter

        return PostgresCollectionsWriter(self.connection)

    @cached_property
    def contexts(self) -> PostgresContextsWriter:
        from qmd.store.postgres.contexts import PostgresContextsWriter

        return PostgresContextsWriter(self.connection)

    @cached_property
    def files(self) -> PostgresFilesWriter:
        from qmd.store.postgres.files import PostgresFilesWriter

        return PostgresFilesWriter(self.connection)

    @cached_property
    def revisions(self) -> PostgresRevisionsWriter:
        from qmd.store.postgres.revisions import PostgresRevisionsWriter

        return PostgresRevisionsWriter(self.connection)

    @cached_property
    def conversations(self) -> PostgresConversationsWriter:
        from qmd.store.postgres.conversations import PostgresConversationsWriter

        return PostgresConversationsWriter(self.connection)

    @cached_property
    def model_cache(self) -> PostgresModelCacheWriter:
        from qmd.store.postgres.model_cache import PostgresModelCacheWriter

        return PostgresModelCacheWriter(self.connection)

    @cached_property
    def pending(self) -> PostgresPendingWritesWriter:
        from qmd.store.postgres.pending import PostgresPendingWritesWriter

        return PostgresPendingWritesWriter(self.connection)

    @cached_property
    def meta(self) -> PostgresMetaWriter:
        from qmd.store.postgres.meta import PostgresMetaWriter

        return PostgresMetaWriter(self.connection)

    @cached_property
    def access(self) -> PostgresAccessWriter:
        from qmd.store.postgres.access import PostgresAccessWriter

        return PostgresAccessWriter(self.connection)

    @cached_property
    def upkeep(self) -> PostgresUpkeepWriter:
        from qmd.store.postgres.upkeep import PostgresUpkeepWriter

        return PostgresUpkeepWriter(self.connection)
