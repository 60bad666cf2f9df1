"""How far the index is behind the disk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.values.facts import Describe, NotSent, Range


@dataclass(frozen=True, slots=True)
class Freshness:
    """How far the index is behind the disk."""

    last_sync: Annotated[str | None, Describe("When it was last known to agree, ISO 8601")]
    files_pending: Annotated[int, Range(0), Describe("Changed files that are not indexed yet")]
    embeddings_pending: Annotated[int, Range(0), Describe("Documents without vectors")]
    indexing: Annotated[bool, Describe("Whether files are being indexed just now")]
    #: Whether it is this process that keeps the index.
    leader: Annotated[bool, NotSent()]
    #: "off" while no process keeps the index, "polling" where a collection has no native events.
    watch: Annotated[Literal["native", "polling", "off"], NotSent()] = "off"
    #: Sentences: what is wrong or missing.
    notices: Annotated[tuple[str, ...], NotSent()] = ()
    #: Whether the process that keeps the index also makes the missing vectors.
    embedding: Annotated[bool, NotSent()] = False
