"""Lists the photos of all collections by who and what is on them, and where and when."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from qmd.parse.formats import is_photo
from qmd.store.sql.documents import Order
from qmd.values import DocumentInfo, Filters
from qmd.values.conditions import parse_filter
from qmd.values.photos import ListedPhoto, PhotoChoices, PhotoFilter, PhotoList

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

_KINDS = ("JPG", "PNG", "HEIC")
_LATEST_FIRST = Order("date", descending=True)
#: The photos whose values are counted, and among which the one before and behind is looked for.
MAX_COUNTED = 20_000
_MAX_CHOICES = 40  # values of each kind


def list_photos(reader: Reader, chosen: PhotoFilter, *, limit: int, offset: int) -> PhotoList:
    """
    Raises:
        InputError: The date is none.
    """
    selection = _selection(reader, chosen)
    infos = reader.documents.below(
        None, selection=selection, order=_LATEST_FIRST, limit=limit, offset=offset
    )
    photos = _listed(reader, [info for info in infos if is_photo(info.path)])
    return PhotoList(photos, reader.documents.count_selected(selection), _choices(reader))


def has_photos(reader: Reader) -> bool:
    selection = _selection(reader, PhotoFilter())
    return bool(reader.documents.below(None, selection=selection, limit=1))


def photos_beside(reader: Reader, file: str, chosen: PhotoFilter) -> tuple[str, str]:
    """The photos before and behind one in the list; "" where there is none."""
    infos = reader.documents.below(
        None, selection=_selection(reader, chosen), order=_LATEST_FIRST, limit=MAX_COUNTED
    )
    files = ["", *(info.file for info in infos if is_photo(info.path)), ""]
    if file not in files:
        return "", ""
    at = files.index(file)
    return files[at - 1], files[at + 1]


def _selection(reader: Reader, chosen: PhotoFilter) -> Selection:
    conditions = [
        f"{key}:{value}"
        for key, value in (
            ("people", chosen.person),
            ("tags", chosen.tag),
            ("location", chosen.place),
            ("date", chosen.date),
        )
        if value
    ]
    kinds = [parse_filter(f"kind:{kind}")[0] for kind in _KINDS]
    return reader.select(Filters(properties=tuple(conditions)), either=[kinds])


def _listed(reader: Reader, infos: Sequence[DocumentInfo]) -> tuple[ListedPhoto, ...]:
    dates = reader.properties.written("date", [info.id for info in infos])
    return tuple(
        ListedPhoto(info.file, info.title, info.docid, next(iter(dates.get(info.id, ())), ""))
        for info in infos
    )


def _choices(reader: Reader) -> PhotoChoices:
    infos = reader.documents.below(
        None, selection=_selection(reader, PhotoFilter()), limit=MAX_COUNTED
    )
    ids = [info.id for info in infos if is_photo(info.path)]

    def values(key: str) -> Iterable[str]:
        return (value for each in reader.properties.written(key, ids).values() for value in each)

    years = Counter(value[:4] for value in values("date"))
    return PhotoChoices(
        people=_most(Counter(values("people"))),
        tags=_most(Counter(values("tags"))),
        places=_most(Counter(values("location"))),
        years=tuple(sorted(years.items(), reverse=True)[:_MAX_CHOICES]),
    )


def _most(counts: Counter[str]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted(counts.items(), key=lambda each: (-each[1], each[0]))[:_MAX_CHOICES])
