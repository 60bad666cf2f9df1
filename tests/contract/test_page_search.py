"""The hits of the page over HTTP: their excerpts, and what stands beside them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.pdf import lines, pdf
from support.site import NOTES, Served, http_client, serve

SIGNS = "---\ntags: [boats]\n---\n# Signs\n\n> [!tip] A **mast** is on [[Harbour|the pier]].\n"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(
        tmp_path_factory.mktemp("site"), {**NOTES, "signs.md": SIGNS}, embed=False
    ) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url, headers={"accept-language": "en"}) as client:
        yield client


def excerpts(client: httpx.Client, query: str) -> list[str]:
    html = client.get("/part/hits", params={"q": query, "mode": "words"}).text
    lines = re.findall(r'<li><a class="number".*?</a> <span>(.*?)</span></li>', html)
    return [re.sub("<[^>]*>", "", line) for line in lines]


def test_excerpts_show_words_and_no_signs_of_markdown(client: httpx.Client) -> None:
    assert "A mast is on the pier." in excerpts(client, "mast")
    assert not any(line in ("---", "") for line in excerpts(client, "tag:boats"))


def test_a_title_is_not_repeated_in_the_excerpt(client: httpx.Client) -> None:
    assert "Signs" not in excerpts(client, "mast")
    assert excerpts(client, "tag:boats")


def test_the_cards_of_a_canvas_are_markdown_too(tmp_path: Path) -> None:
    card = (
        '{"nodes":[{"type":"text","x":0,"y":0,"width":9,"height":9,"text":"A **mast** [[b|c]]"}]}'
    )
    files = {".obsidian/app.json": "{}", "map.canvas": card}
    with (
        serve(tmp_path, files, embed=False) as served,
        http_client(served.url, headers={"accept-language": "en"}) as client,
    ):
        assert excerpts(client, "mast") == ["A mast c"]


def test_a_hit_in_a_pdf_names_its_page(tmp_path: Path) -> None:
    pages = [lines("A ferry"), lines("A mast")]
    with (
        serve(tmp_path, {"boat.pdf": pdf(pages)}, embed=False) as served,
        http_client(served.url) as client,
    ):
        html = client.get("/part/hits", params={"q": "mast", "mode": "words"}).text
        assert '<p class="place">notes/boat.pdf p. 2</p>' in html


def test_a_query_for_signs_shows_them(client: httpx.Client) -> None:
    assert any("[[Harbour" in line for line in excerpts(client, '"[[Harbour"'))


def test_without_hits_similar_notes_and_tags_are_offered(client: httpx.Client) -> None:
    html = client.get("/part/hits", params={"q": "Harbuor", "mode": "words"}).text
    assert "Showing results for" in html and 'href="/?q=harbour&amp;mode=words"' in html
    assert 'href="/note/notes/Harbour.md?line=' in html
    html = client.get("/part/hits", params={"q": "sig", "mode": "words"}).text
    assert "Did you mean" in html and 'href="/note/notes/signs.md"' in html
    html = client.get("/part/hits", params={"q": "mast", "mode": "words", "tag": "boat"}).text
    assert "Did you mean" in html and 'href="/?q=mast&amp;mode=words&amp;tag=boats"' in html
    html = client.get("/part/hits", params={"q": "tag:boat mast", "mode": "words"}).text
    assert 'href="/?q=tag%3Aboats+mast&amp;mode=words"' in html


def test_nothing_similar_is_looked_for_at_each_key(client: httpx.Client) -> None:
    address = {"q": "Harbuor", "mode": "words", "typing": ""}
    html = client.get("/part/hits", params=address).text
    assert "Did you mean" not in html and "Showing results" not in html


def test_hits_say_what_the_index_lacks(client: httpx.Client) -> None:
    html = client.get("/part/hits", params={"q": "mast"}).text
    assert "Answered from full text alone" in html
    words = client.get("/part/hits", params={"q": "mast", "mode": "words"}).text
    assert "vectors" not in words


def test_what_missing_vectors_take_away_is_told_in_chinese(client: httpx.Client) -> None:
    answer = client.get("/part/hits", params={"q": "mast"}, headers={"accept-language": "zh"})
    assert "只按字词搜索了：" in answer.text and "还没有向量" in answer.text
    assert "embeddings" not in answer.text


def test_a_wrong_filter_is_explained_in_chinese(client: httpx.Client) -> None:
    answer = client.get(
        "/part/hits", params={"q": "x", "property": "???"}, headers={"accept-language": "zh"}
    )
    assert "不是属性条件" in answer.text and "请写成" in answer.text


def test_an_error_in_the_query_is_shown_in_its_place(client: httpx.Client) -> None:
    html = client.get("/", params={"q": "boat", "after": "tomorrowish"}).text
    alert = html.partition('role="alert">')[2].partition("</div>")[0]
    assert "tomorrowish" in alert
    assert 'name="q" value="boat"' in html


def test_each_missing_name_is_told_in_chinese(client: httpx.Client) -> None:
    answer = client.get(
        "/part/hits",
        params={"q": "mast", "tag": "nosuch", "path": "nowhere"},
        headers={"accept-language": "zh"},
    )
    assert "没有文档带有标签“nosuch”。" in answer.text
    assert "“nowhere”下面没有文档。" in answer.text


def test_a_collection_without_notes_is_a_beginning(tmp_path: Path) -> None:
    with serve(tmp_path, {}) as served, http_client(served.url) as client:
        html = client.get("/", headers={"accept-language": "en"}).text
        assert "<strong>There are no notes yet.</strong>" in html and "<h2>Changed last" not in html
        assert '<a class="button" href="/new">' in html


def test_nothing_indexed_says_what_to_do(tmp_path: Path) -> None:
    with serve(tmp_path, {}, embed=False) as served, http_client(served.url) as client:
        served.kb.remove_collection("notes")
        html = client.get("/", headers={"accept-language": "en"}).text
        assert '<a class="button" href="/overview#collections">Add a folder</a>' in html
