"""status: what the index holds, and what to do next."""

from __future__ import annotations

from typing import Any

from qmd.kb import KnowledgeBase
from qmd.tools import texts
from qmd.tools.arguments import StatusArguments
from qmd.tools.definition import Reply, TextBlock, object_schema
from qmd.tools.schemas import output_schema
from qmd.tools.texts import Dialect
from qmd.values import Freshness
from qmd.values.wire import to_wire


def status(kb: KnowledgeBase, arguments: StatusArguments, dialect: Dialect) -> Reply:
    found = kb.status()
    advice = texts.status_advice(found)
    blocks = [texts.status_text(found), *([advice] if advice is not None else [])]
    structured = {
        "total_documents": found.total_documents,
        "needs_embedding": found.needs_embedding,
        "has_vector_index": found.has_vector_index,
        "collections": [
            {
                "name": each.name,
                "path": each.path,
                "pattern": each.pattern,
                "documents": each.documents,
                dialect.field("last_updated"): each.last_updated or each.last_indexed,
            }
            for each in found.collections
        ],
        "freshness": freshness_fields(kb.freshness(), dialect),
    }
    return Reply(
        tuple(TextBlock(each) for each in blocks),
        {dialect.field(name): value for name, value in structured.items()},
    )


def freshness_fields(freshness: Freshness, dialect: Dialect) -> dict[str, Any]:
    """How far the index is behind the disk, for programs; part of every search as well."""
    fields: dict[str, Any] = to_wire(freshness, dialect.field)
    return fields


def freshness_schema(dialect: Dialect) -> dict[str, Any]:
    return output_schema(Freshness, dialect)


def status_schema(dialect: Dialect) -> dict[str, Any]:
    collection = {
        "name": {"type": "string"},
        "path": {"type": "string"},
        "pattern": {"type": "string"},
        "documents": {"type": "integer"},
        dialect.field("last_updated"): {"type": ["string", "null"]},
    }
    return object_schema(
        {
            dialect.field("total_documents"): {"type": "integer"},
            dialect.field("needs_embedding"): {"type": "integer"},
            dialect.field("has_vector_index"): {"type": "boolean"},
            "collections": {"type": "array", "items": object_schema(collection)},
            "freshness": freshness_schema(dialect),
        }
    )
