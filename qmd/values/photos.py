"""The metadata of photos, and changes of it."""

from __future__ import annotations

from typing import Annotated, Literal

from qmd.records import dataclass
from qmd.values.facts import Name

PhotoText = Literal["description", "location"]


@dataclass(frozen=True, slots=True)
class PhotoMetadata:
    """
    The metadata of a photo. A text is None, and a list empty, if the photo does not have it.

    Attributes:
        tags: The keywords, without the names of people.
        place: City, state and country, as other programs have written them.
        date: When the photo was taken, ISO 8601, with the offset from UTC if the camera wrote it.
        warnings: Sentences for people.
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
    """
    What is to be written into a photo.

    None leaves a field as it is; ``()`` empties a list, and a blank text a description or location.
    """

    tags: tuple[str, ...] | None = None
    people: tuple[str, ...] | None = None
    description: str | None = None
    location: str | None = None


@dataclass(frozen=True, slots=True)
class PhotoProposal:
    """What a model says that a photo shows; nothing of it is written."""

    description: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PhotoWritten:
    """
    The result of a change of a photo's metadata.

    Attributes:
        changed: Whether the file was written.
        kept: The fields ("description", "location") that had a value and were not overwritten.
        problem: A sentence that says why the index does not have the change yet; None if it has.
    """

    path: str
    kind: Literal["JPG", "PNG", "HEIC"]
    changed: bool
    kept: tuple[str, ...] = ()
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class PhotoFilter:
    """
    Which photos are listed; "" for any.

    Attributes:
        date: A year, a month or a day: ``2024``, ``2024-07``, ``2024-07-14``.
    """

    person: str = ""
    tag: str = ""
    place: str = ""
    date: str = ""


@dataclass(frozen=True, slots=True)
class ListedPhoto:
    """
    A photo of a collection.

    Attributes:
        file: ``collection/path``.
        date: As the camera wrote it; "" without one.
    """

    file: str
    title: str
    docid: str
    date: str = ""


@dataclass(frozen=True, slots=True)
class PhotoChoices:
    """What the photos can be filtered by: values with the number of their photos, most first."""

    people: tuple[tuple[str, int], ...] = ()
    tags: tuple[tuple[str, int], ...] = ()
    places: tuple[tuple[str, int], ...] = ()
    years: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class PhotoList:
    """
    Some of the photos that a filter lets through, the latest first.

    Attributes:
        total: How many there are in all.
        choices: Of all photos, whatever the filter.
    """

    photos: tuple[ListedPhoto, ...]
    total: int
    choices: PhotoChoices
