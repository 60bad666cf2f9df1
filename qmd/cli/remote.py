"""``--mode server``: the running server answers, this process only asks and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qmd.cli.search_options import option_name, unlimited_option_name
from qmd.errors import (
    InputError,
    NotFoundError,
    QmdError,
    TransientInferenceError,
)
from qmd.system import running
from qmd.values import SearchCommand, SearchReply, SearchRequest
from qmd.values.facts import FieldFacts, LocalOnly, field_facts
from qmd.values.wire import from_wire, to_wire

ANSWER_S = 60.0

_START = (
    "Start one with 'qmd server --transport http', or give --mode local: "
    "this process answers itself."
)


class Remote:
    """
    The server that runs for a database.

    Raises:
        NotFoundError: There is none.
    """

    def __init__(self, database: Path) -> None:
        server = running.find(database)
        if server is None:
            raise NotFoundError(f"No qmd server is running for {database}", hint=_START)
        self._server = server

    def search(self, command: SearchCommand, request: SearchRequest) -> SearchReply:
        reply = self._ask(f"/{command}", _body(request))
        try:
            return from_wire(SearchReply, reply, query=request.query)
        except ValueError as error:
            raise self._strange() from error

    def text(self, file: str) -> str:
        """A whole document."""
        try:
            return str(self._ask("/get", {"file": file})["document"]["text"])
        except (KeyError, TypeError) as error:
            raise self._strange() from error

    def _ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        try:
            status, reply = running.call(self._server, path, body, timeout_s=ANSWER_S)
        except (OSError, ValueError) as error:
            raise NotFoundError(
                f"The qmd server at {self._server.url} does not answer.", hint=_START
            ) from error
        if not isinstance(reply, dict):
            raise self._strange()
        if status == 200:
            return reply
        message, _, hint = str(reply.get("detail", f"status {status}")).partition("\n")
        raise _error_for(status)(message, hint=hint.strip() or None)

    def _strange(self) -> QmdError:
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


def _body(request: SearchRequest) -> dict[str, Any]:
    """The request as it is sent. Raises InputError for what only this process can do."""
    for field in field_facts(SearchRequest):
        option = _local_option(field, getattr(request, field.name))
        if option is not None:
            raise InputError(
                f"{option} works with --mode local only.", hint="Leave one of them out."
            )
    if len(request.filters.collections) > 1:
        raise InputError(
            "A server searches one collection or all.", hint="Give -c once, or --mode local."
        )
    body: dict[str, Any] = to_wire(request)
    return body


def _local_option(field: FieldFacts, value: object) -> str | None:
    """The option that gave this value, if no server takes it."""
    if field.has(LocalOnly) and value != field.default:
        return option_name(field)
    return unlimited_option_name(field) if value is None else None
