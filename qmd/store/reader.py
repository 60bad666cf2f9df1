"""`Reader`: the capabilities of a snapshot. `Writer`: those of a transaction, which also writes."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from qmd.store import sql as capabilities

if TYPE_CHECKING:
    from qmd.store.full_text import FullText
    from qmd.store.sql import Connection, Sql
    from qmd.store.sql.access import Access, AccessWriter
    from qmd.store.sql.collections import Collections, CollectionsWriter, Contexts, ContextsWriter
    from qmd.store.sql.conversations import Conversations, ConversationsWriter
    from qmd.store.sql.documents import Documents
    from qmd.store.sql.files import Files, FilesWriter
    from qmd.store.sql.filters import Selection
    from qmd.store.sql.links import Graph, Links
    from qmd.store.sql.models import (
        Embeddings,
        EmbeddingsWriter,
        Models,
        ModelsWriter,
        Tokens,
        TokensWriter,
    )
    from qmd.store.sql.pictures import Pictures, PicturesWriter
    from qmd.store.sql.properties import Observations, Properties, Tags, Tasks
    from qmd.store.sql.recent import Recent
    from qmd.store.sql.revisions import Revisions, RevisionsWriter
    from qmd.store.sql.shared import (
        Meta,
        MetaWriter,
        ModelCache,
        ModelCacheWriter,
        PendingWrites,
        PendingWritesWriter,
    )
    from qmd.store.sql.upkeep import Upkeep, UpkeepWriter
    from qmd.store.sql.vectors import Vectors
    from qmd.values import Filters
    from qmd.values.properties import PropertyCondition


#: Capability → its module in `sql`, where that has another name: it has several capabilities.
MODULES = {
    **dict.fromkeys(("meta", "model_cache", "pending"), "shared"),
    **dict.fromkeys(("observations", "tags", "tasks"), "properties"),
    **dict.fromkeys(("embeddings", "tokens"), "models"),
    "contexts": "collections",
    "graph": "links",
}


class Reader:
    """
    One snapshot of a store. Its results are consistent, whatever is written meanwhile.

    Each attribute is a capability: an instance of the named class, whose module
    is imported when it is first used: a command line search needs few of them.
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
    graph: Graph
    tags: Tags
    pictures: Pictures
    tasks: Tasks
    observations: Observations
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
            if name == "full_text":  # which differs between the engines by nature
                capability = self.sql.engine(name).full_text(self.sql)
            else:
                module = import_module(f"qmd.store.sql.{MODULES.get(name, name)}")
                capability = getattr(module, kind)(self.sql)
            setattr(self, name, capability)
            return capability

    @property
    def connection(self) -> Connection:
        return self.sql.connection

    @property
    def all_documents(self) -> Selection:
        """The selection that leaves out nothing."""
        return capabilities.filters.ALL_DOCUMENTS

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
        return capabilities.filters.select(
            self.sql, filters, either=either, none_of=none_of, one_per_file=one_per_file
        )


class Writer(Reader):
    """One transaction: all of it is written, or nothing."""

    models: ModelsWriter
    embeddings: EmbeddingsWriter
    tokens: TokensWriter
    collections: CollectionsWriter
    contexts: ContextsWriter
    files: FilesWriter
    pictures: PicturesWriter
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
