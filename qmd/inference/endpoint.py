"""
Asking a model server over HTTP: JSON there, JSON back, all of it within a time.

`LlmClient` is for conversations, where waiting and trying again are welcome. A query has
seconds: this asks once, with the standard library (the package `openai` takes a second to
import), and ends the whole call when its time is up. The time-out of a socket counts from
byte to byte; a server that drips one a second would hold a query for ever.
"""

from __future__ import annotations

import http.client
import json
import socket
import threading
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

from qmd.errors import TransientInferenceError
from qmd.inference.llm import LlmSettings, trouble

#: Longest reply that is read: expansions and scores take kilobytes.
MOST_BYTES = 1 << 20


class Endpoint:
    """An OpenAI-compatible server; the model of the settings plays no part."""

    def __init__(self, settings: LlmSettings) -> None:
        self.settings = settings

    @property
    def name(self) -> str:
        """Host and port, for messages."""
        return urlsplit(self.settings.url).netloc

    def ask(self, path: str, body: Any, *, timeout_s: float, most_bytes: int = MOST_BYTES) -> Reply:
        """
        POST a JSON body to ``path`` below the server's address.

        Raises:
            TransientInferenceError: It cannot be reached, or has not answered in time.
        """
        response, data = self._send(path, body, timeout_s, most_bytes)
        return Reply(self.settings, response, data, most_bytes)

    def _send(
        self, path: str, body: Any, timeout_s: float, most: int
    ) -> tuple[http.client.HTTPResponse, bytes]:
        data = json.dumps(body).encode("ascii")  # lone surrogates stay escaped
        headers = {"Content-Type": "application/json", "Accept": "application/json"}
        if self.settings.key is not None:
            headers["Authorization"] = f"Bearer {self.settings.key}"
        connection, before = _connection(self.settings, timeout_s, headers)
        late = threading.Event()
        opened: list[socket.socket] = []

        def end() -> None:
            late.set()
            for each in opened:
                with suppress(OSError):  # closed already
                    each.shutdown(socket.SHUT_RDWR)

        timer = threading.Timer(timeout_s, end)
        timer.daemon = True
        timer.start()
        try:
            connection.connect()
            opened.append(connection.sock)  # the response may take it from the connection
            if late.is_set():  # just before there was anything to end
                raise TimeoutError
            connection.request("POST", before + path, data, headers)
            with connection.getresponse() as response:
                reply = response.read(most + 1)
        except (OSError, http.client.HTTPException) as error:
            if not late.is_set() and not isinstance(error, TimeoutError):
                raise trouble.unreachable(self.settings, _reason(error)) from None
            late.set()
        finally:
            timer.cancel()
            connection.close()
        if late.is_set():  # what was cut off may look whole
            raise TransientInferenceError(f"{self.name} has not answered within {timeout_s:.1f} s.")
        return response, reply


class Reply:
    """What a server answered, good or bad."""

    def __init__(
        self, settings: LlmSettings, response: http.client.HTTPResponse, data: bytes, most: int
    ) -> None:
        self._settings = settings
        self._headers = {name.lower(): value for name, value in response.getheaders()}
        self._data = data
        self._most = most
        self.status = response.status

    @property
    def is_absent(self) -> bool:
        """Whether there is nothing at that path."""
        return self.status in {404, 405, 501}

    @property
    def told(self) -> str:
        """What the server says of an error."""
        return trouble.server_words(self._error(), self._settings.key)

    def json(self) -> Any:
        """
        Raises:
            InferenceError: The status is not 200, the reply is too large, or no JSON.
        """
        if self.status != 200:
            raise trouble.status_error(self._settings, self.status, self._error(), self._headers)
        if len(self._data) > self._most:
            raise trouble.not_an_answer(self._settings, f"more than {self._most >> 20} MB", "")
        try:
            return json.loads(self._data)
        except (ValueError, RecursionError):
            text = self._data[:2000].decode("utf-8", "replace")
            raise trouble.not_an_answer(self._settings, "no JSON", text) from None

    def _error(self) -> object:
        """The body of an error, as JSON if it is that."""
        with suppress(ValueError, RecursionError):
            return json.loads(self._data)
        return self._data[:2000].decode("utf-8", "replace")


def _reason(error: Exception) -> str:
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    return f"it does not speak HTTP ({type(error).__name__})"


def _connection(
    settings: LlmSettings, timeout_s: float, headers: dict[str, str]
) -> tuple[http.client.HTTPConnection, str]:
    """A connection to the server, or to the proxy in front of it, and the path to begin with."""
    parts = urlsplit(settings.url)
    host = parts.hostname or ""
    secure = parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    path = parts.path
    proxy = None if settings.is_loopback else _proxy(parts.scheme, host, port)
    if proxy is None:
        if secure:
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=_tls()), path
        return http.client.HTTPConnection(host, port, timeout=timeout_s), path
    try:
        place = (proxy.hostname or "", proxy.port or 80)
    except ValueError:
        raise trouble.unusable_proxy(settings.url) from None
    authorization = _basic(proxy)
    if not secure:
        headers.update(authorization)
        plain = http.client.HTTPConnection(*place, timeout=timeout_s)
        return plain, f"http://{parts.netloc}{path}"
    tunnel = http.client.HTTPSConnection(*place, timeout=timeout_s, context=_tls())
    tunnel.set_tunnel(host, port, headers=authorization)
    return tunnel, path


def _proxy(scheme: str, host: str, port: int) -> SplitResult | None:
    """As ``https_proxy`` and ``no_proxy`` say."""
    from urllib.request import getproxies, proxy_bypass

    address = getproxies().get(scheme)
    if not address or proxy_bypass(f"{host}:{port}"):
        return None
    try:
        return urlsplit(address if "://" in address else f"http://{address}")
    except ValueError:  # which quotes a part of it, and that may be a password
        raise trouble.unusable_proxy(f"{scheme}://{host}") from None


def _basic(proxy: SplitResult) -> dict[str, str]:
    if proxy.username is None:
        return {}
    import base64

    pair = f"{unquote(proxy.username)}:{unquote(proxy.password or '')}"
    return {"Proxy-Authorization": "Basic " + base64.b64encode(pair.encode()).decode()}


def _tls() -> Any:
    import ssl

    context = ssl.create_default_context()
    if not context.cert_store_stats()["x509_ca"]:
        # python.org's Python for macOS comes without any; huggingface_hub brings these.
        with suppress(ImportError):
            import certifi

            context.load_verify_locations(certifi.where())
    return context
