"""No form of the page is taken but from the page itself: each route that changes something."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.routing import Route
from support.site import NO_CERTIFICATES, Served, http_client, serve

from qmd.kb import KnowledgeBase
from qmd.server.page import page_routes
from qmd.server.page.browser import READS
from qmd.server.page.site import Site

TOKEN = re.compile(r'<meta name="csrf" content="([^"]+)">')


def _routes(kb: KnowledgeBase) -> list[Route]:
    return [route for route in page_routes(Site(kb)) if isinstance(route, Route)]


def _address(route: Route) -> str:
    """An address of the route, whose parts are of the right kind and name nothing."""
    return re.sub(
        r"\{[^}:]+(:[^}]+)?\}", lambda part: "1" if part[1] == ":int" else "x", route.path
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve(tmp_path_factory.mktemp("site"), embed=False) as server:
        yield server


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with http_client(served.url) as client:
        yield client


def _token(client: httpx.Client) -> str:
    match = TOKEN.search(client.get("/").text)
    assert match is not None
    return match[1]


def test_a_route_either_reads_or_demands_the_token(served: Served) -> None:
    for route in _routes(served.kb):
        assert route.methods is not None
        assert set(route.methods) <= {*READS, "POST"}, route.path


@pytest.mark.unmeasured
def test_each_form_is_refused_without_the_token(served: Served, client: httpx.Client) -> None:
    """Whatever is sent instead; and the files stay as they are."""
    _token(client)  # the cookie is there
    with http_client(served.url) as other:
        stolen = _token(other)
    before = {path: path.read_bytes() for path in served.folder.rglob("*") if path.is_file()}
    forms = [route for route in _routes(served.kb) if "POST" in (route.methods or ())]
    for route in forms:
        for body in ({}, {"csrf": ""}, {"csrf": "x"}, {"csrf": stolen}, {"csrf": "a.b"}):
            answer = client.post(_address(route), data=body)
            assert answer.status_code == 403, (route.path, body)
        for headers in ({"x-csrf-token": stolen}, {"content-type": "text/plain"}):
            answer = client.post(_address(route), content=b"csrf=x", headers=headers)
            assert answer.status_code == 403, (route.path, headers)
    after = {path: path.read_bytes() for path in served.folder.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://127.0.0.1:1"},
        {"origin": "http://localhost"},
        {"origin": "null"},
        {"origin": "https://evil.example"},
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "none"},
    ],
    ids=lambda headers: " ".join(*headers.items()),
)
def test_the_token_is_of_no_use_to_a_page_of_another_origin(
    served: Served, client: httpx.Client, headers: dict[str, str]
) -> None:
    """Another port of this machine is another origin, though the cookie goes there, too."""
    token = _token(client)
    for route in _routes(served.kb):
        if "POST" in (route.methods or ()):
            answer = client.post(_address(route), data={"csrf": token}, headers=headers)
            assert answer.status_code == 403, route.path


def test_the_token_is_another_in_each_page_and_all_are_valid(
    served: Served, client: httpx.Client
) -> None:
    """So the length of a compressed page reveals nothing of it."""
    tokens = [_token(client) for _ in range(3)]
    assert len(set(tokens)) == len(tokens)
    [cookie] = client.cookies.jar
    for token in tokens:
        answer = client.post("/part/preview", data={"csrf": token, "file": "notes/x.md"})
        assert answer.status_code == 200, answer.text
    assert cookie.value not in client.get("/").text


def test_a_cookie_that_the_server_did_not_sign_is_replaced(
    served: Served, client: httpx.Client
) -> None:
    """Else a program on another port could choose it, and ask for its token itself."""
    name = f"qmd_page_{httpx.URL(served.url).port}"
    for value in ("x" * 43, "a.b", "." + "0" * 64, "é" * 43, "x." + "0" * 64):
        sent = {"cookie": f"{name}={value}".encode()}
        answer = httpx.get(served.url, headers=sent, timeout=60, verify=NO_CERTIFICATES)
        assert name in answer.cookies, value


def test_of_several_cookies_the_signed_one_counts(served: Served, client: httpx.Client) -> None:
    """A program on another port can set one for a longer path, which is sent first."""
    token = _token(client)
    [cookie] = client.cookies.jar
    for others in (
        f"{cookie.name}=planted; {cookie.name}={cookie.value}",
        f"{cookie.name}={cookie.value}; {cookie.name}=planted",
    ):
        answer = httpx.post(
            f"{served.url}/part/preview",
            data={"csrf": token, "file": "notes/x.md"},
            headers={"cookie": others},
            timeout=60,
            verify=NO_CERTIFICATES,
        )
        assert answer.status_code == 200


def test_the_cookie_is_out_of_reach_of_scripts_and_of_other_sites(client: httpx.Client) -> None:
    cookie = client.get("/").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie


def test_a_refused_form_brings_the_token_with_which_it_is_taken(client: httpx.Client) -> None:
    """The script of the page sends it once more; a page of another origin cannot read it."""
    refused = client.post("/part/preview", data={"csrf": "x", "file": "notes/x.md"})
    assert refused.status_code == 403
    token = refused.headers["x-csrf-token"]
    answer = client.post("/part/preview", data={"csrf": token, "file": "notes/x.md"})
    assert answer.status_code == 200
    foreign = client.post("/part/preview", data={}, headers={"origin": "http://127.0.0.1:1"})
    assert "x-csrf-token" not in foreign.headers
    assert "access-control-allow-origin" not in refused.headers


def test_pages_are_not_kept_and_send_their_origin_with_forms(client: httpx.Client) -> None:
    answer = client.get("/")
    assert answer.headers["cache-control"] == "no-store"
    # With "no-referrer" the origin of a form would be "null", which is refused.
    assert answer.headers["referrer-policy"] == "same-origin"
    assert answer.headers["cross-origin-opener-policy"] == "same-origin"


def test_a_link_from_another_site_does_not_choose_the_language(client: httpx.Client) -> None:
    foreign = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert "qmd_lang" not in client.get("/?lang=zh", headers=foreign).cookies
    assert "qmd_lang" in client.get("/?lang=zh", headers={"sec-fetch-site": "none"}).cookies


@pytest.mark.parametrize(
    "body",
    [
        b"csrf=%ED%A0%80",
        "csrf=\u00e9".encode(),
        b"&".join(b"a=1" for _ in range(3000)),
        b"%" * 1000,
    ],
)
def test_a_form_that_cannot_be_read_is_refused(client: httpx.Client, body: bytes) -> None:
    _token(client)
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/part/preview", content=body, headers=headers).status_code in (400, 403)


def test_a_form_beyond_the_limit_of_a_request_is_refused(client: httpx.Client) -> None:
    token = _token(client)
    body = urlencode({"csrf": token, "text": "x" * (4 << 20)})
    headers = {"content-type": "application/x-www-form-urlencoded"}
    assert client.post("/part/preview", content=body, headers=headers).status_code == 413


@given(st.text(max_size=20))
def test_a_redirect_stays_on_this_server(rest: str) -> None:
    for address in (f"//{rest}", f"/\\{rest}", f"https:{rest}", rest.lstrip("/")):
        with pytest.raises(ValueError, match="no path on this server"):
            Site.redirect(address)
    location = Site.redirect(f"/note/{rest}").headers["location"]
    assert location.startswith("/note/")
    assert "\r" not in location
    assert "\n" not in location
