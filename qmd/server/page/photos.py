"""The photos of all collections, at ``/photos``, and one of them, at ``/photo/…``."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import asdict, replace
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from qmd.engine_text import engine_text
from qmd.errors import InputError, QmdError
from qmd.files.photos.thumbnail import SIDES
from qmd.parse.formats import is_photo
from qmd.server.page.browser import FormNotice
from qmd.server.page.files import SANDBOX
from qmd.server.page.forms import WRITE_S
from qmd.server.page.links import address
from qmd.server.page.site import Site
from qmd.values.photos import PhotoChange, PhotoFilter, PhotoMetadata

_PAGE = 60  # photos of one page of the grid
_MAX_PAGES = 2_000
_MAX_KEPT_BYTES = 32_000_000  # of small pictures in memory
_SEPARATORS = str.maketrans("，、;；\n", ",,,,,")

#: Stands for a photo that no browser shows, such as HEIC.
_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3" width="320" height="240">'
    b'<rect width="4" height="3" fill="#8884"/><circle cx="1.3" cy="1" r=".3" fill="#888"/>'
    b'<path d="M.5 2.6 1.7 1.4l.6.6.5-.5.8 1.1z" fill="#888"/></svg>'
)


def routes(site: Site) -> list[Route]:
    view = _Photos(site)
    return [
        site.route("/photos", view.grid),
        site.route("/photo/{file:file}", view.one, ("GET", "POST")),
        site.route("/thumb/{file:file}", view.thumb, compress=False),
    ]


class _Photos:
    """Answers the requests of the view."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self._kept: OrderedDict[tuple[str, int, str], bytes] = OrderedDict()
        self._kept_bytes = 0

    async def grid(self, request: Request) -> Response:
        site, chosen = self._site, _chosen(request)
        number = _page_number(request)
        listed = await site.run(
            request,
            lambda: site.kb.photos(chosen, limit=_PAGE, offset=(number - 1) * _PAGE),
        )
        return site.page(
            request,
            "photos.html",
            listed=listed,
            chosen=chosen,
            is_filtered=chosen != PhotoFilter(),
            query=_query(chosen),
            with_filter=lambda key, value: _query(replace(chosen, **{key: value})),
            number=number,
            pages=-(-listed.total // _PAGE),
        )

    async def one(self, request: Request) -> Response:
        problem = ""
        if request.method == "POST":
            try:
                return await self._change(request)
            except QmdError as error:
                problem = self._site.error_text(request, error)
        return await self._photo(request, problem)

    async def _photo(self, request: Request, problem: str) -> Response:
        site, file, chosen = self._site, _photo_file(request), _chosen(request)
        metadata = await site.run(request, lambda: site.kb.metadata_of_photo(file))
        version = await site.run(request, lambda: site.kb.file_version(file))
        before, behind = await site.run(request, lambda: site.kb.photos_beside(file, chosen))
        collection = file.partition("/")[0]
        writable = await site.run(request, lambda: site.may_write_in(collection))
        return site.page(
            request,
            "photo.html",
            http_status=409 if problem else 200,
            file=file,
            title=metadata.title or file.rpartition("/")[2],
            photo=metadata,
            state=version,
            before=before,
            behind=behind,
            query=_query(chosen),
            problem=problem,
            typed=site.form(request) if problem else None,
            has_picture=metadata.kind != "HEIC",
            writable=writable,
        )

    async def _change(self, request: Request) -> Response:
        """
        Raises:
            QmdError: The photo was changed meanwhile, or cannot be written.
        """
        site, file, form = self._site, _photo_file(request), self._site.form(request)
        if site.read_only:
            raise InputError(site.text(request, "photos.read_only"))
        version = await site.run(request, lambda: site.kb.file_version(file))
        if form.get("version") != version:
            raise InputError(site.text(request, "photos.changed_meanwhile"))
        metadata = await site.run(request, lambda: site.kb.metadata_of_photo(file))
        change = _change_of(
            metadata,
            tags=_names(form.get("tags")),
            people=_names(form.get("people")),
            description=form.get("description").strip(),
            location=form.get("location").strip(),
        )
        if change != PhotoChange():
            written = await site.run(
                request, lambda: site.kb.change_photo(file, change), timeout_s=WRITE_S
            )
            words = site.translated(request, written.problem or "") or site.text(
                request, "photos.saved"
            )
            site.notify(request, FormNotice(words, kind="warn" if written.problem else "ok"))
        query = _query(_chosen(request))
        return site.redirect(f"/photo/{address(file)}{f'?{query}' if query else ''}")

    async def thumb(self, request: Request) -> Response:
        """A small picture; kept in memory and by the browser until the file changes."""
        site, file = self._site, _photo_file(request)
        side = SIDES[1] if request.query_params.get("size") == "large" else SIDES[0]
        version = await site.run(request, lambda: site.kb.file_version(file))
        headers = {**SANDBOX, "etag": f'"{side}-{version}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        picture = self._kept.get((file, side, version))
        if picture is None:
            small, version = await site.run(
                request, lambda: site.kb.thumbnail(file, side=side), paints=True
            )
            picture = small or b""
            self._keep((file, side, version), picture)
        if not picture:
            return Response(_NO_PICTURE, media_type="image/svg+xml", headers=headers)
        return Response(picture, media_type="image/jpeg", headers=headers)

    def _keep(self, key: tuple[str, int, str], picture: bytes) -> None:
        self._kept_bytes -= len(self._kept.pop(key, b""))
        self._kept[key] = picture
        self._kept_bytes += len(picture) + 200
        while self._kept_bytes > _MAX_KEPT_BYTES and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._kept_bytes -= len(oldest) + 200


def _photo_file(request: Request) -> str:
    file: str = request.path_params["file"]
    if not is_photo(file):
        raise InputError(engine_text("No photo: {file}", file=file))
    return file


def _chosen(request: Request) -> PhotoFilter:
    query = request.query_params
    return PhotoFilter(*(query.get(key, "").strip()[:200] for key in asdict(PhotoFilter())))


def _query(chosen: PhotoFilter) -> str:
    return urlencode({key: value for key, value in asdict(chosen).items() if value})


def _page_number(request: Request) -> int:
    number = request.query_params.get("page", "1")
    return max(1, min(_MAX_PAGES, int(number[:9]))) if number.isascii() and number.isdigit() else 1


def _names(text: str) -> tuple[str, ...]:
    """Names separated by commas, or by the signs that Chinese uses, each once."""
    names = (" ".join(name.split()) for name in text.translate(_SEPARATORS).split(","))
    return tuple(dict.fromkeys(name for name in names if name))


def _change_of(
    metadata: PhotoMetadata,
    *,
    tags: tuple[str, ...],
    people: tuple[str, ...],
    description: str,
    location: str,
) -> PhotoChange:
    """What differs from the photo; a field that the person has emptied is emptied in the photo."""
    return PhotoChange(
        tags=None if tags == metadata.tags else tags,
        people=None if people == metadata.people else people,
        description=None if description == (metadata.description or "") else description,
        location=None if location == (metadata.location or "") else location,
    )
