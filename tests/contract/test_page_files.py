"""Files of collections over HTTP: which are served, and with what rights."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.requests import Request
from support.site import NOTES, Served, http_client, serve

from qmd import KnowledgeBase
from qmd.errors import DocumentNotFoundError
from qmd.server.page.files import file_response

SVG = b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>"
FILES: dict[str, str | bytes] = {
    **NOTES,
    "img/pic.png": b"\x89PNG" + bytes(range(256)) * 2000,
    "img/a.svg": SVG,
    "片/文件 1#?.html": b"<script>alert(1)</script>",
    "doc.pdf": b"%PDF-1.7",
    "replaced.pdf": b"%PDF-1.7",
    ".gitignore": "secret.txt\nprivate/\n",
    "secret.txt": "no",
    "private/p.png": b"no",
    ".hidden/x.png": b"no",
    ".env": "KEY=1",
}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("files")
    with serve(directory, FILES, embed=False) as server:
        outside = directory / "outside.png"
        outside.write_bytes(b"outside")
        (server.folder / "link.png").symlink_to(outside)
        (server.folder / "linked").symlink_to(directory)
        server.kb.index()
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def test_an_image_is_shown_in_a_sandbox(client: httpx.Client) -> None:
    answer = client.get("/file/notes/img/pic.png")
    assert answer.status_code == 200
    assert answer.content == FILES["img/pic.png"]
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["content-disposition"].startswith("inline;")
    assert answer.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = client.get("/file/notes/img/pic.png", headers={"if-none-match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    ("name", "kind", "place"),
    [
        ("img/a.svg", "image/svg+xml", "inline"),
        ("片/文件 1%23%3F.html", "application/octet-stream", "attachment"),
        ("doc.pdf", "application/pdf", "attachment"),
        ("plan.md", "application/octet-stream", "attachment"),
    ],
)
def test_what_a_browser_must_not_run_is_downloaded_or_sandboxed(
    client: httpx.Client, name: str, kind: str, place: str
) -> None:
    answer = client.get(f"/file/notes/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["content-disposition"].startswith(f"{place}; filename*=UTF-8''")
    assert "sandbox" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("sent", "start", "end"),
    [("bytes=5-9", 5, 10), ("bytes=512000-", 512_000, 512_004), ("bytes=-4", 512_000, 512_004)],
)
def test_a_part_of_a_file_is_sent(client: httpx.Client, sent: str, start: int, end: int) -> None:
    answer = client.get("/file/notes/img/pic.png", headers={"range": sent})
    assert answer.status_code == 206
    content = FILES["img/pic.png"]
    assert isinstance(content, bytes)
    assert answer.content == content[start:end]
    assert answer.headers["content-range"] == f"bytes {start}-{end - 1}/{len(content)}"


def test_a_range_behind_the_end_is_refused(client: httpx.Client) -> None:
    answer = client.get("/file/notes/img/pic.png", headers={"range": "bytes=999999-"})
    assert answer.status_code == 416


@pytest.mark.parametrize(
    "path",
    [
        *("notes/secret.txt", "notes/private/p.png", "notes/.hidden/x.png", "notes/.env"),
        *("notes/.gitignore", "notes/link.png", "notes/linked/outside.png", "notes/none.png"),
        *("notes/linked/index.sqlite", "notes/%2e%2e/outside.png", "notes/..%2Findex.sqlite"),
        *("notes/img/..%2F..%2Foutside.png", "notes", "notes/", "notes/img", "other/pic.png", ""),
        *("%2Fetc%2Fpasswd", "notes//etc/passwd", "notes/img/pic.png%00", "notes/%FF.png"),
    ],
)
@pytest.mark.parametrize("view", ["file", "raw"])
def test_nothing_else_is_served(client: httpx.Client, view: str, path: str) -> None:
    answer = client.get(f"/{view}/{path}")
    assert answer.status_code == 404
    assert b"outside" not in answer.content[:20]


def test_a_file_that_became_a_link_is_not_followed(served: Served, client: httpx.Client) -> None:
    (served.folder / "replaced.pdf").unlink()
    (served.folder / "replaced.pdf").symlink_to("/etc/hostname")
    assert client.get("/file/notes/replaced.pdf").status_code == 404


def test_a_response_that_is_never_sent_leaves_no_file_open(served: Served) -> None:
    """The browser has left before the first byte: nobody reads the response, nobody ends it."""
    request = Request({"type": "http", "headers": []})
    with warnings.catch_warnings(record=True) as unclosed:
        warnings.simplefilter("always", ResourceWarning)
        response = file_response(request, served.kb, "notes/img/pic.png")
        assert response.status_code == 200
        del response
        gc.collect()
    assert not unclosed


def test_the_database_is_not_served(tmp_path: Path) -> None:
    """A person may keep it among the notes."""
    (tmp_path / "a.md").write_text("# A\n")
    with KnowledgeBase.open(tmp_path / "index.sqlite", create=True) as kb:
        kb.add_collection(tmp_path, name="notes")
        kb.index()
        kb.open_file("notes/a.md").close()
        for name in ("index.sqlite", "index.sqlite-wal", "index.sqlite-shm"):
            with pytest.raises(DocumentNotFoundError):
                kb.open_file(f"notes/{name}")


def test_the_text_of_a_note_is_sent_as_it_is(client: httpx.Client) -> None:
    answer = client.get("/raw/notes/2025/回顾.md")
    assert answer.text == NOTES["2025/回顾.md"]
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert client.get("/raw/notes/2025/回顾").status_code == 404


@pytest.mark.skipif(sys.platform == "win32", reason="no such file names")
def test_a_file_with_a_line_break_in_its_name_has_pages(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"two\nlines.md": "# Both\n\nText.\n", "a\nb.pdf": b"%PDF-1.7"}
    with serve(tmp_path, files, embed=False) as server:
        server.kb.add_context("notes/two\nlines.md", "a note")
        with http_client(server.url) as client:
            for view in ("note", "raw", "edit", "graph", "part/similar", "history", "move"):
                assert client.get(f"/{view}/notes/two%0Alines.md").status_code == 200, view
            assert client.get("/file/notes/a%0Ab.pdf").content == b"%PDF-1.7"
            assert (
                client.delete("/contexts/notes/two%0Alines.md")
                .json()["path"]
                .endswith("two\nlines.md")
            )
            assert 'route="/raw/{file}"' in client.get("/metrics").text
