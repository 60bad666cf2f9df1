"""
Fetch pages and pictures of the web for a person, without reaching what only this machine reaches.

An address may come from anybody: a page that redirects, a model, a list. So each one is judged
after its name was looked up, and the connection goes to just the address that was judged; a name
server that answers differently the next time changes nothing. What ``robots.txt`` forbids to
``qmd`` is not fetched. Cookies and keys are never sent.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit, urlunsplit

from qmd.engine_text import engine_text
from qmd.errors import InputError, WebPageError
from qmd.system import clock, http_client
from qmd.system.http_client import HttpError, HttpReply, TimeLimit, UnreachableError, request
from qmd.values.text import one_line

AGENT = "qmd"
#: Redirects that are followed for one address.
MAX_REDIRECTS = 5
#: Characters of an address.
MAX_ADDRESS = 2000

_ROBOTS_BYTES = 500_000
_ROBOTS_RULES = 2000
_ROBOTS_HOSTS = 200  # whose rules are kept at once
_ROBOTS_NS = 3_600_000_000_000
_ADDRESSES = 4  # of one name that are tried
_REDIRECTS = frozenset((301, 302, 303, 307, 308))
#: IPv6 addresses behind which an IPv4 address stands, with the bits below which it stands there.
_WITH_IPV4 = ((ipaddress.IPv6Network("64:ff9b::/96"), 0), (ipaddress.IPv6Network("2002::/16"), 80))
_SAVE_IT = "Open it in a browser, save it as a file, then: qmd save FILE.html"


class Fetched(NamedTuple):
    """
    What is at an address.

    Attributes:
        address: Where it was found, after redirects.
        media_type: In lower case, without parameters; "" if the server names none.
        charset: As the server names it, or "".
    """

    address: str
    media_type: str
    charset: str
    data: bytes


class Web:
    """
    Fetches what is on the web. It keeps the ``robots.txt`` of the hosts that it has asked.

    Args:
        allow_private: Also fetch from this machine and from networks that are not public.
    """

    def __init__(self, *, allow_private: bool = False) -> None:
        self._allow_private = allow_private
        self._robots: dict[str, tuple[int, Robots]] = {}  # until when, in nanoseconds

    def get(
        self,
        url: str,
        limit: TimeLimit,
        *,
        max_bytes: int,
        max_of_type: Mapping[str, int] | None = None,
        accept: str = "*/*",
    ) -> Fetched:
        """
        Fetch what is at an address.

        Args:
            limit: The time for all of it, redirects included.
            max_bytes: The most bytes of the body.
            max_of_type: The same for some media types.
            accept: The header ``Accept``.

        Raises:
            InputError: It is no address of the web.
            WebPageError: It must not or cannot be fetched, or is too long.
        """
        address = checked_address(url)
        for _ in range(MAX_REDIRECTS + 1):
            if not self._robots_of(address, limit).allows(_path(address)):
                raise WebPageError(
                    engine_text("The site does not let programs read {url}.", url=address),
                    hint=_SAVE_IT,
                )
            with ExitStack() as stack:
                reply = self._ask(address, limit, accept, stack)
                target = reply.headers.get("location") if reply.status in _REDIRECTS else None
                if target is None:
                    return _fetched(address, reply, max_bytes, max_of_type or {})
            address = checked_address(_joined(address, target))
        raise WebPageError(
            engine_text("{url} leads from redirect to redirect.", url=checked_address(url)),
            hint="Open it in a browser, and save the address where that ends.",
        )

    def _robots_of(self, url: str, limit: TimeLimit) -> Robots:
        """
        The rules of a site; those of one without rules allow all.

        Raises:
            WebPageError: The site cannot be asked; it would not give the page either.
        """
        parts = urlsplit(url)
        site = f"{parts.scheme}://{parts.netloc}"
        until, robots = self._robots.get(site, (0, Robots("")))
        if clock.now_ns() >= until:
            if len(self._robots) >= _ROBOTS_HOSTS:
                self._robots.clear()
            robots = self._read_robots(f"{site}/robots.txt", limit)
            self._robots[site] = clock.now_ns() + _ROBOTS_NS, robots
        return robots

    def _read_robots(self, address: str, limit: TimeLimit) -> Robots:
        for _ in range(MAX_REDIRECTS + 1):
            with ExitStack() as stack:
                reply = self._ask(address, limit, "text/plain", stack)
                target = reply.headers.get("location") if reply.status in _REDIRECTS else None
                if target is None:
                    if reply.status >= 500:  # RFC 9309: then nothing may be read
                        return Robots("User-agent: *\nDisallow: /")
                    if reply.status != 200:
                        return Robots("")
                    return Robots(reply.beginning(_ROBOTS_BYTES).decode("utf-8", "replace"))
            try:
                address = checked_address(_joined(address, target))
            except InputError:
                break
        return Robots("")

    def _ask(self, url: str, limit: TimeLimit, accept: str, stack: ExitStack) -> HttpReply:
        """Send a request to the first address of the host that answers. Raises WebPageError."""
        headers = {"Accept": accept, "Accept-Encoding": "gzip"}
        addresses = self._addresses(url)
        for address in addresses:
            try:
                sent = request(url, limit=limit, headers=headers, address=address)
                return stack.enter_context(sent)
            except UnreachableError as error:
                if address == addresses[-1]:
                    raise _unreachable(url, error) from None
            except (HttpError, http_client.ProxyError) as error:
                raise _unreachable(url, error) from None
        raise AssertionError

    def _addresses(self, url: str) -> Sequence[str | None]:
        """
        The addresses of the host to which a request may go; [None] if a proxy looks them up.

        Raises:
            WebPageError: There are none.
        """
        parts = urlsplit(url)
        host = parts.hostname or ""
        try:
            by_proxy = http_client.proxy_for(url) is not None
        except http_client.ProxyError as error:
            raise _unreachable(url, error) from None
        try:
            port = parts.port or (443 if parts.scheme == "https" else 80)
            answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            if by_proxy and not _is_local_name(host):
                return [None]
            raise WebPageError(
                engine_text("There is no host {host}.", host=one_line(host)),
                hint="Check the address, and the connection of this machine.",
            ) from None
        addresses = list(dict.fromkeys(str(each[4][0]) for each in answers))
        if not self._allow_private:
            addresses = [each for each in addresses if is_public(each)]
        if not addresses:
            raise WebPageError(
                engine_text(
                    "{host} is this machine or in a network that is not public.",
                    host=one_line(host),
                ),
                hint="The setting allow_private_addresses = true lets qmd fetch there; for once:"
                " qmd save --allow-private-addresses",
            )
        return [None] if by_proxy else addresses[:_ADDRESSES]


class Robots:
    """The rules of a ``robots.txt`` for qmd, as RFC 9309 reads them."""

    def __init__(self, text: str) -> None:
        self._rules = _rules(text)

    def allows(self, path: str) -> bool:
        """Whether a path with its query may be fetched: the longest rule that fits says so."""
        path = _normal(path)
        fitting = [(len(rule), allow) for rule, allow in self._rules if _fits(rule, path)]
        return max(fitting)[1] if fitting else True


def _rules(text: str) -> list[tuple[str, bool]]:
    """The rules for qmd, else those for all: the path that each is about, and if it allows it."""
    groups: dict[str, list[tuple[str, bool]]] = {}
    agents: list[str] = []
    were_rules = False
    for line in text.splitlines():
        name, _, value = line.partition("#")[0].partition(":")
        name, value = name.strip().lower(), value.strip()
        if name == "user-agent":
            if were_rules:
                agents, were_rules = [], False
            agents.append(value.lower())
            groups.setdefault(value.lower(), [])
        elif name in ("allow", "disallow"):
            were_rules = True
            for agent in dict.fromkeys(agents) if value else ():
                if len(groups[agent]) < _ROBOTS_RULES and len(value) <= MAX_ADDRESS:
                    groups[agent].append((_normal(value), name == "allow"))
    return groups.get(AGENT, groups.get("*", []))


def _fits(rule: str, path: str) -> bool:
    """Whether a path begins as a rule says, in which ``*`` is anything and ``$`` the end."""
    first, *parts = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    place = len(first)
    must_end = rule.endswith("$")
    if must_end and not parts:
        return place == len(path)
    last = parts.pop() if must_end else ""
    for part in parts:
        at = path.find(part, place)
        if at < 0:
            return False
        place = at + len(part)
    return path.endswith(last, place)


def _normal(path: str) -> str:
    return quote(unquote(path, errors="surrogateescape"), safe="/?*$=&:;,+@!~'()", errors="replace")


def checked_address(url: str) -> str:
    """
    An address of the web, as it is asked for and kept: without its fragment.

    Raises:
        InputError: It is none.
    """
    text = url.strip()
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for one that is no number
    except ValueError:
        parts = urlsplit("")
    hint = "It begins with https:// or http://, such as https://example.org/page."
    host = parts.hostname or ""
    # Whatever looks like a number is one for the system: 0x7f.1 is this machine, and is judged so.
    if parts.scheme not in ("http", "https") or not host or len(text) > MAX_ADDRESS:
        raise InputError(
            engine_text("{url} is no address of a web page.", url=one_line(text[:200])), hint=hint
        )
    if parts.username is not None or re.search(r"[\x00-\x20\x7f\\]", text):
        raise InputError(
            engine_text("{url} has a password or blanks in it.", url=one_line(text[:200])),
            hint=hint,
        )
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/", parts.query, ""))


def is_public(address: str) -> bool:
    """Whether an IP address is one of the public internet."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        inside = _ipv4_in(ip)
        if inside is not None:
            return is_public(str(inside))
    return ip.is_global and not ip.is_multicast


