"""
Serves the files of collections as bytes or text, and pictures that the page has made.

A file is at ``/file/{collection/path}`` as bytes, at ``/raw/{collection/path}`` as text. Files come
from strangers. So a browser shows only images, sound and video of listed types, offers all else for
download, and gives none of them the rights of the page (``sandbox``).
"""

from __future__ import annotations

import os
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from email.utils import formatdate
from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from qmd.errors import DocumentNotFoundError
from qmd.kb import KnowledgeBase
from qmd.server.page.site import Site
from qmd.server.page.views import PageView, Visit

#: The types that a browser shows; a file of another suffix is downloaded.
SHOWN_TYPES = {
    ".avif": "image/avif", ".bmp": "image/bmp", ".gif": "image/gif", ".heic": "image/heic",
    ".ico": "image/x-icon", ".jpeg": "image/jpeg", ".jpg": "image/jpeg", ".png": "image/png",
    ".svg": "image/svg+xml", ".webp": "image/webp", ".flac": "audio/flac", ".m4a": "audio/mp4",
    ".mp3": "audio/mpeg", ".ogg": "audio/ogg", ".opus": "audio/ogg", ".wav": "audio/wav",
    ".m4v": "video/mp4", ".mov": "video/quicktime", ".mp4": "video/mp4", ".ogv": "video/ogg",
    ".webm": "video/webm",
}  # fmt: skip
#: Downloaded: the viewers of browsers do not work in a sandbox.
_DOWNLOADED_TYPES = {".pdf": "application/pdf"}
_UNKNOWN_TYPE = "application/octet-stream"

MAX_FILE_BYTES = 4_000_000_000
_CHUNK_BYTES = 256 * 1024

SANDBOX = {
    "content-security-policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "cache-control": "private, no-cache",
}
_RANGE = re.compile(r"bytes=([0-9]{0,15})-([0-9]{0,15})")


def _file(visit: Visit) -> Response:
    return file_response(visit.request, visit.kb, visit.file)


def _raw(visit: Visit) -> Response:
    document = visit.kb.get(visit.file)
    if document.document.file != visit.file:
        raise DocumentNotFoundError(visit.file, (document.document.file,))
    content = document.text.encode("utf-8", "replace")
    return Response(content, media_type="text/plain; charset=utf-8", headers=SANDBOX)


VIEWS = (PageView("/file/{file:file}", _file, compress=False), PageView("/raw/{file:file}", _raw))


def file_response(request: Request, kb: KnowledgeBase, name: str) -> Response:
    """
    The bytes of the file ``name``, or the one range of them that is asked for.

    It is open only while bytes are read: a response whose client has left is never sent.

    Raises:
        DocumentNotFoundError, CollectionNotFoundError: As `KnowledgeBase.open_file`.
    """
    with kb.open_file(name) as opened:
        status = os.fstat(opened.fileno())
    if status.st_size > MAX_FILE_BYTES:
        raise DocumentNotFoundError(name)
    headers = {
        **SANDBOX,
        "accept-ranges": "bytes",
        "etag": f'"{status.st_mtime_ns:x}-{status.st_size:x}"',
        "last-modified": formatdate(status.st_mtime, usegmt=True),
        "content-disposition": disposition(name),
    }
    if request.headers.get("if-none-match") == headers["etag"]:
        return Response(status_code=304, headers=headers)
    size = status.st_size
    start, end, code = 0, size, 200
    match = _RANGE.fullmatch(request.headers.get("range", ""))
    if match is not None and any(match.groups()):
        start, end = _range(match, size)
        if start >= end:
            return Response(
                status_code=416, headers={**headers, "content-range": f"bytes */{size}"}
            )
        code = 206
        headers["content-range"] = f"bytes {start}-{end - 1}/{size}"
    headers["content-length"] = str(end - start)
    return StreamingResponse(
        _pieces(kb, name, start, end), code, headers=headers, media_type=media_type(name)
    )


