"""The page over HTTP: what each response must have, whichever view sends it."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Formatter

import httpx
import pytest
from support.site import Served, http_client, serve

import qmd.server.page
from qmd.server.page.templating import language_of

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FOLDER = Path(qmd.server.page.__file__).parent


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serve(tmp_path) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def test_a_page_lets_nothing_run_and_loads_only_from_this_server(client: httpx.Client) -> None:
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search(r"(src|href)=[\"']?(https?:)?//", answer.text)
    assert not re.search(r"<script(?![^>]*(src=|application/json))", answer.text)
    assert not re.search(r"<[^>]+ (style|on\w+)=", answer.text)


def test_an_unknown_address_is_a_page_with_a_way_on(client: httpx.Client) -> None:
    answer = client.get("/nowhere", headers={"accept": "text/html"})
    assert answer.status_code == 404
    assert '<a class="button" href="/">To the search</a>' in answer.text


def test_the_help_is_a_page_without_a_script(client: httpx.Client) -> None:
    assert '<a href="/help"' in client.get("/").text
    assert ">What a query may say</h" in client.get("/help").text


@pytest.mark.parametrize("address", ["/", "/?q=boat", "/ask", "/overview"])
def test_the_first_view_is_light(client: httpx.Client, address: str) -> None:
    """At most 150 KB over the wire: the page, its styles and icon, and the scripts they import."""
    page = client.get(address, headers={"accept-encoding": "gzip"})
    waiting = re.findall(r'(?:src|href)="(/static/[^"]+)"', page.text)
    loaded: dict[str, int] = {}
    while waiting:
        file = waiting.pop()
        if file not in loaded:
            answer = client.get(file, headers={"accept-encoding": "gzip"})
            loaded[file] = answer.num_bytes_downloaded
            waiting += [f"/static/{name}" for name in re.findall(r'from "\./(.+?)"', answer.text)]
    assert len(loaded) > 3
    assert page.num_bytes_downloaded + sum(loaded.values()) <= 150_000


def test_a_static_file_may_be_kept_as_long_as_it_is_the_same(client: httpx.Client) -> None:
    address = re.findall(r'href="(/static/base.css[^"]*)"', client.get("/").text)[0]
    answer = client.get(address)
    assert "immutable" in answer.headers["cache-control"]
    unchanged = client.get("/static/base.css", headers={"if-none-match": answer.headers["etag"]})
    assert unchanged.status_code == 304


@pytest.mark.parametrize("name", ["..%2fsite.py", "../site.py", "none.css", ".", "%2e%2e/"])
def test_only_the_static_files_are_served(client: httpx.Client, name: str) -> None:
    assert client.get(f"/static/{name}").status_code == 404


@pytest.mark.parametrize(
    ("accepted", "language"),
    [
        ("", "en"),
        ("zh-CN,zh;q=0.9,en;q=0.8", "zh"),
        ("en-GB,zh;q=0.5", "en"),
        ("de,zh;q=0.7,en;q=0.3", "zh"),
        ("en;q=0.1, zh-Hant;q=0.2", "zh"),
        ("fr, de", "en"),
        ("zh;q=x, en", "en"),
    ],
)
def test_the_language_is_what_the_browser_prefers(accepted: str, language: str) -> None:
    assert language_of(accepted) == language


@pytest.mark.parametrize("path", sorted((FOLDER / "texts").glob("*.toml")), ids=lambda p: p.stem)
def test_each_text_stands_in_both_languages_with_the_same_values(path: Path) -> None:
    for name, text in tomllib.loads(path.read_text(encoding="utf-8")).items():
        assert set(text) == {"en", "zh"}, name
        assert all(text.values()), name
        fields = [
            {field for _, field, _, _ in Formatter().parse(words) if field is not None}
            for words in text.values()
        ]
        assert fields[0] == fields[1], name


def test_each_text_is_used_and_each_used_text_exists() -> None:
    """A name may be put together (``"base.view_" ~ …``); then its beginning is what counts."""
    names = {
        f"{path.stem}.{name}"
        for path in (FOLDER / "texts").glob("*.toml")
        for name in tomllib.loads(path.read_text(encoding="utf-8"))
    }
    views = {name.partition(".")[0] for name in names}
    sources = "".join(
        path.read_text(encoding="utf-8")
        for folder in (FOLDER, FOLDER / "templates")
        for path in folder.glob("*")
        if path.suffix in (".py", ".html")
    )
    used = set(re.findall(rf'"((?:{"|".join(views)})\.[a-z_0-9]+)"', sources))
    used = {name for name in used if not name.endswith((".html", ".css", ".js"))}
    beginnings = {name for name in used if name.endswith("_")}
    assert used - beginnings <= names
    in_scripts = {
        f"{view}.{word}"
        for path in (FOLDER / "static").glob("*.js")
        for script in [path.read_text(encoding="utf-8")]
        for view in {path.stem, *re.findall(r'textsOf\("(\w+)"\)', script)}
        for word in re.findall(r"texts\.([a-z_0-9]+)", script)
    }
    unused = {
        name
        for name in names - used - in_scripts
        if not any(name.startswith(start) for start in beginnings)
        and not (name.endswith("_one") and name.removesuffix("_one") in used)
        and not re.search(rf'f"{name.rpartition("_")[0]}_{{', sources)
    }
    assert not unused


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/history/notes/none.md", 404),
        ("/history/none", 404),
        ("/history/notes/plan.md?revision=first", 404),
        ("/?q=boat&collection=none", 404),
        ("/?q=boat&mode=none", 400),
        ("/?q=boat&n=many", 400),
    ],
)
def test_a_wrong_address_is_no_page(client: httpx.Client, address: str, status: int) -> None:
    assert client.get(address).status_code == status


@pytest.mark.parametrize("address", ["/history/notes/plan.md", "/part/hits?q=x&collection=none"])
def test_what_has_nothing_to_show_is_one(client: httpx.Client, address: str) -> None:
    assert client.get(address).status_code == 200
