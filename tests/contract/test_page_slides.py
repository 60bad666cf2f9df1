"""Presentations on the page, over HTTP: their slides as text."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from support.archives import pptx, shape
from support.site import Served, http_client, serve


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    def deck(slides: int) -> bytes:
        bodies = [
            shape(f"Animal {n}", "title") + shape(f"quagga {n}/#zebra [[x]]", "body")
            for n in range(slides, 0, -1)
        ]
        return pptx(bodies, notes="say it slowly")

    files: dict[str, str | bytes] = {"deck.pptx": deck(3), "long.pptx": deck(60)}
    directory = tmp_path_factory.mktemp("slides")
    with serve(directory, files, embed=False, mask="**/*.pptx") as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def slides(html: str) -> list[str]:
    return re.findall(r'<section class="slide card" id="([^"]+)"', html)


def test_slides_stand_below_each_other(client: httpx.Client) -> None:
    shown = client.get("/note/notes/deck.pptx").text
    assert slides(shown) == ["slide=1", "slide=2", "slide=3"]
    assert "quagga 2" in shown and "say it slowly" in shown
    assert "#zebra [[x]]" in shown  # it is text
    assert 'href="#slide%3D2">2  Animal 2</a>' in shown


def test_a_hit_and_a_link_lead_to_their_slide(client: httpx.Client) -> None:
    found = client.get("/", params={"q": '"quagga 3"', "mode": "words"}).text
    address = re.search(r'<h2><a href="(/note/notes/deck[^"]+)"', found)
    assert address is not None
    shown = client.get(address[1].replace("&amp;", "&").removesuffix("#at")).text
    marked = shown.partition('id="slide=3"')[2]
    assert 'id="at"' in marked and shown.count('id="at"') == 1
    linked = client.get("/note/notes/deck.pptx?at=slide%3D2").text
    assert re.search(r'id="slide=2"[^>]* autofocus', linked) and 'id="at"' not in linked


def test_many_slides_come_in_parts(client: httpx.Client) -> None:
    first = client.get("/note/notes/long.pptx").text
    assert len(slides(first)) == 50 and "Slides 1 to 50 of 60" in first
    assert 'href="?part=2" rel="next"' in first
    assert slides(client.get("/note/notes/long.pptx?at=slide%3D55").text)[0] == "slide=51"
    assert "<section" not in client.get("/note/notes/deck.pptx?as=text").text
