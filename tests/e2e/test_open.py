"""``--token auto`` and ``qmd open``: nobody types a token, and a browser gets in."""

from __future__ import annotations

import http.client
import json
import os
import re
import stat
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from support import child
from support.http_server import WAIT_S, Answer, Serving, qmd_server, request
from support.vault import make_index

from qmd.system import running
from tests.e2e.test_cli_terminal import on_terminal
from tests.support.cli import Scratch

posix = pytest.mark.skipif(sys.platform == "win32", reason="modes and terminals of POSIX")

Start = Callable[..., Serving]
PAGE = {"accept": "text/html,*/*"}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    scratch = Scratch(tmp_path)
    return scratch.with_env(QMD_DB=str(make_index(tmp_path)))


@pytest.fixture
def database(scratch: Scratch) -> Path:
    return Path(scratch.extra["QMD_DB"])


@pytest.fixture
def start(database: Path) -> Iterator[Start]:
    started: list[Serving] = []

    def begin(*options: str, serves: bool = True, **settings: Any) -> Serving:
        serving = qmd_server(database, *options, **settings)
        started.append(serving)
        if serves:
            assert serving.url  # from here on other processes find it
        return serving

    yield begin
    for serving in started:
        serving.__exit__(None, None, None)


def token_in(database: Path) -> str:
    server = running.find(database)
    assert server is not None
    assert server.token is not None
    return server.token


def enter(url: str, link: str) -> tuple[Answer, dict[str, str]]:
    """Open a link as a browser does: the answer, and the headers to ask with from then on."""
    answer = request(url, "GET", link.removeprefix(url), None, PAGE)
    cookie = answer.headers.get("set-cookie", "").partition(";")[0]
    return answer, {**PAGE, "cookie": cookie}


# --- the token ------------------------------------------------------------------------


@posix
def test_a_token_that_was_made_is_the_owners_alone_and_new_at_each_start(
    start: Start, database: Path
) -> None:
    tokens = []
    for _ in range(2):
        server = start("--token", "auto", "--log-format", "text", "--access-log")
        assert server.ask("GET", "/status").status == 401
        assert server.ask("GET", "/status", authorization="Bearer auto").status == 401
        token = token_in(database)
        assert server.ask("GET", "/status", authorization=f"Bearer {token}").status == 200
        file = running.file_for(database)
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        command_line = Path(f"/proc/{server.process.pid}/cmdline")
        if command_line.exists():
            assert token.encode() not in command_line.read_bytes()
        tokens.append(token)
        assert server.stop() == 0
        assert not file.exists()
        assert token not in server.stderr
    assert tokens[0] != tokens[1]
    assert all(len(token) >= 43 for token in tokens)  # 256 bits


@pytest.mark.parametrize("token", ["auto", "s3cret-of-my-own"])
def test_our_own_commands_find_the_token(start: Start, scratch: Scratch, token: str) -> None:
    server = start(environment={**os.environ, "QMD_TOKEN": token})
    assert server.ask("POST", "/search", {"query": "boat"}).status == 401
    found = scratch.ok("search", "--mode", "server", "--json", "boat")
    assert found.json()[0]["file"] == "notes/2025/plan.md"
    hopeless = "boat zeppelin quasar marmalade trombone glacier orchid sonata walnut monsoon"
    assert scratch.ok("search", "--mode", "server", hopeless).out.startswith(
        "Nothing here seems to answer this; the nearest are:\n\n"
    )
    assert server.url in scratch.ok("up").out
    [port] = [each for each in scratch.call("doctor", "--json").json() if each["name"] == "port"]
    assert port["message"] == f"The server at {server.url} answers who has its token"


def test_a_second_server_whose_token_nobody_would_find_does_not_start(start: Start) -> None:
    first = start("--token", "auto")
    second = start("--token", "auto", serves=False)
    assert second.process.wait(WAIT_S) == 1
    assert f"listens at {first.url} already" in second.stderr
    assert "QMD_TOKEN" in second.stderr


@posix
def test_a_token_that_cannot_be_kept_is_an_error(start: Start, database: Path) -> None:
    running.file_for(database).mkdir()  # a name that no file can take
    server = start("--token", "auto", serves=False)
    assert server.process.wait(WAIT_S) == 1
    assert "The token cannot be kept beside the database" in server.stderr
    assert "Traceback" not in server.stderr


# --- the browser ----------------------------------------------------------------------


