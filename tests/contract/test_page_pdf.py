"""A PDF on the page, over HTTP: page by page, with its picture, its text and the marks."""

from __future__ import annotations

import re
from collections.abc import Iterator

import httpx
import pytest
from support.pdf import PICTURE, Mark, lines, pdf
from support.site import Served, http_client, serve

NUMBERED = pdf(
    [
        lines("A book of animals", "by nobody"),
        lines("The quagga", "A quagga grazes in the south.", "Nobody has seen it since."),
        PICTURE,
        lines("The zebra", "Some quagga hides <b>here</b>, too.", "See [[plan]]."),
    ],
    marks=[Mark("The quagga", 1), Mark("The zebra", 3)],
    labels="[0 << /S /r >> 1 << /S /D >>]",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    files: dict[str, str | bytes] = {
        "animals.pdf": NUMBERED,
        "gone.pdf": pdf([lines("It has words.")]),
        "plan.md": "# Plan\n\nRead [[animals.pdf#page=2]].\n",
    }
    with serve(tmp_path_factory.mktemp("pdf"), files, embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def marks(html: str) -> int:
    return len(re.findall("<rect ", html))


def test_a_hit_leads_to_its_page_with_the_words_marked(client: httpx.Client) -> None:
    found = client.get("/", params={"q": "quagga grazes", "mode": "words"}).text
    assert "notes/animals.pdf p. 2 (1)" in found
    address = re.search(r'<h2><a href="([^"]+)"', found)
    assert address is not None
    shown = client.get(address[1].replace("&amp;", "&").removesuffix("#at")).text
    assert 'id="page=2"' in shown and marks(shown) == 3
    assert shown.count('id="at"') == 1
    assert "A quagga grazes in the south." in shown and "hides" not in shown


def test_pages_lead_to_each_other_and_keep_the_marks(client: httpx.Client) -> None:
    first = client.get("/note/notes/animals.pdf?q=quagga").text
    assert 'href="?page=2&amp;q=quagga" rel="next"' in first and 'rel="prev"' not in first
    assert "of 4, labelled i" in first
    last = client.get("/note/notes/animals.pdf?page=4&q=quagga").text
    assert 'href="?page=3&amp;q=quagga" rel="prev"' in last and 'rel="next"' not in last
    assert marks(last) == 1
    assert client.get("/note/notes/animals.pdf?page=77&q=quagga").text.count('id="page=4"') == 1


@pytest.mark.parametrize("address", ["page=3", "at=page=3"])
def test_a_page_without_text_is_shown(client: httpx.Client, address: str) -> None:
    shown = client.get(f"/note/notes/animals.pdf?{address}").text
    assert 'id="page=3"' in shown and "no text that can be read" in shown


def test_a_line_leads_to_its_page_and_is_marked_there(served: Served, client: httpx.Client) -> None:
    text = served.kb.get("notes/animals.pdf").text.split("\n")
    line = next(n for n, each in enumerate(text, start=1) if "Nobody" in each)
    shown = client.get(f"/note/notes/animals.pdf?line={line}").text
    assert 'id="page=2"' in shown and marks(shown) == 1
    assert marks(client.get(f"/note/notes/animals.pdf?page=4&line={line}").text) == 0


def test_the_outline_names_the_section_of_the_page(client: httpx.Client) -> None:
    shown = client.get("/note/notes/animals.pdf?page=3").text
    assert re.search(r'<a href="\?line=\d+" aria-current="true">The quagga</a>', shown)


def test_text_of_a_file_stays_text(client: httpx.Client) -> None:
    shown = client.get("/note/notes/animals.pdf?page=4").text
    assert "&lt;b&gt;here" in shown and "[[plan]]" in shown


def test_the_whole_text_and_the_file_are_there(client: httpx.Client) -> None:
    whole = client.get("/note/notes/animals.pdf?as=text").text
    assert "hides" in whole and "grazes" in whole and "<figure" not in whole
    assert 'href="/file/notes/animals.pdf"' in whole


def test_a_picture_is_kept_until_the_file_changes(client: httpx.Client) -> None:
    first = client.get("/page-picture/notes/animals.pdf?page=2")
    assert first.headers["content-type"] == "image/webp"
    assert "sandbox" in first.headers["content-security-policy"]
    again = client.get("/page-picture/notes/animals.pdf?page=2")
    assert again.content == first.content and again.headers["etag"] == first.headers["etag"]
    known = {"if-none-match": first.headers["etag"]}
    assert client.get("/page-picture/notes/animals.pdf?page=2", headers=known).status_code == 304
    large = client.get("/page-picture/notes/animals.pdf?page=2&size=large", headers=known)
    assert large.status_code == 200 and len(large.content) > len(first.content)


@pytest.mark.parametrize(
    "address, status", [("notes/plan.md", 400), ("notes/none.pdf", 404), ("none/a.pdf", 404)]
)
def test_only_indexed_pdfs_have_pictures(client: httpx.Client, address: str, status: int) -> None:
    assert client.get(f"/page-picture/{address}").status_code == status


def test_a_damaged_file_keeps_its_text(served: Served, client: httpx.Client) -> None:
    (served.folder / "gone.pdf").write_bytes(b"no PDF any more")
    shown = client.get("/note/notes/gone.pdf?line=1").text
    assert "cannot be shown as a picture" in shown and "<figure" not in shown
    assert 'class="at" id="at"' in shown or 'id="at"' in shown
    assert client.get("/page-picture/notes/gone.pdf").headers["content-type"] == "image/svg+xml"
    (served.folder / "gone.pdf").unlink()
    assert "It has words." in client.get("/note/notes/gone.pdf").text
    assert client.get("/page-picture/notes/gone.pdf").status_code == 404
