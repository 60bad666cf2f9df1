"""How far the index is behind the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Freshness:
    """
    ``last_sync`` is when the index was last known to be as the disk (ISO 8601 UTC).

    ``indexing`` and ``leader`` (is it this process that keeps the index?) describe this
    moment. ``watch`` is "off" while no process keeps the index, and "polling" where any
    collection has no native events; ``embedding`` tells whether the process that keeps it
    also makes the missing vectors. ``notices`` are sentences: what is wrong or missing.
    """

    last_sync: str | None
    files_pending: int
    embeddings_pending: int
    indexing: bool
    leader: bool
    watch: Literal["native", "polling", "off"] = "off"
    notices: tuple[str, ...] = ()
    embedding: bool = False
