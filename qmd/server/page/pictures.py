"""Pictures that the page has made: kept in memory, and by browsers until the file changes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from starlette.requests import Request
from starlette.responses import Response

from qmd.server.page.files import SANDBOX
from qmd.server.page.site import Site

Picture = tuple[bytes, str]
"""A picture and its media type."""

#: Stands for what cannot be shown, such as a photo in HEIC.
_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3" width="320" height="240">'
    b'<rect width="4" height="3" fill="#8884"/><circle cx="1.3" cy="1" r=".3" fill="#888"/>'
    b'<path d="M.5 2.6 1.7 1.4l.6.6.5-.5.8 1.1z" fill="#888"/></svg>'
)
_ENTRY_BYTES = 200  # what a key takes, about


class KeptPictures:
    """
    Pictures of files, the one that was last asked for at the end; those at the beginning go first.

    Args:
        most_bytes: What they may take.
    """

    def __init__(self, most_bytes: int = 32_000_000) -> None:
        self._most_bytes = most_bytes
        self._bytes = 0
        self._kept: OrderedDict[Hashable, Picture | None] = OrderedDict()

    def __contains__(self, key: Hashable) -> bool:
        return key in self._kept

    def __getitem__(self, key: Hashable) -> Picture | None:
        """None for what cannot be shown. KeyError for what is not kept."""
        self._kept.move_to_end(key)
        return self._kept[key]

    def keep(self, key: Hashable, picture: Picture | None) -> None:
        if key in self._kept:
            self._bytes -= _size(self._kept.pop(key))
        self._kept[key] = picture
        self._bytes += _size(picture)
        while self._bytes > self._most_bytes and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _size(oldest)


async def picture_response(
    site: Site,
    request: Request,
    kept: KeptPictures,
    key: tuple[str | int, ...],
    make: Callable[[], tuple[Picture | None, str]],
    *,
    otherwise: str = "",
) -> Response:
    """
    A picture of a file: a kept one, or one that is made now.

    Args:
        key: ``collection/path``, and what else says which picture of it this is.
        make: The picture, and `KnowledgeBase.file_version` of the file that it shows.
        otherwise: The address to send the browser to if there is no picture; "" for a sign that
            says so.
    """
    version = await site.run(request, lambda: site.kb.file_version(str(key[0])))
    what = "-".join(map(str, key[1:]))
    headers = {**SANDBOX, "etag": f'"{what}-{version}"'}
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    picture: Picture | None
    identity = (*key, version)
    if identity in kept:
        picture = kept[identity]
    else:
        picture, version = await site.run(request, make, paints=True)
        headers["etag"] = f'"{what}-{version}"'
        kept.keep((*key, version), picture)
    if picture is None and otherwise:
        return site.redirect(otherwise)
    if picture is None:
        return Response(_NO_PICTURE, media_type="image/svg+xml", headers=headers)
    return Response(picture[0], media_type=picture[1], headers=headers)


def _size(picture: Picture | None) -> int:
    return _ENTRY_BYTES + (len(picture[0]) if picture else 0)