def media_type(name: str) -> str:
    suffix = PurePosixPath(name).suffix.lower()
    return SHOWN_TYPES.get(suffix) or _DOWNLOADED_TYPES.get(suffix) or _UNKNOWN_TYPE


def disposition(name: str) -> str:
    """Whether a browser shows a file or downloads it, and under which name (RFC 6266)."""
    path = PurePosixPath(name)
    kind = "inline" if path.suffix.lower() in SHOWN_TYPES else "attachment"
    return f"{kind}; filename*=UTF-8''{quote(path.name, safe='')}"


def _range(match: re.Match[str], size: int) -> tuple[int, int]:
    """The first byte of a range and the one after it."""
    if not match[1]:
        return max(0, size - int(match[2])), size
    return int(match[1]), min(size, int(match[2]) + 1) if match[2] else size


def _pieces(kb: KnowledgeBase, name: str, start: int, end: int) -> Iterator[bytes]:
    """The bytes; fewer than announced if the file became shorter meanwhile."""
    with kb.open_file(name) as opened:
        opened.seek(start)
        while start < end and (piece := opened.read(min(_CHUNK_BYTES, end - start))):
            start += len(piece)
            yield piece


#: A picture and its media type.
Picture = tuple[bytes, str]

#: Stands for what cannot be shown, such as a photo in HEIC.
_NO_PICTURE = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 4 3" width="320" height="240">'
    b'<rect width="4" height="3" fill="#8884"/><circle cx="1.3" cy="1" r=".3" fill="#888"/>'
    b'<path d="M.5 2.6 1.7 1.4l.6.6.5-.5.8 1.1z" fill="#888"/></svg>'
)
_ENTRY_BYTES = 200  # what a key takes, about


class MadePictures:
    """
    Makes pictures of files, and keeps those that were asked for last.

    Args:
        most_bytes: What they may take.
    """

    def __init__(self, site: Site, most_bytes: int = 32_000_000) -> None:
        self.site = site
        self._most_bytes = most_bytes
        self._bytes = 0
        #: The one that was last asked for at the end; None for what cannot be shown.
        self._kept: OrderedDict[Hashable, Picture | None] = OrderedDict()

    async def response(
        self,
        request: Request,
        file: str,
        which: tuple[int, ...],
        make: Callable[[], tuple[Picture | None, str]],
        *,
        otherwise: str = "",
    ) -> Response:
        """
        A picture of a file: a kept one, or one that is made now.

        Args:
            file: ``collection/path``.
            which: Says which picture of the file it is.
            make: The picture, and `KnowledgeBase.file_version` of the file that it shows.
            otherwise: The address to send the browser to if there is no picture; "" for a sign
                that says so.
        """
        version = await self.site.run(request, lambda: self.site.kb.file_version(file))
        what = "-".join(map(str, which))
        headers = {**SANDBOX, "etag": f'"{what}-{version}"'}
        if request.headers.get("if-none-match") == headers["etag"]:
            return Response(status_code=304, headers=headers)
        key = (file, which, version)
        if key in self._kept:
            self._kept.move_to_end(key)
            picture = self._kept[key]
        else:
            picture, version = await self.site.run(request, make, paints=True)
            headers["etag"] = f'"{what}-{version}"'
            self._keep((file, which, version), picture)
        if picture is None and otherwise:
            return self.site.redirect(otherwise)
        content, kind = picture or (_NO_PICTURE, "image/svg+xml")
        return Response(content, media_type=kind, headers=headers)

    def _keep(self, key: Hashable, picture: Picture | None) -> None:
        if key in self._kept:
            self._bytes -= _size(self._kept.pop(key))
        self._kept[key] = picture
        self._bytes += _size(picture)
        while self._bytes > self._most_bytes and self._kept:
            _, oldest = self._kept.popitem(last=False)
            self._bytes -= _size(oldest)


def _size(picture: Picture | None) -> int:
    return _ENTRY_BYTES + (len(picture[0]) if picture else 0)
