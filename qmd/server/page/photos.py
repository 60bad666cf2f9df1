"""The photos of all collections, at ``/photos``, and one of them, at ``/photo/…``."""

from __future__ import annotations

import os
from dataclasses import asdict, replace
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.engine_text import engine_text
from qmd.errors import ConflictError, InputError
from qmd.files.pictures import SIDES
from qmd.parse.formats import is_photo
from qmd.server.page.files import MadePictures, Picture, file_response
from qmd.server.page.links import SHRUNK, address, note_address
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Shown, Visit, view_routes
from qmd.values.photos import PhotoChange, PhotoFilter

#: Bytes of a picture that is sent as it is where a note shows it.
MOST_IN_PLACE = 400_000

_PAGE = 60  # photos of one page of the grid
_MAX_PAGES = 2_000
_SEPARATORS = str.maketrans("，、;；\n", ",,,,,")


def routes(site: Site) -> list[Route]:
    pictures = _PhotoPictures(site)
    return [
        *view_routes(site, _VIEWS),
        site.route("/thumb/{file:file}", pictures.thumbnail, compress=False),
        site.route("/shown/{file:file}", pictures.in_place, compress=False),
    ]


def _grid(visit: Visit) -> Shown:
    chosen, number = _chosen(visit), visit.page_number(most=_MAX_PAGES)
    listed = visit.kb.photos(chosen, limit=_PAGE, offset=(number - 1) * _PAGE)
    values = {
        "listed": listed,
        "chosen": chosen,
        "is_filtered": chosen != PhotoFilter(),
        "query": _query(chosen),
        "with_filter": lambda key, value: _query(replace(chosen, **{key: value})),
        "number": number,
        "pages": -(-listed.total // _PAGE),
    }
    return Shown("photos.html", values)


def _photo(visit: Visit) -> Shown:
    file, chosen = _photo_file(visit.file), _chosen(visit)
    metadata = visit.kb.metadata_of_photo(file)
    before, after = visit.kb.photos_beside(file, chosen)
    values = {
        "file": file,
        "title": metadata.title or file.rpartition("/")[2],
        "photo": metadata,
        "state": visit.kb.file_version(file),
        "before": before,
        "after": after,
        "query": _query(chosen),
        "typed": visit.form if visit.problem else None,
        "has_picture": metadata.kind != "HEIC",
        "writable": visit.site.may_write_in(file.partition("/")[0]),
    }
    return Shown("photo.html", values)


def _change(visit: Visit) -> str:
    file = _photo_file(visit.file)
    if visit["version"] != visit.kb.file_version(file):
        raise ConflictError(visit.text("photos.changed_meanwhile"))
    metadata = visit.kb.metadata_of_photo(file)
    tags, people = _names(visit["tags"]), _names(visit["people"])
    description, location = visit["description"].strip(), visit["location"].strip()
    # A field that the person has emptied is emptied in the photo.
    change = PhotoChange(
        tags=None if tags == metadata.tags else tags,
        people=None if people == metadata.people else people,
        description=None if description == (metadata.description or "") else description,
        location=None if location == (metadata.location or "") else location,
    )
    if change != PhotoChange():
        written = visit.kb.change_photo(file, change)
        visit.notify(visit.text("photos.saved"), written.problem)
    query = _query(_chosen(visit))
    return note_address(file) + (f"?{query}" if query else "")


_VIEWS = (
    PageView("/photos", _grid),
    PageView("/photo/{file:file}", _photo, _change, "writer", again=_photo),
)


class _PhotoPictures(MadePictures):
    """Photos, and pictures that stand in notes, no larger than a browser shows them."""

    async def thumbnail(self, request: Request) -> Response:
        file = _photo_file(request.path_params["file"])
        side = SIDES[1] if request.query_params.get("size") == "large" else SIDES[0]
        return await self._smaller(request, file, side)

    async def in_place(self, request: Request) -> Response:
        """The file itself, but of a large picture one of at most `SIDES` pixels."""
        site, file = self.site, request.path_params["file"]

        def whole() -> Response | None:
            with site.kb.open_file(file) as opened:
                is_large = os.fstat(opened.fileno()).st_size > MOST_IN_PLACE
            if is_large and file.lower().endswith(SHRUNK):
                return None
            return file_response(request, site.kb, file)

        return await site.run(request, whole) or await self._smaller(
            request, file, SIDES[1], otherwise=f"/file/{address(file)}"
        )

    async def _smaller(
        self, request: Request, file: str, side: int, *, otherwise: str = ""
    ) -> Response:
        def make() -> tuple[Picture | None, str]:
            small, version = self.site.kb.thumbnail(file, side=side)
            return None if small is None else (small, "image/jpeg"), version

        return await self.response(request, file, (side,), make, otherwise=otherwise)


def _photo_file(file: str) -> str:
    """Raises InputError."""
    if not is_photo(file):
        raise InputError(engine_text("No photo: {file}", file=file))
    return file


def _chosen(visit: Visit) -> PhotoFilter:
    return PhotoFilter(*(visit.query(key).strip()[:200] for key in asdict(PhotoFilter())))


def _query(chosen: PhotoFilter) -> str:
    return urlencode({key: value for key, value in asdict(chosen).items() if value})


def _names(text: str) -> tuple[str, ...]:
    """Names separated by commas, or by the signs that Chinese uses, each once."""
    names = (" ".join(name.split()) for name in text.translate(_SEPARATORS).split(","))
    return tuple(dict.fromkeys(name for name in names if name))
