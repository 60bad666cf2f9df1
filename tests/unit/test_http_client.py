"""The HTTP client: limits of time and size, the way through proxies, and what it never does."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from qmd.system import http_client
from qmd.system.http_client import TimeLimit

AMPLE_S = 30.0
BRIEF_S = 0.3
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
PROXY_VARIABLES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")

Talk = Callable[[socket.socket, "TalkingServer"], None]


class TalkingServer:
    """A server on this machine that does with each connection what ``talk`` does."""

    def __init__(self, talk: Talk, context: ssl.SSLContext | None = None) -> None:
        self._talk = talk
        self._context = context
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.closing = threading.Event()
        self.heads: list[str] = []
        self._threads: list[threading.Thread] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def read_head(self, link: socket.socket) -> str:
        """The head of a request, which is noted in ``heads``."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = link.recv(1)
            if not byte:
                break
            head += byte
        self.heads.append(head.decode("latin-1"))
        return self.heads[-1]

    def __enter__(self) -> TalkingServer:
        self._start(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(AMPLE_S)

    def _start(self, target: Callable[..., None], *arguments: object) -> None:
        thread = threading.Thread(target=target, args=arguments, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                self._start(self._serve, self._listening.accept()[0])

    def _serve(self, plain: socket.socket) -> None:
        plain.settimeout(5)
        with contextlib.suppress(OSError), plain:
            if self._context is None:
                self._talk(plain, self)
            else:
                with self._context.wrap_socket(plain, server_side=True) as link:
                    self._talk(link, self)


def answering(answer: bytes) -> Talk:
    def talk(link: socket.socket, server: TalkingServer) -> None:
        server.read_head(link)
        link.sendall(answer)

    return talk


def dripping(beginning: bytes, drop: bytes, every_s: float = BRIEF_S / 15) -> Talk:
    def talk(link: socket.socket, server: TalkingServer) -> None:
        server.read_head(link)
        link.sendall(beginning)
        while not server.closing.wait(every_s):
            link.sendall(drop)

    return talk


def get(url: str, *, limit: TimeLimit | None = None, max_bytes: int = 1 << 20) -> bytes:
    limit = limit or TimeLimit(AMPLE_S)
    with http_client.request(url, limit=limit, headers={"Authorization": "Bearer k"}) as reply:
        return reply.read(max_bytes)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


# --- requests and replies --------------------------------------------------------------


def test_nothing_is_sent_but_what_the_caller_gives() -> None:
    with TalkingServer(answering(OK)) as server:
        assert get(f"{server.url}/v1/é?") == b"ok"
    assert server.heads == [
        f"GET /v1/%C3%A9 HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n"
        "Accept-Encoding: identity\r\nUser-Agent: qmd\r\nConnection: close\r\n"
        "Authorization: Bearer k\r\n\r\n"
    ]


def test_a_redirection_is_a_reply_like_any_other() -> None:
    with TalkingServer(answering(OK)) as other:
        moved = f"HTTP/1.1 307 Moved\r\nLocation: {other.url}\r\n\r\n".encode()
        with (
            TalkingServer(answering(moved)) as server,
            http_client.request(server.url, limit=TimeLimit(AMPLE_S)) as reply,
        ):
            assert (reply.status, reply.headers["location"]) == (307, other.url)
        assert other.heads == []


@pytest.mark.parametrize(
    "cut",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nok\r\n",
    ],
)
def test_a_body_that_is_cut_short_is_no_body(cut: bytes) -> None:
    with TalkingServer(answering(cut)) as server, pytest.raises(http_client.BrokenOffError):
        get(server.url)


@pytest.mark.parametrize(
    ("body", "packing"),
    [(b"o" * 3_000_000, b"gzip"), (b"ok", b"gzip"), (b"ok", b"identity"), (b"", b"gzip")],
)
def test_packed_bodies_are_unpacked(body: bytes, packing: bytes) -> None:
    sent = gzip.compress(body) if packing == b"gzip" else body
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: " + packing + b"\r\n\r\n"
    with TalkingServer(answering(head + sent)) as server:
        assert get(server.url, max_bytes=len(body)) == body


def test_a_body_swells_to_its_limit_and_no_further() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    head = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n"
    with TalkingServer(answering(head + bomb)) as server:
        with pytest.raises(http_client.UnreadableReplyError, match="more than 1 MB"):
            get(server.url)
        with http_client.request(server.url, limit=TimeLimit(AMPLE_S)) as reply:
            assert max(map(len, reply.pieces())) <= http_client.PIECE_BYTES
        with http_client.request(server.url, limit=TimeLimit(AMPLE_S)) as reply:
            assert reply.beginning(1000) == b"\0" * 1000


def test_what_is_not_http_is_told_from_nobody() -> None:
    with TalkingServer(answering(b"220 mail ready\r\n\r\n")) as server:
        url = server.url
        with pytest.raises(http_client.NotHttpError, match="does not speak HTTP"):
            get(url)
    with pytest.raises(http_client.UnreachableError, match="refused") as caught:
        get(url)
    assert not isinstance(caught.value, http_client.NotHttpError)


# --- time --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("beginning", "drop"),
    [
        (b"", b""),
        (b"HTTP/1.1 200 OK\r\n", b"X"),
        (b"HTTP/1.1 200 OK\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"a: b\r\n"),
    ],
    ids=["silence", "head", "body", "chunks", "trailers"],
)
def test_a_server_that_drips_is_left_in_time(beginning: bytes, drop: bytes) -> None:
    with (
        TalkingServer(dripping(beginning, drop)) as server,
        pytest.raises(http_client.TimeLimitError),
    ):
        get(server.url, limit=TimeLimit(BRIEF_S))


def test_progress_is_waited_for_anew_until_all_time_is_up() -> None:
    pieces = 0
    talk = dripping(b"HTTP/1.1 200 OK\r\n\r\n", b"x", every_s=0.2)
    limit = TimeLimit(1.0, 2.0)
    with (
        TalkingServer(talk) as server,
        pytest.raises(http_client.TimeLimitError),
        http_client.request(server.url, limit=limit) as reply,
    ):
        for _piece in reply.pieces():
            reply.progress()
            pieces += 1
    assert pieces > 5  # more than one wait's worth of drops


def test_a_handshake_that_never_ends_is_left_in_time() -> None:
    with (
        TalkingServer(dripping(b"", b"")) as server,
        pytest.raises(http_client.TimeLimitError),
    ):
        get(server.url.replace("http", "https"), limit=TimeLimit(BRIEF_S))


# --- TLS and proxies ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def tls(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, Path]:
    """A server's context and the certificate that it shows, for ``model.invalid``."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "model.invalid")])
    now = datetime.now(timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("model.invalid")]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
        + certificate.public_bytes(serialization.Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context, file


def relay(link: socket.socket, port: int) -> None:
    """Carry bytes both ways between a client and a server of this machine."""
    with socket.create_connection(("127.0.0.1", port)) as other:
        other.settimeout(AMPLE_S)

        def carry(source: socket.socket, target: socket.socket) -> None:
            with contextlib.suppress(OSError):
                while data := source.recv(1 << 16):
                    target.sendall(data)
                target.shutdown(socket.SHUT_WR)

        back = threading.Thread(target=carry, args=(other, link), daemon=True)
        back.start()
        carry(link, other)
        back.join(AMPLE_S)


@pytest.fixture
def secure(tls: tuple[ssl.SSLContext, Path]) -> Iterator[TalkingServer]:
    with TalkingServer(answering(OK), tls[0]) as server:
        yield server


def test_a_tunnel_leads_through_a_proxy_that_learns_no_key(
    secure: TalkingServer, tls: tuple[ssl.SSLContext, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    def talk(link: socket.socket, server: TalkingServer) -> None:
        server.read_head(link)
        link.sendall(b"HTTP/1.1 200 Connection established\r\nX: y\r\n\r\n")
        relay(link, secure.port)

    monkeypatch.setenv("SSL_CERT_FILE", str(tls[1]))
    with TalkingServer(talk) as between:
        monkeypatch.setenv("HTTPS_PROXY", f"http://me:s%2Fcret@127.0.0.1:{between.port}")
        assert get("https://model.invalid/v1") == b"ok"
    assert between.heads == [
        "CONNECT model.invalid:443 HTTP/1.1\r\nHost: model.invalid:443\r\n"
        "Proxy-Authorization: Basic bWU6cy9jcmV0\r\n\r\n"
    ]
    assert "Authorization: Bearer k" in secure.heads[0]
    assert "Host: model.invalid\r\n" in secure.heads[0]
    assert "Proxy-Authorization" not in secure.heads[0]


def test_a_server_with_another_certificate_is_not_asked(
    secure: TalkingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(http_client.UnreachableError, match=r"(?i)certificate"):
        get(f"https://127.0.0.1:{secure.port}/")
    assert secure.heads in ([], [""])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Who are you?\r\n\r\n", "the proxy answered 407 Who are you"),
        (b"", "the proxy does not answer as one"),
        (b"x" * 100_000, "the proxy does not answer as one"),
    ],
)
def test_a_proxy_that_refuses_is_an_error(
    answer: bytes, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with TalkingServer(answering(answer)) as between:
        monkeypatch.setenv("ALL_PROXY", f"127.0.0.1:{between.port}")
        with pytest.raises(http_client.UnreachableError, match=reason):
            get("https://model.invalid/v1")


def test_a_plain_request_names_the_server_to_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with TalkingServer(answering(OK)) as between:
        monkeypatch.setenv("http_proxy", f"http://me@127.0.0.1:{between.port}")
        assert get("http://model.invalid:8080/v1") == b"ok"
        monkeypatch.setenv("no_proxy", "model.invalid")
        with pytest.raises(http_client.UnreachableError):
            get("http://model.invalid:8080/v1")
    (head,) = between.heads
    assert head.startswith("GET http://model.invalid:8080/v1 HTTP/1.1\r\nHost: model.invalid:8080")
    assert "Proxy-Authorization: Basic bWU6\r\n" in head


@pytest.mark.parametrize("user", ["", "me:pw@"])
def test_a_socks_proxy_resolves_the_name(user: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("socksio", reason="NOT TESTED: socksio is not installed")
    commands: list[bytes] = []

    def talk(link: socket.socket, server: TalkingServer) -> None:
        commands.append(link.recv(100))
        link.sendall(b"\x05\x02" if user else b"\x05\x00")
        if user:
            commands.append(link.recv(100))
            link.sendall(b"\x01\x00")
        commands.append(link.recv(100))
        link.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x50")
        relay(link, target.port)

    with TalkingServer(answering(OK)) as target, TalkingServer(talk) as between:
        monkeypatch.setenv("ALL_PROXY", f"socks5://{user}127.0.0.1:{between.port}")
        assert get("http://model.invalid/v1") == b"ok"
    login = [b"\x01\x02me\x02pw"] if user else []
    methods = b"\x05\x01\x02" if user else b"\x05\x01\x00"
    assert commands == [methods, *login, b"\x05\x01\x00\x03\x0dmodel.invalid\x00\x50"]
    assert target.heads[0].startswith("GET /v1 HTTP/1.1\r\nHost: model.invalid\r\n")


@pytest.mark.parametrize("address", ["ftp://x:1", "http://", "http://x:port", "https://x:1"])
def test_a_proxy_of_another_kind_cannot_be_used(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", address)
    with pytest.raises(http_client.ProxyError):
        get("http://model.invalid/")