def _ipv4_in(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    if ip.ipv4_mapped is not None:
        return ip.ipv4_mapped
    for network, shift in _WITH_IPV4:
        if ip in network:
            return ipaddress.IPv4Address(int(ip) >> shift & 0xFFFFFFFF)
    return None


def _is_local_name(host: str) -> bool:
    name = host.lower().rstrip(".")
    return name == "localhost" or name.endswith((".localhost", ".local", ".internal"))


def _fetched(
    address: str, reply: HttpReply, max_bytes: int, max_of_type: Mapping[str, int]
) -> Fetched:
    if reply.status != 200:
        raise WebPageError(
            engine_text("{url} answered {status}.", url=address, status=reply.status),
            hint=_hint_after(reply.status),
        )
    kind, parameters = _media_type(reply.headers)
    try:
        data = reply.read(max_of_type.get(kind, max_bytes))
    except HttpError as error:
        raise _unreachable(address, error) from None
    return Fetched(address, kind, parameters, data)


def _hint_after(status: int) -> str:
    if status in (401, 403, 429):
        return "Open it in a browser; if it is there, save it as a file, then: qmd save FILE.html"
    return "Try again later." if status >= 500 else "Check the address."


def _media_type(headers: Mapping[str, str]) -> tuple[str, str]:
    kind, _, parameters = headers.get("content-type", "").partition(";")
    match = re.search(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", parameters, re.IGNORECASE)
    return kind.strip().lower(), match[1] if match else ""


def _path(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _joined(address: str, target: str) -> str:
    try:
        return urljoin(address, target)
    except ValueError:
        return target


def _unreachable(url: str, error: Exception) -> WebPageError:
    return WebPageError(
        engine_text("{url} cannot be fetched: {reason}.", url=url, reason=one_line(str(error))),
        hint="Try again later, or open it in a browser and save it as a file.",
    )


def addresses_in(text: str) -> Iterator[str]:
    """The addresses of a list: one in each line, which may begin with ``-`` or end with a note."""
    for line in text.splitlines():
        match = re.search(r"https?://[^\s<>()\[\]\"']+", line.partition(" #")[0])
        if match:
            yield match[0]
