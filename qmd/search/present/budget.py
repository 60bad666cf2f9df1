"""Fits the hits of a reply into a budget: shortens snippets, then leaves out the last hits."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from qmd.values import Hit, SearchReply
from qmd.values.search import shown_relevance
from qmd.values.tokens import count_fitting, estimate_tokens
from qmd.values.wire import to_wire

#: The tokens of what servers send beside the hits: the heading, freshness and a notice.
FRAME_TOKENS = 120
_CROPPED_CHARACTERS = 150
#: The least characters of a snippet that show something.
_LEAST_CHARACTERS = 20


def fit_hits(
    reply: SearchReply, max_tokens: int, size: Callable[[Hit], float], *, frame_tokens: float = 0
) -> SearchReply:
    """
    Fit a reply into a budget, best first.

    Snippets are cut to their best line, from the last hit upwards. If that does not save enough,
    the last hits are left out, and ``left_out`` of the reply counts them. The best line of the
    first hit is cut to what fits.

    Args:
        size: The estimated tokens of a hit.
        frame_tokens: The estimated tokens of what stands around the hits.
    """
    sentences = f"{reply.notice or ''}{reply.degraded or ''}"
    budget = max_tokens - frame_tokens - estimate_tokens(sentences)
    hits = shorten_snippets(reply.hits, sum(map(size, reply.hits)) - budget, estimate_tokens)
    if hits:
        hits = [_cropped(hits[0], size(hits[0]) - budget), *hits[1:]]
    count = count_fitting(map(size, hits), budget)
    return replace(reply, hits=tuple(hits[:count]), left_out=len(hits) - count)


def hit_tokens(hit: Hit) -> float:
    """The estimated tokens of a hit: its JSON object, and its line in the summary."""
    fields = json.dumps(to_wire(hit), ensure_ascii=False, separators=(",", ":"))
    summary = f"{hit.docid} {shown_relevance(hit.relevance)} {hit.file} - {hit.title}\n"
    return estimate_tokens(fields) + estimate_tokens(summary)


def shorten_snippets(
    hits: Sequence[Hit], excess: float, size: Callable[[str], float]
) -> Sequence[Hit]:
    """
    Cut snippets to their best line, from the last hit upwards, until enough is saved.

    Args:
        excess: How much to save, in the unit of ``size``.
        size: The size of a snippet.
    """
    if excess <= 0:
        return hits
    shortened: list[Hit] = []
    for hit in reversed(hits):
        keep = excess <= 0 or hit.explain is not None
        snippet = hit.snippet if keep else _best_line(hit)
        excess -= size(hit.snippet) - size(snippet)
        shortened.append(replace(hit, snippet=snippet))
    return shortened[::-1]


def _cropped(hit: Hit, excess: float) -> Hit:
    """Cut ``excess`` tokens off the end of a snippet, if something worth showing remains."""
    if excess <= 0 or hit.explain is not None:
        return hit
    share = 1 - (excess + 1) / max(1.0, estimate_tokens(hit.snippet))
    length = int(share * len(hit.snippet))
    if length < _LEAST_CHARACTERS:
        return hit
    return replace(hit, snippet=hit.snippet[:length].rstrip("…") + "…")


def _best_line(hit: Hit) -> str:
    """
    The best line of a snippet, shortened to `_CROPPED_CHARACTERS` if it was cropped before.

    A cropped line ends in an ellipsis and has its match in the first third, which stays.
    """
    start = f"{hit.line}: "
    lines = hit.snippet.split("\n")
    line = next((line for line in lines if line.startswith(start)), hit.snippet)
    return line[:_CROPPED_CHARACTERS].rstrip("…") + "…" if line.endswith("…") else line
