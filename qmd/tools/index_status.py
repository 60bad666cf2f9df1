"""The tool status, which reports the contents of the index and what to do next."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import Field

from qmd.errors import CollectionNotFoundError
from qmd.kb import KnowledgeBase
from qmd.operations import texts
from qmd.operations.problems import closest
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.tools.arguments import Arguments, OptionalText
from qmd.tools.schemas import output_schema
from qmd.values import Collection, CollectionStatus, Freshness, IndexStatus
from qmd.values.wire import to_wire


class StatusArguments(Arguments):
    collection: OptionalText = Field(None, description="List only this one")


def status(kb: KnowledgeBase, arguments: StatusArguments, dialect: Dialect) -> Reply:
    status = kb.status()
    if arguments.collection is not None:
        status = replace(status, collections=_named(arguments.collection, status.collections))
    index = IndexStatus(status, tuple(map(_collection_status, status.collections)))
    structured: dict[str, Any] = to_wire(index, dialect.field)
    fresh = kb.freshness()
    structured["freshness"] = to_wire(fresh, dialect.field)
    sentences = (
        texts.status_text(status),
        texts.status_replica(fresh),
        texts.status_excluded(status),
        texts.status_advice(status),
    )
    return Reply(tuple(TextBlock(text) for text in sentences if text is not None), structured)


def _named(name: str, collections: tuple[Collection, ...]) -> tuple[Collection, ...]:
    """The collection of this name, alone. Raises CollectionNotFoundError."""
    for collection in collections:
        if collection.name == name:
            return (collection,)
    similar_name = closest(name, [collection.name for collection in collections])
    raise CollectionNotFoundError(name, [similar_name] if similar_name else ())


def _collection_status(collection: Collection) -> CollectionStatus:
    """The status of a collection; one that has never changed was updated at its last scan."""
    last_updated = collection.last_updated or collection.last_indexed
    return CollectionStatus(replace(collection, last_updated=last_updated))


def status_schema(dialect: Dialect) -> dict[str, Any]:
    return output_schema(IndexStatus, dialect, freshness=Freshness)
