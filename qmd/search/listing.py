"""Lists documents without a query: filtered, sorted and grouped by their properties."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from qmd.search.ordering import existing_key, group_names, in_groups, parse_order
from qmd.store.sql.documents import Order
from qmd.values import DocumentInfo

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import Filters


def list_documents(
    reader: Reader,
    collection: str | None,
    folder: str,
    *,
    filters: Filters,
    sort: str | None,
    group_by: str | None,
    limit: int | None,
    offset: int,
) -> list[DocumentInfo]:
    """As `qmd.kb.documents.DocumentMethods.documents`, for the documents below a folder."""
    key = None if group_by is None else existing_key(reader, group_by)
    order = None if sort is None else parse_order(reader, sort)
    if order is None and key is not None:
        order = Order("property", key)
    infos = reader.documents.below(
        collection,
        folder,
        # Who names a collection asks for all that it has.
        selection=reader.select(filters, one_per_file=collection is None),
        order=order,
        limit=limit,
        offset=offset,
    )
    if key is None:
        return infos
    by_id = {info.id: info for info in infos}
    names = group_names(reader, key, list(by_id))
    return [
        replace(by_id[document_id], group=names.get(document_id))
        for document_id in in_groups(list(by_id), names)
    ]
