"""What a client of `qmd server push` does with a server that answers wrongly, or without end."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from qmd.errors import QmdError
from qmd.transfer.push import PushServer

FILE = {"path": "a.md", "bytes": 1, "mtime_ns": 1}


class _Answers(BaseHTTPRequestHandler):
    reply = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(self.reply)))
        self.end_headers()
        self.wfile.write(self.reply)

    def log_message(self, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize(
    "reply",
    [
        {"files": [FILE], "more": True},  # the same page again and again
        {"files": [{**FILE, "path": "\ud800"}], "more": True},
        {"files": "x", "more": False},
        {"files": [{"path": "a.md"}], "more": False},
        {},
        [],
    ],
)
def test_a_list_of_files_that_is_none(url: str, reply: object) -> None:
    _Answers.reply = json.dumps(reply).encode()
    with pytest.raises(QmdError, match="is no qmd server") as caught:
        PushServer(url, None).files("notes")
    assert len(str(caught.value)) < 200
