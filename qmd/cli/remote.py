"""``--mode server``: the running server answers, this process only asks and prints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from qmd.cli.search import CANDIDATES
from qmd.errors import (
    InputError,
    NotFoundError,
    QmdError,
    TransientInferenceError,
)
from qmd.system import running
from qmd.values import SearchReply
from qmd.values.wire import from_wire

ANSWER_S = 60.0

_START = (
    "Start one with 'qmd server --transport http', or give --mode local: "
    "this process answers itself."
)
_ONLY_LOCAL = {
    "everything": "--all",
    "no_rerank": "--no-rerank",
    "no_expand": "--no-expand",
    "intent": "--intent",
    "candidates": "--candidates",
}
_USUAL = {"candidates": CANDIDATES}


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

    def search(self, command: str, text: str, options: dict[str, Any]) -> SearchReply:
        """``command``: search, vsearch or query; ``options`` as on its command line."""
        reply = self._ask(f"/{command}", {"query": text, **_arguments(options)})
        try:
            return from_wire(SearchReply, reply, query=text)
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


def _arguments(options: dict[str, Any]) -> dict[str, Any]:
    """The request's fields. Raises InputError for what only this process can do."""
    for name, flag in _ONLY_LOCAL.items():
        if options[name] and options[name] != _USUAL.get(name):
            raise InputError(f"{flag} works with --mode local only.", hint="Leave one of them out.")
    if len(options["collections"]) > 1:
        raise InputError(
            "A server searches one collection or all.", hint="Give -c once, or --mode local."
        )
    arguments: dict[str, Any] = {
        name: options[name]
        for name in (
            "limit",
            "min_score",
            "min_relevance",
            "explain",
            "path",
            "after",
            "before",
        )
    }
    arguments["collection"] = next(iter(options["collections"]), None)
    arguments["tags"] = list(options["tags"])
    return {name: value for name, value in arguments.items() if value is not None}
