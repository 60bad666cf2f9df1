"""
Find the proxy that the environment names, and open connections through it.

The environment is ``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY`` and ``NO_PROXY``, or the settings
of Windows and macOS. No error message has the proxy's address, because that may have a password.
"""

from __future__ import annotations

import base64
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from qmd import libraries

_MAX_HEAD_BYTES = 1 << 16
_DEFAULT_PORTS = {"http": 80, "socks5": 1080, "socks5h": 1080}


class ProxyError(Exception):
    """The proxy that the environment names cannot be used."""


class SocksSupportError(ProxyError):
    """The proxy speaks SOCKS, and the package `socksio` is not installed."""


@dataclass(frozen=True, slots=True)
class Proxy:
    """The address of a proxy and the user's login; ``scheme`` is http, socks5 or socks5h."""

    scheme: str
    host: str
    port: int
    user: str | None = None
    password: str = field(default="", repr=False)

    @property
    def is_socks(self) -> bool:
        return self.scheme != "http"

    @property
    def authorization(self) -> dict[str, str]:
        """The header with the login, as a mapping; empty if there is no user."""
        if self.user is None:
            return {}
        pair = f"{self.user}:{self.password}".encode()
        return {"Proxy-Authorization": "Basic " + base64.b64encode(pair).decode()}

    def open_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        """
        Let the proxy connect ``link``, a connection to the proxy, with ``host``.

        Args:
            left_s: Gives the seconds that remain; raises TimeoutError if none remain.

        Raises:
            OSError: The proxy refuses, or its answer is not that of a proxy.
        """
        if self.is_socks:
            self._socks_tunnel(link, host, port, left_s)
        else:
            self._http_tunnel(link, host, port, left_s)

    def _http_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        name = f"[{host}]" if ":" in host else host.encode("idna").decode("ascii")
        target = f"{name}:{port}"
        headers = {"Host": target} | self.authorization
        lines = [
            f"CONNECT {target} HTTP/1.1",
            *(f"{key}: {value}" for key, value in headers.items()),
        ]
        link.sendall("\r\n".join([*lines, "", ""]).encode("ascii"))
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            link.settimeout(left_s())
            byte = link.recv(1)  # the bytes after the head are from the server
            if not byte or len(head) > _MAX_HEAD_BYTES:
                raise OSError("the proxy does not answer as one")
            head += byte
        status = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")[2]
        if not status.startswith("2"):
            raise OSError(f"the proxy answered {status}")

    def _socks_tunnel(
        self, link: socket.socket, host: str, port: int, left_s: Callable[[], float]
    ) -> None:
        """SOCKS5 (RFC 1928) with or without a user (RFC 1929); the proxy resolves the name."""
        from socksio import ProtocolError, socks5

        dialogue = socks5.SOCKS5Connection()

        def ask(message: object) -> Any:
            dialogue.send(message)
            link.settimeout(left_s())
            link.sendall(dialogue.data_to_send())
            data = link.recv(1024)
            if not data:
                raise OSError("the proxy closed the connection")
            return dialogue.receive_data(data)

        methods = [socks5.SOCKS5AuthMethod.NO_AUTH_REQUIRED]
        if self.user is not None:
            methods = [socks5.SOCKS5AuthMethod.USERNAME_PASSWORD]
        try:
            chosen = ask(socks5.SOCKS5AuthMethodsRequest(methods))
            if chosen.method not in methods:
                raise OSError("the proxy wants another user")
            if self.user is not None:
                pair = (self.user.encode(), self.password.encode())
                if not ask(socks5.SOCKS5UsernamePasswordRequest(*pair)).success:
                    raise OSError("the proxy refuses the user")
            command = socks5.SOCKS5Command.CONNECT
            reply = ask(socks5.SOCKS5CommandRequest.from_address(command, (host, port)))
        except ProtocolError:
            raise OSError("the proxy does not speak SOCKS5") from None
        if reply.reply_code != socks5.SOCKS5ReplyCode.SUCCEEDED:
            raise OSError(f"the proxy cannot connect ({reply.reply_code.name})")


def for_url(url: str) -> Proxy | None:
    """
    The proxy for this address, or None.

    Raises:
        ProxyError: The address cannot be read, or the kind of proxy is not supported.
        SocksSupportError: The package `socksio` is missing.
    """
    # Imported late: it takes 15 ms, and requests to a server on this machine need no proxy.
    parts = urlsplit(url)
    proxies = libraries.request.getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    port = parts.port or (443 if parts.scheme == "https" else 80)
    if not address or libraries.request.proxy_bypass(f"{parts.hostname}:{port}"):
        return None
    proxy = _parse(address)
    if proxy.is_socks:
        try:
            import socksio  # noqa: F401
        except ImportError:
            raise SocksSupportError("it speaks SOCKS") from None
    return proxy


def _parse(address: str) -> Proxy:
    """Parse the address of a proxy. Raises ProxyError, whose message lacks the address."""
    try:
        parts = urlsplit(address if "://" in address else f"http://{address}")
        proxy = Proxy(
            scheme=parts.scheme,
            host=parts.hostname or "",
            port=parts.port or _DEFAULT_PORTS[parts.scheme],
            user=None if parts.username is None else unquote(parts.username),
            password=unquote(parts.password or ""),
        )
    except (ValueError, KeyError):  # their messages quote a part of the address
        raise ProxyError("the address of the proxy cannot be read") from None
    if proxy.scheme not in _DEFAULT_PORTS or not proxy.host:
        raise ProxyError("the proxy is of a kind that is not supported")
    return proxy
