"""The server to which folders are pushed, over HTTP."""

from __future__ import annotations

import base64
import ipaddress
import json
from typing import Any, TypeVar
from urllib.parse import quote, urlsplit

from qmd.errors import (
    ConfigError,
    ConflictError,
    InputError,
    QmdError,
    ServerUnreachableError,
    WritesForbiddenError,
)
from qmd.system import http_client
from qmd.system.proxy import ProxyError
from qmd.values.pushes import Push, PushedFile, PushedFiles, PushReport
from qmd.values.wire import from_wire, to_wire

#: Seconds that the server may take for one step: it indexes what it stores.
TIMEOUT_S = 300.0
MAX_REPLY_BYTES = 64 << 20
#: The most files of one folder on a server; a list that goes on is no list of files.
MAX_SERVER_FILES = 2_000_000
ValueT = TypeVar("ValueT")


class PushServer:
    """
    A qmd server that takes folders.

    Args:
        url: Its address, as 'qmd server' prints it; perhaps with a path, behind a proxy.
        token: What proves who pushes; None for a server without tokens.
        allow_plain_http: Send the token unencrypted to another machine.

    Raises:
        InputError: ``url`` is no address.
        ConfigError: The token would be sent unencrypted.
    """

    def __init__(self, url: str, token: str | None, *, allow_plain_http: bool = False) -> None:
        parts = _checked(url)
        if token and parts.scheme == "http" and not allow_plain_http:
            _require_this_machine(parts.hostname or "")
        self.url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def files(self, name: str) -> dict[str, PushedFile]:
        """What the server has of a folder, by path. Raises as `push`."""
        files: dict[str, PushedFile] = {}
        after = ""
        while True:
            address = f"/push/{quote(name)}?after={quote(after, safe='', errors='replace')}"
            page = self._value(PushedFiles, self._ask(address))
            files |= {file.path: file for file in page.files}
            if not page.more or not page.files:
                return files
            last = page.files[-1].path
            if last.split("/") <= after.split("/") or len(files) > MAX_SERVER_FILES:
                raise self._is_no_server("its list of files does not end")
            after = last

    def push(self, name: str, push: Push) -> PushReport:
        """
        Send one step of a push.

        Raises:
            ServerUnreachableError: There is no answer. The step may be sent again.
            WritesForbiddenError: The server takes no folders, or not this one from this token.
            ConflictError, InputError: As the server says.
        """
        parts = [
            {**to_wire(part), "content": base64.b64encode(part.content).decode("ascii")}
            for part in push.parts
        ]
        body = {**to_wire(push), "parts": parts}
        return self._value(PushReport, self._ask(f"/push/{quote(name)}", body))

    def _value(self, value_type: type[ValueT], reply: dict[str, Any]) -> ValueT:
        try:
            return from_wire(value_type, reply)
        except ValueError:  # its message may repeat all of the reply
            raise self._is_no_server(f"its reply is no {value_type.__name__}") from None

    def _is_no_server(self, reason: str) -> QmdError:
        return QmdError(
            f"What answers at {self.url} is no qmd server: {reason}.",
            hint="Give the address that 'qmd server' prints.",
        )

    def _ask(self, path: str, body: object = None) -> dict[str, Any]:
        headers = self._headers | ({} if body is None else {"Content-Type": "application/json"})
        try:
            with http_client.request(
                self.url + path,
                limit=http_client.TimeLimit(TIMEOUT_S, TIMEOUT_S),
                body=None if body is None else http_client.json_body(body),
                headers=headers,
            ) as reply:
                status, data = reply.status, reply.read(MAX_REPLY_BYTES)
        except (http_client.HttpError, ProxyError) as error:
            raise ServerUnreachableError(
                f"The server {self.url} does not answer: {error}",
                hint="Is it running, and is the address right? What was sent before is stored.",
            ) from error
        return self._checked_reply(status, data)

    def _checked_reply(self, status: int, data: bytes) -> dict[str, Any]:
        try:
            reply = json.loads(data)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            raise self._is_no_server(f"status {status}")
        if status == 200:
            return reply
        message, _, hint = str(reply.get("detail", f"status {status}"))[:2000].partition("\n")
        raise _error_for(status)(f"The server says: {message}", hint=_hint(status, hint.strip()))


def _error_for(status: int) -> type[QmdError]:
    return {
        400: InputError,
        401: ConfigError,
        403: WritesForbiddenError,
        409: ConflictError,
        413: InputError,
        429: ServerUnreachableError,
        502: ServerUnreachableError,
        503: ServerUnreachableError,
        504: ServerUnreachableError,
    }.get(status, QmdError)


def _hint(status: int, hint: str) -> str:
    """What to do here. The hint of a 401 is for people on the machine of the server."""
    if status == 401:
        return (
            "Put a token of that server into QMD_PUSH_TOKEN; its administrator makes one:"
            " qmd server token create NAME --push COLLECTION"
        )
    if status == 404:
        return "Is the address right, and the server of version 1.5 or newer?"
    return hint or "See the log of the server."


def _checked(url: str) -> Any:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable or parts.query or parts.fragment or parts.username or parts.password:
        raise InputError(
            f"Not the address of a server: {url[:200]}",
            hint="Give it as https://qmd.example.org or http://127.0.0.1:18765.",
        )
    return parts


def _require_this_machine(host: str) -> None:
    """Raises ConfigError if a host is another machine."""
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost" or host.endswith(".localhost")
    if not is_here:
        raise ConfigError(
            f"The token would be sent to {host} unencrypted.",
            hint="Use https://, or --allow-plain-http in a network that you trust.",
        )
