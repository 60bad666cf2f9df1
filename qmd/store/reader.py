"""`Reader`: the capabilities of a snapshot. `Writer`: those of a transaction, which also writes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from qmd.store.collections import Collections, CollectionsWriter
    from qmd.store.documents import Documents
    from qmd.store.embeddings import Embeddings, EmbeddingsWriter
    from qmd.store.files import Files, FilesWriter
    from qmd.store.full_text import FullText
    from qmd.store.graph import Graph
    from qmd.store.links import Links
    from qmd.store.models import Models, ModelsWriter
    from qmd.store.posts import Posts
    from qmd.store.recent import Recent
    from qmd.store.selection import Selection
    from qmd.store.sql import Connection, Sql
    from qmd.store.sql.access import Access, AccessWriter
    from qmd.store.sql.contexts import Contexts, ContextsWriter
    from qmd.store.sql.conversations import Conversations, ConversationsWriter
    from qmd.store.sql.meta import Meta, MetaWriter
    from qmd.store.sql.model_cache import ModelCache, ModelCacheWriter
    from qmd.store.sql.pending import PendingWrites, PendingWritesWriter
    from qmd.store.sql.properties import Properties
    from qmd.store.sql.revisions import Revisions, RevisionsWriter
    from qmd.store.tags import Tags
    from qmd.store.tokens import Tokens, TokensWriter
    from qmd.store.upkeep import Upkeep, UpkeepWriter
    from qmd.store.vectors import Vectors
    from qmd.values import Filters
    from qmd.values.conditions import PropertyCondition


_BY_ENGINE = frozenset(
    {"full_text", "vectors", "upkeep", "tags", "posts", "tokens", "models", "embeddings"}
    | {"collections", "files", "links", "graph", "documents", "recent"}
)
#: The capabilities that differ for a client with a scope beyond the rows that it sees.
_SCOPED = frozenset({"full_text", "vectors", "upkeep"})


class Reader:
    """
    One snapshot of a store. Its results are consistent, whatever is written meanwhile.

    Each attribute is a capability: an instance of the named class, which lies in the module of the
    attribute's name. It is imported when it is first used: a command line search needs few of them.
    """

    documents: Documents
    full_text: FullText
    vectors: Vectors
    models: Models
    embeddings: Embeddings
    tokens: Tokens
    collections: Collections
    contexts: Contexts
    files: Files
    links: Links
    posts: Posts
    graph: Graph
    tags: Tags
    recent: Recent
    properties: Properties
    revisions: Revisions
    conversations: Conversations
    model_cache: ModelCache
    pending: PendingWrites
    meta: Meta
    access: Access
    upkeep: Upkeep

    def __init__(self, sql: Sql) -> None:
        self.sql = sql

    if not TYPE_CHECKING:  # else mypy would take every name for a capability

        def __getattr__(self, name: str) -> object:
            kind = _class_name(type(self), name)
            dialect = self.sql.dialect
            if name not in _BY_ENGINE:
                place = f"sql.{name}"
            elif self.sql.is_scoped and name in _SCOPED:
                place, kind = f"{dialect.package}.scoped_reader", f"Scoped{dialect.prefix}{kind}"
            else:
                place, kind = f"{dialect.package}.{name}", f"{dialect.prefix}{kind}"
            capability = getattr(import_module(f"qmd.store.{place}"), kind)(self.sql)
            setattr(self, name, capability)
            return capability

    @property
    def connection(self) -> Connection:
        return self.sql.connection

    @property
    def all_documents(self) -> Selection:
        """The selection that leaves out nothing."""
        return cast("Selection", self._filters.ALL_DOCUMENTS)

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
        selection = self._filters.select(
            self.sql, filters, either=either, none_of=none_of, one_per_file=one_per_file
        )
        return cast("Selection", selection)

    @property
    def _filters(self) -> ModuleType:
        return import_module(f"qmd.store.{self.sql.dialect.package}.filters")


class Writer(Reader):
    """One transaction: all of it is written, or nothing."""

    models: ModelsWriter
    embeddings: EmbeddingsWriter
    tokens: TokensWriter
    collections: CollectionsWriter
    contexts: ContextsWriter
    files: FilesWriter
    revisions: RevisionsWriter
    conversations: ConversationsWriter
    model_cache: ModelCacheWriter
    pending: PendingWritesWriter
    meta: MetaWriter
    access: AccessWriter
    upkeep: UpkeepWriter


def _class_name(kind: type, name: str) -> str:
    """The class of a capability. Raises AttributeError: There is none of this name."""
    for each in kind.__mro__[:-1]:
        if class_name := each.__annotations__.get(name):
            return str(class_name)
    raise AttributeError(f"a {kind.__name__} has no capability {name!r}")
