"""Make candidates of the documents that `vsearch` has scored, with the parts of their blends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmd.search.candidates import Candidate
from qmd.search.fuse import Nearest
from qmd.search.meaning.nearness import relative_nearness
from qmd.values import ModelSpec


def semantic_candidates(
    nearest: Sequence[Nearest], spec: ModelSpec, *, with_explanation: bool
) -> list[Candidate]:
    """The candidates of `vsearch`, in the order of ``nearest``."""
    return [
        Candidate(
            entry.hit.document_id,
            entry.score,
            "semantic",
            # Near to the question: an expander makes texts that are near to some document anyway.
            nearness=relative_nearness(entry.original.nearness, spec),
            chunk_id=entry.hit.chunk_id,
            explanation=_explain(entry, spec) if with_explanation else None,
        )
        for entry in nearest
    ]


def _explain(nearest: Nearest, spec: ModelSpec) -> dict[str, Any]:
    """
    The parts of a blend by meaning, as `--explain` shows them.

    nearness = cosine - shared; own = (nearness - low) / (high - low), within 0 and 1;
    blend = own, or (2 * own + expansion) / 3 if an expansion raised it.
    """
    original = nearest.original
    explained: dict[str, Any] = {
        "model": spec.name,
        "cosine": original.cosine,
        "shared": original.cosine - original.nearness,
        "nearness": original.nearness,
        "low": spec.cosine_low,
        "high": spec.cosine_high,
        "own": nearest.original_score,
    }
    if nearest.expansion is not None:
        text, score = nearest.expansion
        explained["expansion"] = {"query": text, "score": score}
    return explained
