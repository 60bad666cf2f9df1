"""
A site of the web that a test writes down: real HTTP, in a thread.

::

    with Site({"/a.html": page("Title", "<p>Text</p>"), "/r": redirect("/a.html")}) as site:
        ...  # site.url + "/a.html"; site.asked tells what was asked
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple


class Reply(NamedTuple):
    """An answer; a ``body`` that is a function writes the whole answer itself."""

    body: bytes | Callable[[BaseHTTPRequestHandler], None] = b""
    media_type: str = "text/html; charset=utf-8"
    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()


def page(title: str, body: str, *, head: str = "") -> Reply:
    """An article; a paragraph of words makes it long enough to be one."""
    words = "Words of an article that somebody reads. " * 20
    html = (
        f"<!doctype html><html><head><title>{title}</title>{head}</head><body>"
        f"<nav><a href=/>Home</a></nav><article><h1>{title}</h1>{body}<p>{words}</p></article>"
        "<footer>Imprint</footer></body></html>"
    )
    return Reply(html.encode())


def redirect(target: str, status: int = 302) -> Reply:
    return Reply(status=status, headers=(("Location", target),))


def png(colour: int = 0) -> bytes:
    """The file of a picture with one pixel."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    size = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    parts = ((b"IHDR", size), (b"IDAT", zlib.compress(bytes((0, colour)))), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*each) for each in parts)


class Site:
    """
    Attributes:
        pages: What is at each path; everything else is not found.
        asked: The paths that were asked for.
    """

    def __init__(self, pages: Mapping[str, Reply]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.asked.append(self.path)
                reply = site.pages.get(self.path, Reply(status=404))
                if callable(reply.body):
                    reply.body(self)
                    return
                self.send_response(reply.status)
                self.send_header("Content-Type", reply.media_type)
                self.send_header("Content-Length", str(len(reply.body)))
                for header in reply.headers:
                    self.send_header(*header)
                self.end_headers()
                self.wfile.write(reply.body)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Site:
        run = self._server.serve_forever
        threading.Thread(target=run, args=(0.01,), daemon=True).start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
