"""Checks whether the server of this database answers other users of this machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from qmd.system import running
from qmd.system.peer import Peers
from qmd.values import Check

if TYPE_CHECKING:
    from qmd.values.location import DatabaseLocation


def examine(database: DatabaseLocation) -> Iterator[Check]:
    """One check, of the running server; if none runs, of a server with default settings."""
    server = running.find(database)
    if server is None:
        if _can_tell_users():
            message = "No server runs; one would answer programs of its own user (and of root) only"
            yield Check("port", "ok", message)
        else:
            yield _open_to_all("No server runs; without a token, one")
    elif server.guard == "token":
        yield Check("port", "ok", f"The server at {server.url} answers who has its token")
    elif server.guard == "user":
        message = f"The server at {server.url} answers programs of its own user (and of root) only"
        yield Check("port", "ok", message)
    elif _can_tell_users():
        yield Check(
            "port",
            "warning",
            f"The server at {server.url} answers every user of this machine.",
            "Start it anew, without --allow-other-users or with --token auto.",
        )
    else:
        yield _open_to_all(f"The server at {server.url}")


def _can_tell_users() -> bool:
    """Whether this system tells which user's program is at the other end of a connection."""
    return Peers.open() is not None


def _open_to_all(server: str) -> Check:
    return Check(
        "port",
        "warning",
        f"{server} answers every user of this machine: this system does not tell whose program"
        " connects.",
        "If others use this machine: qmd server --token auto, or QMD_TOKEN.",
    )