@pytest.mark.unmeasured
def test_a_link_lets_a_browser_in_once(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto", "--access-log")
    link = scratch.ok("open", "--print").out.strip()
    code = link.partition("code=")[2]
    assert re.fullmatch(re.escape(server.url) + r"/open\?code=[\w-]{43}", link)
    answer, browser = enter(server.url, link)
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"
    cookie = answer.headers["set-cookie"].lower()
    assert {"httponly", "samesite=strict", "path=/"} <= set(cookie.split("; "))
    assert cookie.startswith(f"qmd_session_{urlsplit(server.url).port}=")
    page = request(server.url, "GET", "/", None, browser)
    assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b'role="search"' in page.body

    again, nobody = enter(server.url, link)
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert b"Run &#x27;qmd open&#x27; again" in again.body
    assert request(server.url, "GET", "/", None, nobody).headers["location"] == "/login"
    assert server.stop() == 0
    assert code not in server.stderr
    assert browser["cookie"].partition("=")[2] not in server.stderr


def test_a_program_gets_the_link_as_json(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    reply = scratch.ok("open", "--json").json()
    assert (reply["url"], reply["works_once"]) == (server.url, True)
    assert enter(server.url, reply["link"])[0].status == 303


@pytest.mark.unmeasured
def test_an_event_stream_works_in_a_browser(start: Start, scratch: Scratch, tmp_path: Path) -> None:
    server = start("--token", "auto")
    _, browser = enter(server.url, scratch.ok("open", "--print").out.strip())
    own = {**browser, "accept": "text/event-stream", "sec-fetch-site": "same-origin"}
    address = urlsplit(server.url)
    connection = http.client.HTTPConnection(address.hostname or "", address.port, timeout=WAIT_S)
    with closing(connection):
        connection.request("GET", "/events", headers=own)
        response = connection.getresponse()
        assert response.status == 200
        assert response.readline() == b": qmd\n"
        (tmp_path / "notes/new.md").write_text("# A new note\n")
        lines = iter(response.readline, b"")
        assert any(line == b"event: added\n" for line in lines)
        assert json.loads(next(lines).removeprefix(b"data: "))["path"] == "new.md"


def test_who_has_no_session_is_told_what_to_do(start: Start) -> None:
    server = start("--token", "auto")
    page = request(server.url, "GET", "/overview", None, PAGE)
    assert (page.status, page.headers["location"]) == (303, "/login?next=%2Foverview")
    assert b"qmd open" in page.body
    form = request(server.url, "GET", "/login", None, PAGE)
    assert (form.status, form.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert b"qmd open" in form.body
    program = request(server.url, "GET", "/")
    assert program.json()["status_code"] == 401
    assert "qmd open" in program.json()["detail"]
    assert request(server.url, "POST", "/open", {}).status == 401  # makes no links for strangers
    assert request(server.url, "GET", "/open?code=", None, PAGE).status == 403
    assert request(server.url, "HEAD", "/open?code=", None, PAGE).status == 401


def test_a_page_on_another_port_of_this_machine_is_refused(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    _, browser = enter(server.url, scratch.ok("open", "--print").out.strip())
    own, other = {**browser, "origin": server.url}, {**browser, "origin": "http://127.0.0.1:1"}
    for method, path, body in (("POST", "/search", {"query": "boat"}), ("GET", "/events", None)):
        assert request(server.url, method, path, body, other).status == 403
    assert request(server.url, "POST", "/search", {"query": "boat"}, own).status == 200
    same_site = {**browser, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors"}
    assert request(server.url, "GET", "/status", None, same_site).status == 403


OPEN = """
url, link = sys.argv[1:]
host, port = url.removeprefix("http://").rsplit(":", 1)
connection = http.client.HTTPConnection(host, int(port), timeout=60)
connection.request("GET", link)
print(connection.getresponse().status)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells the user of a peer")
def test_another_user_who_sees_the_link_cannot_open_it(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    link = scratch.ok("open", "--print").out.strip().removeprefix(server.url)
    assert child.as_user(child.OTHER_USER, OPEN, server.url, link) == "403"
    answer, _ = enter(server.url, link)
    assert answer.status == 303  # it was not used up


@pytest.mark.unmeasured
def test_a_link_leads_to_a_place_of_a_document(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    link = scratch.ok("open", "plan.md:3", "--print").out.strip()
    answer, _ = enter(server.url, link)
    assert answer.headers["location"] == "/note/notes/2025/plan.md?line=3"
    link = scratch.ok("open", "--print").out.strip()
    answer, _ = enter(server.url, f"{link}&next=https%3A%2F%2Fevil.example%2F")
    assert answer.headers["location"] == "/"
    missing = scratch.call("open", "none.md")
    assert missing.code == 1 and "none.md" in missing.err


# --- the command ----------------------------------------------------------------------


def test_without_a_token_the_link_is_the_page(start: Start, scratch: Scratch) -> None:
    server = start()
    assert scratch.ok("open").out == f"{server.url}/\n"
    answer = request(server.url, "GET", "/open?code=x")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert "set-cookie" not in answer.headers


def test_without_a_server_it_says_how_to_start_one(scratch: Scratch) -> None:
    result = scratch.call("open")
    assert result.code == 1
    assert "No qmd server is running for" in result.err
    assert "qmd up" in result.err


def browser_that(scratch: Scratch, lines: Sequence[str]) -> Scratch:
    program = scratch.write("browser", "\n".join(["#!/bin/sh", *lines, ""]))
    program.chmod(0o755)
    return scratch.with_env(BROWSER=f"{program} %s")


@posix
def test_on_a_terminal_it_starts_the_browser(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    asked = scratch.root / "asked"
    code, shown = on_terminal(browser_that(scratch, [f'echo "$1" > {asked}']), "open")
    assert (code, shown) == (0, f"Opened {server.url}/ in the browser.\n")
    answer, _ = enter(server.url, asked.read_text().strip())
    assert answer.status == 303


@posix
def test_where_no_browser_starts_the_link_is_shown(start: Start, scratch: Scratch) -> None:
    server = start("--token", "auto")
    # What else webbrowser tries on a machine without a desktop are programs on PATH.
    bare = browser_that(scratch, ["exit 1"]).with_env(PATH="/nonexistent", DISPLAY="")
    code, shown = on_terminal(bare, "open")
    assert code == 0
    link = re.search(re.escape(server.url) + r"/open\?code=\S+", shown)
    assert link is not None, shown
    assert enter(server.url, link[0])[0].status == 303
