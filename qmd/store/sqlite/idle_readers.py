"""Keeps connections that wait for the next reader."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from qmd.store.sqlite.library import Connection
    from qmd.values.access import AccessScope

#: Connections that wait for readers: the most of one scope, and the most scopes that have some.
IDLE_READERS, IDLE_SCOPES = 4, 16


class IdleReaders:
    """
    Connections that wait, by the scope that they are restricted to; None for no restriction.

    Not thread-safe: callers hold a lock.
    """

    def __init__(self) -> None:
        self._by_scope: dict[AccessScope | None, list[Connection]] = {}

    def take(self, scope: AccessScope | None) -> Connection | None:
        """A connection of the scope; None if none waits."""
        idle = self._by_scope.get(scope)
        return idle.pop() if idle else None

    def keep(self, scope: AccessScope | None, connection: Connection) -> list[Connection]:
        """
        Keep a connection for the next reader of its scope.

        Returns:
            Connections to close: this one, or those of the scope that was used least recently.
        """
        idle = self._by_scope.pop(scope, [])
        self._by_scope[scope] = idle  # the scope that was used last comes last
        if len(idle) >= IDLE_READERS:
            return [connection]
        idle.append(connection)
        if len(self._by_scope) > IDLE_SCOPES:
            oldest = next(each for each in self._by_scope if each is not None)
            return self._by_scope.pop(oldest)
        return []

    def take_all(self) -> list[Connection]:
        connections = [connection for idle in self._by_scope.values() for connection in idle]
        self._by_scope = {}
        return connections
