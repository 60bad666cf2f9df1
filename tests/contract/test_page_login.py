"""A person logs in to the page with a token, sees what it opens, and logs out."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from support.embedder import HashEmbedder
from support.live import put
from support.live_app import LiveApp
from support.rest import client_of
from support.site import http_client

from qmd import KnowledgeBase, Settings
from qmd.server.app import build_app
from qmd.server.security import security_for
from qmd.server.sessions import MAX_FORM_BYTES

TOKEN = re.compile(r'<meta name="csrf" content="([^"]+)">')
#: What a browser sends with each page that it loads by a link of the same site.
PAGE = {"accept": "text/html", "sec-fetch-site": "same-origin"}


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    root = tmp_path_factory.mktemp("login")
    for name in ("work", "inbox", "closedroom"):
        put(root / name / f"{name}.md", f"# The {name}\n\nrocket\n")
    settings = Settings(embedder=HashEmbedder(), write_roots=[root])
    with KnowledgeBase.open(root / "index.sqlite", settings, create=True) as kb:
        for name in ("work", "inbox", "closedroom"):
            kb.add_collection(root / name, name=name)
        kb.index()
        yield kb


@pytest.fixture(scope="module")
def url(kb: KnowledgeBase) -> Iterator[str]:
    with LiveApp(kb, token="admin") as app:
        yield app.url


@pytest.fixture
def browser(url: str) -> Iterator[httpx.Client]:
    with http_client(url, headers=PAGE) as client:
        yield client


@pytest.fixture
def token(kb: KnowledgeBase) -> Iterator[str]:
    yield kb.create_token("anna", read=["work"], write=["inbox"]).token
    if any(each.name == "anna" for each in kb.tokens()):
        kb.revoke_token("anna")


def csrf(page: httpx.Response) -> str:
    match = TOKEN.search(page.text)
    assert match is not None
    return match[1]


def log_in(browser: httpx.Client, token: str, address: str = "/login") -> httpx.Response:
    form = {"csrf": csrf(browser.get(address)), "token": token, "next": "/overview"}
    return browser.post("/login", data=form)


def test_a_page_leads_to_the_form_and_the_form_back_to_the_page(
    browser: httpx.Client, token: str
) -> None:
    to_form = browser.get("/note/work/work.md?lang=en")
    assert to_form.status_code == 303
    form = browser.get(to_form.headers["location"])
    assert form.status_code == 200
    assert 'name="next" value="/note/work/work.md?lang=en"' in form.text
    assert "closedroom" not in form.text
    for address in re.findall(r'(?:href|src)="(/static/[^"]+)"', form.text):
        assert browser.get(address).status_code == 200
    sent = {"csrf": csrf(form), "token": f" {token}\n", "next": "/note/work/work.md"}
    entered = browser.post("/login", data=sent)
    assert (entered.status_code, entered.headers["location"]) == (303, "/note/work/work.md")
    cookie = entered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert token not in str(entered.headers)
    assert "The work" in browser.get("/note/work/work.md").text


def test_the_page_shows_what_the_token_opens_and_nothing_that_it_may_not_do(
    browser: httpx.Client, token: str
) -> None:
    assert log_in(browser, token).status_code == 303
    for address in (
        "/",
        "/?q=rocket",
        "/overview",
        "/new",
        "/ask",
    ):
        answer = browser.get(address)
        assert answer.status_code in (200, 404), address
        assert "closedroom" not in answer.text.replace(address, ""), address
    overview = browser.get("/overview").text
    for action in ("index", "embed", "check", "collections/new", "context"):
        assert f'"/overview/{action}' not in overview
    assert "anna" in overview
    assert 'href="/edit/inbox/' in browser.get("/note/inbox/inbox.md").text
    assert 'href="/edit/work/' not in browser.get("/note/work/work.md").text
    shown = browser.get("/overview")
    refused = browser.post("/overview/index", data={"csrf": csrf(shown)})
    assert refused.status_code == 403


@pytest.mark.parametrize("wrong", ["", "qmd_wrong", "other", "\x00", "ä" * 100])
def test_another_token_begins_no_session(browser: httpx.Client, wrong: str) -> None:
    answer = log_in(browser, wrong)
    assert answer.status_code == 401
    assert "qmd_session" not in answer.headers.get("set-cookie", "")
    assert "not valid" in answer.text
    assert wrong not in answer.text or not wrong
    assert browser.get("/overview").status_code == 303


def test_a_session_ends_when_its_token_is_revoked(
    browser: httpx.Client, kb: KnowledgeBase, token: str
) -> None:
    log_in(browser, token)
    assert browser.get("/overview").status_code == 200
    kb.revoke_token("anna")
    assert browser.get("/overview").status_code == 303
    assert browser.get("/status", headers={"accept": "application/json"}).status_code == 401


def test_a_session_ends_when_the_person_logs_out(browser: httpx.Client, token: str) -> None:
    log_in(browser, token)
    cookies = dict(browser.cookies)
    page = browser.get("/overview")
    assert 'action="/logout"' in page.text
    assert browser.post("/logout", data={"csrf": "x"}).status_code == 403
    left = browser.post("/logout", data={"csrf": csrf(browser.get("/overview"))})
    assert (left.status_code, left.headers["location"]) == (303, "/login")
    browser.cookies.update(cookies)  # whoever has kept the cookie
    assert browser.get("/overview").status_code == 303


def test_the_administrator_logs_in_and_out_too(browser: httpx.Client) -> None:
    assert log_in(browser, "admin").status_code == 303
    page = browser.get("/overview")
    assert "closedroom" in page.text
    assert '"/overview/index"' in page.text
    browser.post("/logout", data={"csrf": csrf(page)})
    assert browser.get("/overview").status_code == 303


def test_a_form_of_another_page_begins_no_session(browser: httpx.Client, token: str) -> None:
    """Else a stranger could let a person write into the stranger's collection."""
    right = csrf(browser.get("/login"))
    for form, headers in (
        ({"token": token}, {}),
        ({"token": token, "csrf": "a.b"}, {}),
        ({"token": token, "csrf": right}, {"sec-fetch-site": "cross-site"}),
        ({"token": token, "csrf": right}, {"origin": "http://127.0.0.1:1"}),
    ):
        answer = browser.post("/login", data=form, headers=headers)
        assert answer.status_code == 403
        assert "qmd_session" not in answer.headers.get("set-cookie", "")


