"""Sorting and grouping documents by what their properties say, instead of by rank."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING

from qmd.errors import NotFoundError, engine_text
from qmd.store.sql.documents import Order
from qmd.values.conditions import parse_filter
from qmd.values.properties import MAX_VALUE, fold_key
from qmd.values.search import LEAST_DEPTH

if TYPE_CHECKING:
    from qmd.search.candidates import Candidate
    from qmd.store import Reader
    from qmd.values import SearchRequest


def parse_order(reader: Reader, sort: str) -> Order:
    """
    Read an order: ``date``, ``title`` or a property, with ``-`` in front for descending order.

    Raises:
        NotFoundError: No document has the property.
    """
    name = sort.strip()
    descending = name.startswith(("-", "－"))
    name = name.lstrip("-－+ ")
    if name == "date":
        return Order("date", descending=descending)
    if name == "title":
        return Order("title", descending=descending)
    return Order("property", existing_key(reader, name), descending)


def existing_key(reader: Reader, name: str) -> str:
    """The key that a name means. Raises NotFoundError: No document has such a property."""
    key = fold_key(name)
    if key and reader.properties.existing_keys([key]):
        return key
    keys = [summary.key for summary in reader.properties.summaries()]
    near = get_close_matches(key, keys, n=3)
    hint = (
        engine_text("Did you mean: {names}", names=", ".join(near))
        if near
        else "'qmd properties' lists what there is."
    )
    raise NotFoundError(
        engine_text("No document has the property {name}.", name=f"{name!r}"), hint=hint
    )


def missing_property(reader: Reader, filters: Sequence[str]) -> str | None:
    """Says which filter is by a property that no document has; None if none is."""
    for text in filters:
        condition, is_negated = parse_filter(text)
        try:
            if not is_negated:
                existing_key(reader, condition.key)
        except NotFoundError as error:
            return f"{error} {error.hint}"
    return None


def to_judge(reader: Reader, request: SearchRequest, hits: Sequence[Candidate]) -> list[Candidate]:
    """
    The hits that decide what a sorted reply shows, best first: the first of the order, up to the
    limit, and the best, with which all scores are compared.

    With a minimum of score or relevance, any hit may be dropped, so all of them decide.

    Raises:
        NotFoundError: As `parse_order`.
    """
    order = parse_order(reader, request.sort or "")
    if request.limit is None or request.min_score or request.min_relevance:
        return list(hits)
    first = reader.documents.ordered_ids([hit.document_id for hit in hits], order)[: request.limit]
    decisive = {*first, *(hit.document_id for hit in hits[:LEAST_DEPTH])}
    return [hit for hit in hits if hit.document_id in decisive]


def arranged(
    reader: Reader, request: SearchRequest, judged: Sequence[Candidate]
) -> tuple[list[Candidate], dict[int, str]]:
    """
    Sort and group the hits of a reply.

    Args:
        judged: Best first.

    Returns:
        At most ``request.limit`` hits, and the groups of documents by id.

    Raises:
        NotFoundError: As `parse_order`; or no document has the property to group by.
    """
    by_id = {each.document_id: each for each in judged}
    ids = list(by_id)
    if request.sort is not None:
        ids = reader.documents.ordered_ids(ids, parse_order(reader, request.sort))
    ids = ids[: request.limit]
    names: dict[int, str] = {}
    if request.group_by is not None:
        names = group_names(reader, existing_key(reader, request.group_by), ids)
        ids = in_groups(ids, names)
    return [by_id[document_id] for document_id in ids], names


def group_names(reader: Reader, key: str, document_ids: Sequence[int]) -> dict[int, str]:
    """
    Document id → the value that it is grouped by; no entry without a value.

    A list is one value: its elements with commas between them.
    """
    values = reader.properties.written(key, document_ids)
    names = {document_id: ", ".join(filter(None, each)) for document_id, each in values.items()}
    return {document_id: name[:MAX_VALUE] for document_id, name in names.items() if name}


def in_groups(document_ids: Sequence[int], names: dict[int, str]) -> list[int]:
    """
    Put those of one group together.

    Groups are in the order of their first documents; those that are in no group come last. Letter
    case does not tell groups apart.
    """
    groups: dict[str, list[int]] = {}
    for document_id in document_ids:
        groups.setdefault(names.get(document_id, "").casefold(), []).append(document_id)
    ungrouped = groups.pop("", [])
    return [each for group in groups.values() for each in group] + ungrouped
