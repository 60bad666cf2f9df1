"""Sends searches to the running server, for the option ``--mode server``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from qmd.errors import (
    InputError,
    NotFoundError,
    QmdError,
    TransientInferenceError,
)
from qmd.system import running
from qmd.values import SearchCommand, SearchReply, SearchRequest
from qmd.values.facts import ForCommands, wire_fields
from qmd.values.wire import from_wire, to_wire

if TYPE_CHECKING:
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

    def search(self, command: SearchCommand, request: SearchRequest) -> SearchReply:
        reply = self._ask(f"/{command}", _body(command, request))
        try:
            return from_wire(SearchReply, reply, query=request.query)
        except ValueError as error:
            raise self._unexpected_reply() from error

    def text(self, file: str) -> str:
        """The whole text of a document."""
        try:
            return str(self._ask("/get", {"file": file})["document"]["text"])
        except (KeyError, TypeError) as error:
            raise self._unexpected_reply() from error

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            status, reply = running.call(self._server, path, body, timeout_s=TIMEOUT_S)
        except (OSError, ValueError) as error:
            raise NotFoundError(
                f"The qmd server at {self._server.url} does not answer.", hint=_START_HINT
            ) from error
        if not isinstance(reply, dict):
            raise self._unexpected_reply()
        if status == 200:
            return reply
        message, _, hint = str(reply.get("detail", f"status {status}")).partition("\n")
        raise _error_for(status)(message, hint=hint.strip() or None)

    def _unexpected_reply(self) -> QmdError:
        return QmdError(
            f"What answers at {self._server.url} is no qmd server of this version.",
            hint="Restart the server.",
        )


def _error_for(status: int) -> type[QmdError]:
    if status == 404:
        return NotFoundError
    if status == 503:
        return TransientInferenceError
    return InputError if status in (400, 413) else QmdError


def _body(command: SearchCommand, request: SearchRequest) -> dict[str, Any]:
    """The request in its wire form, without the fields that are for other commands."""
    body: dict[str, Any] = to_wire(request)
    for field in wire_fields(SearchRequest):
        commands = field.get(ForCommands)
        if commands is not None and command not in commands.names:
            body.pop(field.wire_name, None)
    return body if request.limit is not None else {**body, "all": True}