def test_a_session_is_of_use_to_pages_of_this_server_alone(
    browser: httpx.Client, token: str
) -> None:
    log_in(browser, token)
    for headers in (
        {"sec-fetch-site": "same-site"},
        {"sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1"},
    ):
        assert browser.post("/search", json={"query": "rocket"}, headers=headers).status_code == 403
    assert browser.post("/search", json={"query": "rocket"}).status_code == 200


@pytest.mark.parametrize("following", ["//evil.example", "/\\evil.example", "https://evil.example"])
def test_nobody_is_led_to_another_site(browser: httpx.Client, token: str, following: str) -> None:
    form = browser.get("/login", params={"next": following})
    assert "evil" not in form.text.replace("next=", "")
    sent = {"csrf": csrf(form), "token": token, "next": following}
    assert browser.post("/login", data=sent).headers["location"] == "/"


def test_a_long_form_is_refused(browser: httpx.Client) -> None:
    assert browser.post("/login", content=b"x" * (MAX_FORM_BYTES + 1)).status_code == 413


def test_a_server_without_a_token_has_no_form(kb: KnowledgeBase, tmp_path: Path) -> None:
    with LiveApp(kb) as app, http_client(app.url, headers=PAGE) as browser:
        assert browser.get("/login").status_code == 404
        assert 'action="/logout"' not in browser.get("/overview").text


# --- behind a proxy with TLS -----------------------------------------------------------


def forwarded_by_nginx() -> dict[str, str]:
    """The headers that the block in the documentation sends for https://notes.example.org:19443."""
    text = (Path(__file__).parents[2] / "docs/server.md").read_text(encoding="utf-8")
    values = {
        "$host": "notes.example.org",
        "$http_host": "notes.example.org:19443",
        "$scheme": "https",
    }
    lines = re.findall(r"^ *proxy_set_header (\S+) (\S+);", text, re.MULTILINE)
    return {name: values[value] for name, value in lines}


def cookies_of(response: httpx.Response) -> list[str]:
    return response.headers.get_list("set-cookie")


@pytest.mark.parametrize("headers", [forwarded_by_nginx(), {"Host": "notes.example.org:19443"}])
def test_a_person_logs_in_through_a_proxy_and_the_cookie_is_for_https(
    kb: KnowledgeBase, headers: dict[str, str]
) -> None:
    security = security_for("127.0.0.1", "admin", ["notes.example.org"])
    with client_of(build_app(kb, security=security), headers=headers) as browser:
        page = browser.get("/login", headers=PAGE)
        (of_forms,) = cookies_of(page)
        form = {"csrf": csrf(page), "token": "admin", "next": "/"}
        sent = PAGE | {
            "origin": "https://notes.example.org:19443",
            "cookie": of_forms.partition(";")[0],
        }
        answer = browser.post("/login", data=form, headers=sent)
        (of_session,) = cookies_of(answer)
        in_session = sent | {"cookie": of_session.partition(";")[0]}
        searched = browser.post("/search", json={"query": "rocket"}, headers=in_session)
    assert answer.status_code == 303
    assert searched.status_code == 200
    assert "; Secure" in of_session
    assert ("; Secure" in of_forms) == ("X-Forwarded-Proto" in headers)


def test_without_tls_the_cookie_is_for_http_too(browser: httpx.Client) -> None:
    assert "Secure" not in "".join(cookies_of(log_in(browser, "admin")))
