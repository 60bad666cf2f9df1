"""
The files of collections: ``/file/{collection/path}`` as bytes, ``/raw/{collection/path}`` as text.

They come from strangers. So a browser shows only images, sound and video of listed types, offers
all else for download, and gives none of them the rights of the page (``sandbox``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import PurePosixPath
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from qmd.errors import DocumentNotFoundError
from qmd.kb import KnowledgeBase
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
    """The first byte of a range and the one behind it."""
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
