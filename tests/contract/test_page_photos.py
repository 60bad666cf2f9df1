"""The photos on the page, over HTTP: the grid, small pictures, one photo, and changing it."""

from __future__ import annotations

import os
import re
import select
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from io import BytesIO
from pathlib import Path

import httpx
import pytest
from PIL import Image
from support import photos
from support.site import NOTES, Served, http_client, serve

from qmd.server.page.photos import MOST_IN_PLACE
from qmd.values import PhotoChange


def bomb() -> bytes:
    """A small PNG file of a picture of 12,000 x 12,000 pixels."""
    output = BytesIO()
    Image.new("1", (12_000, 12_000)).save(output, "PNG")
    return output.getvalue()


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("photos")
    made = {
        name: photos.make(directory / name).read_bytes()
        for name in ("meer.jpg", "a.png", "c.heic", "changed.jpg")
    }
    files: dict[str, str | bytes] = {**NOTES, **made, "bomb.png": bomb()}
    files["trip/海边.jpg"] = files["meer.jpg"]
    files["cut.jpg"] = made["meer.jpg"][:3000]
    with serve(directory, files, embed=False) as server:
        server.kb.change_photo(
            "notes/meer.jpg",
            PhotoChange(tags=("Meer", "Urlaub/2024"), people=("Anna", "王芳"), location="Nizza"),
        )
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def shown(text: str) -> list[str]:
    return re.findall(r'href="/photo/notes/([^"?]+)', text)


def test_the_grid_shows_all_photos_and_no_notes(client: httpx.Client) -> None:
    answer = client.get("/photos")
    assert answer.status_code == 200
    names = shown(answer.text)
    assert {"meer.jpg", "a.png", "c.heic", "trip/%E6%B5%B7%E8%BE%B9.jpg"} <= set(names)
    assert not any(name.endswith(".md") for name in names)
    assert '<option value="Anna">Anna (1)</option>' in answer.text
    assert '<img src="/thumb/notes/meer.jpg" alt="" loading="lazy"' in answer.text


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({"person": "Anna"}, ["meer.jpg"]),
        ({"person": "王芳", "tag": "Meer", "date": "2024-07"}, ["meer.jpg"]),
        ({"place": "Nizza"}, ["meer.jpg"]),
        ({"tag": "none"}, []),
        ({"date": "1999"}, []),
    ],
)
def test_filters_choose_photos(
    client: httpx.Client, query: dict[str, str], names: list[str]
) -> None:
    answer = client.get("/photos", params=query)
    assert shown(answer.text) == names
    if not names:
        assert "No photo fits these filters." in answer.text


def test_the_page_of_a_photo_leads_to_those_beside_it(client: httpx.Client) -> None:
    names = shown(client.get("/photos").text)
    text = client.get(f"/photo/notes/{names[1]}").text
    assert re.search(rf'rel="prev" href="/photo/notes/{re.escape(names[0])}"', text)
    assert re.search(rf'rel="next" href="/photo/notes/{re.escape(names[2])}"', text)


def test_a_photo_has_its_metadata_as_a_table(client: httpx.Client) -> None:
    text = client.get("/photo/notes/meer.jpg").text
    for part in ("ACME X100", "2024-07-14 18:30:00", ">Anna</a>", "/photos?tag=Meer", "Nizza"):
        assert part in text
    assert "?size=large" in text
    assert "cannot show this format" in client.get("/photo/notes/c.heic").text


def test_small_pictures_are_jpegs_turned_as_the_camera_says(client: httpx.Client) -> None:
    answer = client.get("/thumb/notes/meer.jpg")
    assert answer.headers["content-type"] == "image/jpeg"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert Image.open(BytesIO(answer.content)).size == (64, 96)
    again = client.get("/thumb/notes/meer.jpg", headers={"if-none-match": answer.headers["etag"]})
    assert again.status_code == 304


def test_a_large_picture_in_a_note_is_sent_smaller(served: Served, client: httpx.Client) -> None:
    noise = Image.frombytes("RGB", (2400, 1200), os.urandom(2400 * 1200 * 3))
    noise.save(served.folder / "large.png")
    (served.folder / "broken.png").write_bytes(b"x" * (MOST_IN_PLACE + 1))
    (served.folder / "shows.md").write_text("![[large.png]] ![[meer.jpg]]\n[[large.png]]\n")
    served.kb.index()
    page = client.get("/note/notes/shows.md").text
    assert '<img src="/shown/notes/large.png" alt="large.png" loading="lazy">' in page
    assert 'href="/photo/notes/large.png"' in page or 'href="/file/notes/large.png"' in page
    small = client.get("/shown/notes/large.png")
    assert Image.open(BytesIO(small.content)).size == (1600, 800)
    assert "sandbox" in small.headers["content-security-policy"]
    same = client.get("/shown/notes/meer.jpg")
    assert same.content == (served.folder / "meer.jpg").read_bytes()
    assert client.get("/shown/notes/broken.png").headers["location"] == "/file/notes/broken.png"
    assert client.get("/shown/notes/none.png").status_code == 404


