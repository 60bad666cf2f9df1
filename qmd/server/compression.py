"""Sends responses in gzip to the clients that take it."""

from __future__ import annotations

import re

from starlette.datastructures import Headers
from starlette.middleware.gzip import GZipMiddleware
from starlette.types import Receive, Scope, Send

#: An encoding of the header Accept-Encoding with its weight, of which 0 refuses it.
_REFUSED = re.compile(r"(?:x-)?gzip\s*;\s*q=0(?:\.0*)?\s*", re.IGNORECASE)


class Compressed(GZipMiddleware):
    """That of Starlette, which takes the name of gzip for a yes, also where the weight is a no."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            encodings = ",".join(Headers(scope=scope).getlist("accept-encoding"))
            if any(_REFUSED.fullmatch(each.strip()) for each in encodings.split(",")):
                others = [each for each in scope["headers"] if each[0] != b"accept-encoding"]
                scope = {**scope, "headers": others}
        await super().__call__(scope, receive, send)
