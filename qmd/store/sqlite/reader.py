"""
Implements `Reader`, a snapshot of the database, and `Writer`, a transaction.

A capability is imported when it is first used: a command line search needs few of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.sqlite.access import SqliteAccess, SqliteAccessWriter
    from qmd.store.sqlite.collections import SqliteCollections, SqliteCollectionsWriter
    from qmd.store.sqlite.contexts import SqliteContexts, SqliteContextsWriter
    from qmd.store.sqlite.conversations import SqliteConversations, SqliteConversationsWriter
    from qmd.store.sqlite.documents import SqliteDocuments
    from qmd.store.sqlite.embeddings import SqliteEmbeddings, SqliteEmbeddingsWriter
    from qmd.store.sqlite.files import SqliteFiles, SqliteFilesWriter
    from qmd.store.sqlite.filters import SqlSelection
    from qmd.store.sqlite.full_text import SqliteFullText
    from qmd.store.sqlite.graph import SqliteGraph
    from qmd.store.sqlite.library import Connection
    from qmd.store.sqlite.links import SqliteLinks
    from qmd.store.sqlite.meta import SqliteMeta, SqliteMetaWriter
    from qmd.store.sqlite.model_cache import SqliteModelCache, SqliteModelCacheWriter
    from qmd.store.sqlite.models import SqliteModels, SqliteModelsWriter
    from qmd.store.sqlite.pending import SqlitePendingWrites, SqlitePendingWritesWriter
    from qmd.store.sqlite.posts import SqlitePosts
    from qmd.store.sqlite.properties import SqliteProperties
    from qmd.store.sqlite.recent import SqliteRecent
    from qmd.store.sqlite.revisions import SqliteRevisions, SqliteRevisionsWriter
    from qmd.store.sqlite.tags import SqliteTags
    from qmd.store.sqlite.tokens import SqliteTokens, SqliteTokensWriter
    from qmd.store.sqlite.upkeep import SqliteUpkeep, SqliteUpkeepWriter
    from qmd.store.sqlite.vectors import SqliteVectors
    from qmd.values import Filters
    from qmd.values.conditions import PropertyCondition


class SqliteReader:
    """A read-only snapshot of the database."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    @property
    def all_documents(self) -> SqlSelection:
        """The selection of all documents."""
        from qmd.store.sqlite.filters import ALL_DOCUMENTS

        return ALL_DOCUMENTS

    def select(
        self,
        filters: Filters,
        *,
        either: Sequence[Sequence[str | PropertyCondition]] = (),
        none_of: Sequence[str | PropertyCondition] = (),
        one_per_file: bool = True,
    ) -> SqlSelection:
        from qmd.store.sqlite.filters import select

        return select(
            self.connection, filters, either=either, none_of=none_of, one_per_file=one_per_file
        )

    @cached_property
    def documents(self) -> SqliteDocuments:
        from qmd.store.sqlite.documents import SqliteDocuments

        return SqliteDocuments(self.connection)

    @cached_property
    def full_text(self) -> SqliteFullText:
        from qmd.store.sqlite.full_text import SqliteFullText

        return SqliteFullText(self.connection)

    @cached_property
    def vectors(self) -> SqliteVectors:
        from qmd.store.sqlite.vectors import SqliteVectors

        return SqliteVectors(self.connection)

    @cached_property
    def models(self) -> SqliteModels:
        from qmd.store.sqlite.models import SqliteModels

        return SqliteModels(self.connection)

    @cached_property
    def embeddings(self) -> SqliteEmbeddings:
        from qmd.store.sqlite.embeddings import SqliteEmbeddings

        return SqliteEmbeddings(self.connection)

    @cached_property
    def tokens(self) -> SqliteTokens:
        from qmd.store.sqlite.tokens import SqliteTokens

        return SqliteTokens(self.connection)

    @cached_property
    def collections(self) -> SqliteCollections:
        from qmd.store.sqlite.collections import SqliteCollections

        return SqliteCollections(self.connection)

    @cached_property
    def contexts(self) -> SqliteContexts:
        from qmd.store.sqlite.contexts import SqliteContexts

        return SqliteContexts(self.connection)

    @cached_property
    def files(self) -> SqliteFiles:
        from qmd.store.sqlite.files import SqliteFiles

        return SqliteFiles(self.connection)

    @cached_property
    def links(self) -> SqliteLinks:
        from qmd.store.sqlite.links import SqliteLinks

        return SqliteLinks(self.connection)

    @cached_property
    def posts(self) -> SqlitePosts:
        from qmd.store.sqlite.posts import SqlitePosts

        return SqlitePosts(self.connection)

    @cached_property
    def graph(self) -> SqliteGraph:
        from qmd.store.sqlite.graph import SqliteGraph

        return SqliteGraph(self.connection)

    @cached_property
    def tags(self) -> SqliteTags:
        from qmd.store.sqlite.tags import SqliteTags

        return SqliteTags(self.connection)

    @cached_property
    def recent(self) -> SqliteRecent:
        from qmd.store.sqlite.recent import SqliteRecent

        return SqliteRecent(self.connection)

    @cached_property
    def properties(self) -> SqliteProperties:
        from qmd.store.sqlite.properties import SqliteProperties

        return SqliteProperties(self.connection)

    @cached_property
    def revisions(self) -> SqliteRevisions:
        from qmd.store.sqlite.revisions import SqliteRevisions

        return SqliteRevisions(self.connection)

    @cached_property
    def conversations(self) -> SqliteConversations:
        from qmd.store.sqlite.conversations import SqliteConversations

        return SqliteConversations(self.connection)

    @cached_property
    def model_cache(self) -> SqliteModelCache:
        from qmd.store.sqlite.model_cache import SqliteModelCache

        return SqliteModelCache(self.connection)

    @cached_property
    def pending(self) -> SqlitePendingWrites:
        from qmd.store.sqlite.pending import SqlitePendingWrites

        return SqlitePendingWrites(self.connection)

    @cached_property
    def meta(self) -> SqliteMeta:
        from qmd.store.sqlite.meta import SqliteMeta

        return SqliteMeta(self.connection)

    @cached_property
    def access(self) -> SqliteAccess:
        from qmd.store.sqlite.access import SqliteAccess

        return SqliteAccess(self.connection)

    @cached_property
    def upkeep(self) -> SqliteUpkeep:
        from qmd.store.sqlite.upkeep import SqliteUpkeep

        return SqliteUpkeep(self.connection)


