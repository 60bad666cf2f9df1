"""Asks the running server, for the option ``--mode server``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, get_args, get_origin
from urllib.parse import quote, urlencode

from qmd.errors import NotFoundError, QmdError, RemoteError
from qmd.system import running
from qmd.values.facts import wire_fields

if TYPE_CHECKING:
    from qmd.operations import Operation
    from qmd.values.location import DatabaseLocation

TIMEOUT_S = 60.0

_START_HINT = (
    "Start one with 'qmd server --transport http', or give --mode local: "
    "this process answers itself."
)


class Remote:
    """
    The running server of a database.

    Raises:
        NotFoundError: No server runs for the database.
    """

    def __init__(self, database: DatabaseLocation) -> None:
        server = running.find(database)
        if server is None:
            raise NotFoundError(f"No qmd server is running for {database}", hint=_START_HINT)
        self._server = server

    def text(self, file: str) -> str:
        """The whole text of a document."""
        try:
            return str(self._ask("/get", {"file": file})["document"]["text"])
        except (KeyError, TypeError) as error:
            raise self._unexpected_reply() from error

    def answer(self, operation: Operation, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """The reply of an operation that only reads, in its wire form."""
        sent = {name: each for name, each in arguments.items() if each is not None}
        path = operation.path.format(**{name: quote(sent.pop(name)) for name in operation.in_path})
        if operation.method == "POST":
            return self._ask(path, sent)
        query = {
            name: str(each).lower() if isinstance(each, bool) else each
            for name, each in sent.items()
        }
        return self._ask(f"{path}?{urlencode(query, doseq=True)}", None)

    def _ask(self, path: str, body: dict[str, Any] | None) -> dict[str, Any]:
        try:
            status, reply, code = running.call(self._server, path, body, timeout_s=TIMEOUT_S)
        except (OSError, ValueError) as error:
            raise NotFoundError(
                f"The qmd server at {self._server.url} does not answer.", hint=_START_HINT
            ) from error
        if not isinstance(reply, dict):
            raise self._unexpected_reply()
        if status == 200:
            return reply
        message, _, hint = str(reply.get("detail", f"status {status}")).partition("\n")
        raise RemoteError(message, hint.strip() or None, code)

    def _unexpected_reply(self) -> QmdError:
        return QmdError(
            f"What answers at {self._server.url} is no qmd server of this version.",
            hint="Restart the server.",
        )


class Received(SimpleNamespace):
    """
    The fields of a value that came from a server, by their names.

    A server does not send all that a value knows, so this is no instance of the value's class.
    """

    def __init__(self, value_type: type) -> None:
        super().__init__()
        self._type = value_type

    def __getattr__(self, name: str) -> NoReturn:
        sent = ", ".join(field.name for field in wire_fields(self._type))
        raise AttributeError(
            f"A server does not send {self._type.__name__}.{name}: what an operation prints"
            f" may use {sent}"
        )


def received(value_type: type, sent: Mapping[str, Any]) -> Received:
    """A reply, from its wire form."""
    fields = Received(value_type)
    for field in wire_fields(value_type):
        part = sent.get(field.wire_name, None if field.is_required else field.default)
        item = get_args(field.hint)[0] if get_origin(field.hint) is tuple else None
        if isinstance(item, type) and is_dataclass(item):
            part = tuple(received(item, each) for each in part or ())
        setattr(fields, field.name, part)
    return fields
