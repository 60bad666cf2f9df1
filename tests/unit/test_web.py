"""Fetching from the web: which addresses are asked, which redirects followed, which rules kept."""

from __future__ import annotations

import ipaddress
import socket
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from support.web_site import Reply, Site, page, redirect

from qmd.errors import InputError, WebPageError
from qmd.system.http_client import TimeLimit
from qmd.system.web import Fetched, Robots, Web, addresses_in, checked_address, is_public


def get(web: Web, url: str, *, max_bytes: int = 100_000, seconds: float = 30) -> Fetched:
    return web.get(url, TimeLimit(seconds, seconds), max_bytes=max_bytes)


@pytest.mark.parametrize(
    "address",
    [
        *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "0.0.0.0"),
        *("100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "::", "fe80::1", "fe80::1%eth0"),
        *("fd00::1", "ff02::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::", "x"),
    ],
)
def test_an_address_of_this_machine_or_of_its_network_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["93.184.216.34", "2606:2800:220:1::1", "64:ff9b::808:808", "::ffff:8.8.8.8"]
)
def test_addresses_of_the_internet_are_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]"]
)
def test_this_machine_is_not_asked_however_it_is_written(host: str) -> None:
    with Site({"/": page("Secret", "<p>x</p>")}) as site:
        port = site.url.rpartition(":")[2]
        with pytest.raises(WebPageError, match=r"not public|no host"):
            get(Web(), f"http://{host}:{port}/")
        assert site.asked == []


def test_a_redirect_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if 127.0.0.1 were an address of the internet."""
    is_global = property(lambda address: str(address) == "127.0.0.1")
    monkeypatch.setattr(ipaddress.IPv4Address, "is_global", is_global)
    with Site({"/": redirect("/there"), "/there": page("There", "")}) as site:
        web = Web()
        assert get(web, f"{site.url}/").address == f"{site.url}/there"
        for host in ("127.0.0.2", "[::1]", "10.0.0.1"):
            site.pages["/"] = redirect(f"http://{host}/secret")
            with pytest.raises(WebPageError, match="not public"):
                get(web, f"{site.url}/")


def test_a_name_is_looked_up_once_and_that_address_is_connected_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A name server that answers differently the next time (DNS rebinding) changes nothing."""
    lookups: list[str] = []

    def lookup(host: str, port: int, *_: Any, **options: Any) -> Any:
        lookups.append(host)
        address = "127.0.0.1" if host == "127.0.0.1" or lookups.count(host) == 1 else "127.0.0.9"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]

    monkeypatch.setattr(socket, "getaddrinfo", lookup)
    with Site({"/robots.txt": Reply(), "/": page("T", "")}) as site:
        port = site.url.rpartition(":")[2]
        web = Web(allow_private=True)
        web._robots[f"http://rebinds.example:{port}"] = (1 << 63, Robots(""))
        assert get(web, f"http://rebinds.example:{port}/").data
        assert lookups.count("rebinds.example") == 1


def test_redirects_are_followed_a_few_times() -> None:
    pages = {f"/{n}": redirect(f"/{n + 1}", 301 + n % 2) for n in range(9)} | {"/9": page("T", "")}
    with Site(pages) as site:
        web = Web(allow_private=True)
        assert get(web, f"{site.url}/4").address == f"{site.url}/9"
        with pytest.raises(WebPageError, match="redirect to redirect"):
            get(web, f"{site.url}/0")
        for target in ("file:///etc/passwd", "ftp://example.org/", "http://[bad", ""):
            site.pages["/0"] = redirect(target)
            with pytest.raises((InputError, WebPageError)):
                get(web, f"{site.url}/0")


def test_what_is_too_long_or_too_slow_or_broken_is_given_up() -> None:
    def endless(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.end_headers()
        try:
            while True:
                handler.wfile.write(b"x" * 65536)
        except OSError:
            pass

    def silent(handler: BaseHTTPRequestHandler) -> None:
        handler.rfile.read(1)

    with Site({"/endless": Reply(endless), "/silent": Reply(silent)}) as site:
        web = Web(allow_private=True)
        with pytest.raises(WebPageError, match="more than"):
            get(web, f"{site.url}/endless")
        with pytest.raises(WebPageError, match="in time"):
            get(web, f"{site.url}/silent", seconds=0.2)
        with pytest.raises(WebPageError, match="answered 404"):
            get(web, f"{site.url}/missing")


def test_what_robots_txt_forbids_is_not_asked_for() -> None:
    robots = b"User-agent: *\nDisallow: /private\nAllow: /private/open\n"
    pages = {
        "/robots.txt": Reply(robots, "text/plain"),
        "/private/open": page("Open", ""),
        "/private/shut": page("Shut", ""),
    }
    with Site(pages) as site:
        web = Web(allow_private=True)
        get(web, f"{site.url}/private/open")
        with pytest.raises(WebPageError, match="does not let programs"):
            get(web, f"{site.url}/private/shut")
        assert site.asked == ["/robots.txt", "/private/open"]
        site.pages["/robots.txt"] = Reply(status=503)
        with pytest.raises(WebPageError, match="does not let programs"):
            get(Web(allow_private=True), f"{site.url}/private/open")


@pytest.mark.parametrize(
    ("rules", "path", "allowed"),
    [
        ("", "/x", True),
        ("User-agent: *\nDisallow:", "/x", True),
        ("User-agent: other\nDisallow: /", "/x", True),
        ("User-agent: *\nDisallow: /\nUser-agent: QMD\nAllow: /a", "/x", True),
        ("User-agent: a\nUser-agent: qmd # us\nDisallow: /x", "/xy", False),
        ("User-agent: *\nDisallow: /*.php$", "/a/b.php", False),
        ("User-agent: *\nDisallow: /*.php$", "/a/b.php?x", True),
        ("User-agent: *\nDisallow: /a*z*b", "/a-z-b-", False),
        ("User-agent: *\nDisallow: /%E4%B8%AD", "/中", False),
        ("User-agent: *\nDisallow: /x\nAllow: /x", "/x", True),
        ("User-agent: *\nDisallow: /" + "*a" * 900 + "$", "/" + "a" * 1900 + "b", True),
    ],
)
def test_robots_txt_is_read_as_rfc_9309_says(rules: str, path: str, allowed: bool) -> None:
    assert Robots(rules).allows(path) is allowed


@pytest.mark.parametrize(
    "text",
    [
        *("", "example.org", "file:///etc/passwd", "javascript:alert(1)", "http://", "http://[x"),
        *(
            "http://a:99999/",
            "http://u:p@example.org/",
            "http://a b/",
            "http://a\\@b/",
            "http://a/\r\n",
        ),
        "http://e.org/" + "x" * 2000,
    ],
)
def test_what_is_no_address_of_the_web_is_refused(text: str) -> None:
    if text.strip() == "http://a/":  # blanks around it are no part of it
        assert checked_address(text) == "http://a/"
        return
    with pytest.raises(InputError):
        checked_address(text)


def test_an_address_loses_its_fragment() -> None:
    assert checked_address(" https://e.org?q=1#part ") == "https://e.org/?q=1"


def test_a_list_has_an_address_in_each_line() -> None:
    text = "# links\nhttps://a.org/1\n- [A](https://b.org/x?y=1) good\n\nno\n<http://c.org>\n"
    assert list(addresses_in(text)) == ["https://a.org/1", "https://b.org/x?y=1", "http://c.org"]
