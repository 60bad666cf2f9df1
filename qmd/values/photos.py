"""What is written in a photo about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd.values.facts import Name


@dataclass(frozen=True, slots=True)
class PhotoMetadata:
    """
    Texts are None, and lists empty, where the photo says nothing.

    ``tags`` are the keywords without the people. ``place`` is what other programs note of
    city, state and country. ``date`` is when it was taken, in ISO 8601, with the offset from
    UTC where the camera noted one. ``warnings`` are sentences for people.
    """

    kind: Annotated[Literal["JPG", "PNG", "HEIC"], Name("format")]
    title: str | None = None
    tags: tuple[str, ...] = ()
    people: tuple[str, ...] = ()
    description: str | None = None
    location: str | None = None
    place: tuple[str, ...] = ()
    date: str | None = None
    camera: str | None = None
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PhotoChange:
    """What is to be written into a photo; None leaves a field as it is."""

    tags: tuple[str, ...] | None = None
    people: tuple[str, ...] | None = None
    description: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class PhotoWritten:
    """
    What became of it: ``kept`` names the fields ("description", "location") that were there
    already and were not to be overwritten. ``problem``: why the index does not hold it yet.
    """

    path: str
    kind: Literal["JPG", "PNG", "HEIC"]
    changed: bool
    kept: tuple[str, ...] = ()
    problem: str | None = None
