"""An answer with a bad status: what it says is read, and not more than that."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx2

_MAX_BYTES = 64 << 10
"""Of the body; a line of it is shown."""


class BadStatusError(Exception):
    """The server answered with an error, of which ``body`` is how it begins."""

    def __init__(self, status: int, body: object, headers: Mapping[str, str]) -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.headers = headers


def only_good(response: httpx2.Response) -> None:
    """
    Of an error its beginning is read, and for no longer than an answer may keep us waiting.

    The package reads errors to their end, and a broken server's may have none.

    Raises:
        BadStatusError.
    """
    if response.is_success:
        return
    import httpx2

    end = time.monotonic() + response.request.extensions["timeout"]["read"]
    data = bytearray()
    with suppress(httpx2.RequestError):  # what has come by then is what it says
        for piece in response.iter_bytes():
            data += piece
            if len(data) > _MAX_BYTES or time.monotonic() >= end:
                break
    body: object = data.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        body = json.loads(data)
    raise BadStatusError(response.status_code, body, response.headers)
