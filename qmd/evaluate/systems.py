"""The searches that can be measured: the three, and `query` without one of its parts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from qmd.evaluate.metrics import DEPTH
from qmd.values import SearchCommand, SearchRequest
from qmd.values.search import EvidencePart

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

Need = Literal["vectors", "expander", "reranker", "no reranker"]


class System(NamedTuple):
    """
    A search that can be measured.

    Attributes:
        request: Its options; query and filters are those of the question.
        needs: Without these the search cannot answer, or answers as another one does.
    """

    command: SearchCommand
    request: SearchRequest
    needs: tuple[Need, ...] = ()


#: How the name of a system begins that leaves out a part of `query`.
WITHOUT = "query --without "

_QUERY = SearchRequest("", limit=DEPTH)

SYSTEMS: Mapping[str, System] = {
    "search": System("search", _QUERY),
    # Without the default minimum score: the order of the hits is measured, not where it is cut.
    "vsearch": System("vsearch", replace(_QUERY, min_score=0.0)),
    "query": System("query", _QUERY),
    **{
        # With a reranker the evidence does not order the hits.
        WITHOUT + part: System(
            "query", replace(_QUERY, without=(part,)), ("vectors", "no reranker")
        )
        for part in get_args(EvidencePart)
    },
    WITHOUT + "model": System("query", replace(_QUERY, without=("model",)), ("reranker",)),
    "query --no-rerank": System("query", replace(_QUERY, rerank=False)),
    "query --no-expand": System("query", replace(_QUERY, expand=False), ("expander",)),
    "query --no-rerank --no-expand": System(
        "query", replace(_QUERY, rerank=False, expand=False), ("expander",)
    ),
}
"""The systems by name, in the order of the table."""


def systems_for(kb: KnowledgeBase) -> tuple[str, ...]:
    """The systems whose answers may differ with the vectors and models of a knowledge base."""
    available: dict[Need, bool] = {
        "vectors": kb.status().has_vector_index,
        "expander": kb.has_expander,
        "reranker": kb.has_reranker,
        "no reranker": not kb.has_reranker,
    }
    return tuple(
        name for name, system in SYSTEMS.items() if all(available[need] for need in system.needs)
    )
