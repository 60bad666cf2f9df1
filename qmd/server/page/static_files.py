"""Serves the styles and scripts of the page, each under an address that names its content."""

from __future__ import annotations

import functools
import hashlib
import mimetypes
from importlib.resources import files

from starlette.middleware import Middleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from qmd.server.security import STATIC_PATH

_TYPES = {
    ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}  # fmt: skip
#: The script that may answer for views, and for which.
_POLICY_OF_WORKER = {
    "content-security-policy": "default-src 'none'; connect-src 'self'; frame-ancestors 'none'"
}
_WORKER, _VIEW_OF_WORKER = "capture-worker.js", "/add"
_CACHED = "private, max-age=31536000, immutable"


class StaticFiles:
    """
    The files in ``static/``, read once. Only these names are served, whatever the address says.
    """

    def __init__(self) -> None:
        folder = files("qmd.server.page").joinpath("static")
        self._contents = {
            entry.name: entry.read_bytes() for entry in folder.iterdir() if entry.is_file()
        }
        self._versions = {
            name: hashlib.sha256(content).hexdigest()[:12]
            for name, content in self._contents.items()
        }

    def address(self, name: str) -> str:
        """The address of a file; it changes with the file, so that browsers may keep it."""
        return f"{STATIC_PATH}{name}?v={self._versions[name]}"

    def route(self) -> Route:
        gzip = Middleware(GZipMiddleware, minimum_size=1_000, compresslevel=5)
        return Route(STATIC_PATH + "{name}", self._serve, methods=["GET"], middleware=[gzip])

    async def _serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        content = self._contents.get(name)
        if content is None:
            return PlainTextResponse("There is no such file.", 404)
        suffix = name[name.rfind(".") :]
        kind = _TYPES.get(suffix) or mimetypes.guess_type(name)[0] or "application/octet-stream"
        # A module imports others without a version; those are asked for again each time.
        is_versioned = request.query_params.get("v") == self._versions[name]
        etag = f'"{self._versions[name]}"'
        headers = {"cache-control": _CACHED if is_versioned else "no-cache", "etag": etag}
        if name == _WORKER:
            headers |= {"service-worker-allowed": _VIEW_OF_WORKER, **_POLICY_OF_WORKER}
        if request.headers.get("if-none-match") == etag:
            return Response(status_code=304, headers=headers)
        return Response(content, media_type=kind, headers=headers)


@functools.cache
def static_files() -> StaticFiles:
    """The files, read once for all servers of this process."""
    return StaticFiles()