class SqliteWriter(SqliteReader):
    """A transaction that can write."""

    @cached_property
    def models(self) -> SqliteModelsWriter:
        from qmd.store.sqlite.models import SqliteModelsWriter

        return SqliteModelsWriter(self.connection)

    @cached_property
    def embeddings(self) -> SqliteEmbeddingsWriter:
        from qmd.store.sqlite.embeddings import SqliteEmbeddingsWriter

        return SqliteEmbeddingsWriter(self.connection)

    @cached_property
    def tokens(self) -> SqliteTokensWriter:
        from qmd.store.sqlite.tokens import SqliteTokensWriter

        return SqliteTokensWriter(self.connection)

    @cached_property
    def collections(self) -> SqliteCollectionsWriter:
        from qmd.store.sqlite.collections import SqliteCollectionsWriter

        return SqliteCollectionsWriter(self.connection)

    @cached_property
    def contexts(self) -> SqliteContextsWriter:
        from qmd.store.sqlite.contexts import SqliteContextsWriter

        return SqliteContextsWriter(self.connection)

    @cached_property
    def files(self) -> SqliteFilesWriter:
        from qmd.store.sqlite.files import SqliteFilesWriter

        return SqliteFilesWriter(self.connection)

    @cached_property
    def revisions(self) -> SqliteRevisionsWriter:
        from qmd.store.sqlite.revisions import SqliteRevisionsWriter

        return SqliteRevisionsWriter(self.connection)

    @cached_property
    def conversations(self) -> SqliteConversationsWriter:
        from qmd.store.sqlite.conversations import SqliteConversationsWriter

        return SqliteConversationsWriter(self.connection)

    @cached_property
    def model_cache(self) -> SqliteModelCacheWriter:
        from qmd.store.sqlite.model_cache import SqliteModelCacheWriter

        return SqliteModelCacheWriter(self.connection)

    @cached_property
    def pending(self) -> SqlitePendingWritesWriter:
        from qmd.store.sqlite.pending import SqlitePendingWritesWriter

        return SqlitePendingWritesWriter(self.connection)

    @cached_property
    def meta(self) -> SqliteMetaWriter:
        from qmd.store.sqlite.meta import SqliteMetaWriter

        return SqliteMetaWriter(self.connection)

    @cached_property
    def access(self) -> SqliteAccessWriter:
        from qmd.store.sqlite.access import SqliteAccessWriter

        return SqliteAccessWriter(self.connection)

    @cached_property
    def upkeep(self) -> SqliteUpkeepWriter:
        from qmd.store.sqlite.upkeep import SqliteUpkeepWriter

        return SqliteUpkeepWriter(self.connection)