@pytest.mark.parametrize("name", ["bomb.png", "c.heic"])
def test_a_photo_that_cannot_be_decoded_has_a_sign_instead(client: httpx.Client, name: str) -> None:
    answer = client.get(f"/thumb/notes/{name}")
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "image/svg+xml"
    assert client.get("/photos").status_code == 200


@pytest.mark.nightly
def test_pictures_that_take_long_hold_up_no_other_page(tmp_path: Path) -> None:
    quick = photos.make(tmp_path / "quick.jpg").read_bytes()
    slow = quick[:2] + b"\xff" * 20_000_000 + quick[2:]  # Pillow looks at each byte: many seconds
    files: dict[str, str | bytes] = {**NOTES, "quick.jpg": quick}
    for number in range(8):
        files[f"slow{number}.jpg"] = slow
    with serve(tmp_path, files, embed=False) as server, ExitStack() as opened:
        address = ("127.0.0.1", int(server.url.rpartition(":")[2]))
        waiting = [opened.enter_context(socket.create_connection(address)) for _ in range(8)]
        for number, connection in enumerate(waiting):
            path = f"/thumb/notes/slow{number}.jpg"
            connection.sendall(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        for _ in range(20):
            assert httpx.get(f"{server.url}/photos", timeout=60).status_code == 200
        assert select.select(waiting, [], [], 0)[0] == []  # no picture is made yet
        opened.close()
        # Those have left, so nobody waits for their pictures.
        answer = httpx.get(f"{server.url}/thumb/notes/quick.jpg", timeout=60)
        assert answer.headers["content-type"] == "image/jpeg"


@pytest.mark.parametrize("path", ["notes/none.jpg", "notes/../x.jpg", "other/a.jpg"])
@pytest.mark.parametrize("view", ["photo", "thumb"])
def test_only_photos_of_collections_are_shown(client: httpx.Client, view: str, path: str) -> None:
    assert client.get(f"/{view}/{path}").status_code == 404
    assert client.get(f"/{view}/notes/plan.md").status_code in (400, 404, 422)


def form_of(text: str) -> dict[str, str]:
    hidden = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', text)
    return dict(hidden)


def test_a_form_changes_the_photo_and_the_index(served: Served, client: httpx.Client) -> None:
    fields = form_of(client.get("/photo/notes/changed.jpg").text)
    sent = {
        **fields,
        "people": "Li Lei，王芳",
        "tags": "a, b",
        "location": "",
        "description": "Am Meer",
    }
    answer = client.post("/photo/notes/changed.jpg", data=sent, headers={"origin": served.url})
    assert answer.status_code == 303
    metadata = served.kb.metadata_of_photo("notes/changed.jpg")
    assert (metadata.people, metadata.tags) == (("Li Lei", "王芳"), ("a", "b"))
    assert metadata.description == "Am Meer"
    assert shown(client.get("/photos", params={"person": "Li Lei"}).text) == ["changed.jpg"]
    stale = client.post("/photo/notes/changed.jpg", data=sent, headers={"origin": served.url})
    assert stale.status_code == 409
    assert "changed meanwhile" in stale.text


def test_an_emptied_field_is_emptied_in_the_photo(served: Served, client: httpx.Client) -> None:
    change = PhotoChange(description="A pier", location="Nizza", tags=("sea",))
    served.kb.change_photo("notes/a.png", change)
    fields = {**form_of(client.get("/photo/notes/a.png").text), "people": "", "tags": ""}
    sent = {**fields, "location": "", "description": " "}
    answer = client.post("/photo/notes/a.png", data=sent, headers={"origin": served.url})
    assert answer.status_code == 303
    metadata = served.kb.metadata_of_photo("notes/a.png")
    assert (metadata.description, metadata.location, metadata.tags) == (None, None, ())
    assert shown(client.get("/photos", params={"place": "Nizza"}).text) == ["meer.jpg"]


def test_a_form_without_the_token_changes_nothing(served: Served, client: httpx.Client) -> None:
    before = served.kb.metadata_of_photo("notes/a.png")
    answer = client.post("/photo/notes/a.png", data={"tags": "x"}, headers={"origin": served.url})
    assert answer.status_code == 403
    assert served.kb.metadata_of_photo("notes/a.png") == before


def test_without_photos_the_page_says_how_they_join(tmp_path: Path) -> None:
    with serve(tmp_path, embed=False) as server:
        chinese = {"accept-language": "zh"}
        text = httpx.get(f"{server.url}/photos", headers=chinese, timeout=60).text
    assert "还没有照片" in text
    assert "--mask" in text


def test_a_server_that_only_reads_offers_no_form(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {"a.jpg": photos.make(tmp_path / "a.jpg").read_bytes()}
    with serve(tmp_path, files, embed=False, read_only=True) as server:
        text = httpx.get(f"{server.url}/photo/notes/a.jpg", timeout=60).text
    assert "photo-form" not in text
