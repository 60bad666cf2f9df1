"""Stores tokens of clients, and the audit log."""

from __future__ import annotations

import json
from collections.abc import Sequence

from qmd.errors import ConflictError
from qmd.store.access import MAX_AUDIT_DAYS, MAX_AUDIT_ENTRIES, StoredAccessToken
from qmd.store.sqlite.library import Connection
from qmd.system import clock
from qmd.values.access import AccessToken, AuditEntry

_TOKENS = """
    SELECT t.id, t.hash, t.name, t.created_at, t.expires_at, t.last_used,
           (SELECT json_group_array(collection) FROM
               (SELECT collection FROM z_access_scopes WHERE token_id = t.id ORDER BY collection)),
           (SELECT json_group_array(collection) FROM
               (SELECT collection FROM z_access_scopes WHERE token_id = t.id AND may_write
                ORDER BY collection))
    FROM z_access_tokens t
"""
_DAY_NS = 86_400 * 1_000_000_000


class SqliteAccess:
    """`qmd.store.access.Access` in SQLite."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tokens(self) -> list[StoredAccessToken]:
        return self._tokens(" ORDER BY t.name")

    def token_with_hash(self, hash_: str) -> StoredAccessToken | None:
        return next(iter(self._tokens(" WHERE t.hash = ?", [hash_])), None)

    def audit(
        self, *, since: str | None = None, actor: str | None = None, limit: int
    ) -> list[AuditEntry]:
        conditions, values = ["1"], list[object]()
        if since is not None:
            conditions.append("at >= ?")
            values.append(since)
        if actor is not None:
            conditions.append("actor = ?")
            values.append(actor)
        rows = self._connection.execute(
            "SELECT at, actor, face, session, action, target FROM audit"
            f" WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
            [*values, limit],
        )
        return [AuditEntry(*row) for row in rows]

    def _tokens(self, condition: str, values: Sequence[object] = ()) -> list[StoredAccessToken]:
        now = clock.now()
        return [
            StoredAccessToken(
                token_id,
                hash_,
                AccessToken(
                    name,
                    tuple(json.loads(read)),
                    tuple(json.loads(write)),
                    created,
                    expires,
                    last_used,
                    expired=expires is not None and expires <= now,
                ),
            )
            for token_id, hash_, name, created, expires, last_used, read, write in (
                self._connection.execute(_TOKENS + condition, values)
            )
        ]


class SqliteAccessWriter(SqliteAccess):
    """`qmd.store.access.AccessWriter` in SQLite."""

    def add_token(self, stored: StoredAccessToken) -> None:
        token = stored.token
        if self._tokens(" WHERE t.name = ?", [token.name]):
            raise ConflictError(
                f"There is already a token named '{token.name}'.",
                hint=f"Choose another name, or first: qmd server token revoke {token.name}",
            )
        self._connection.execute(
            "INSERT INTO z_access_tokens (id, name, hash, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [stored.id, token.name, stored.hash, token.created, token.expires],
        )
        self._connection.executemany(
            "INSERT INTO z_access_scopes (token_id, collection, may_write) VALUES (?, ?, ?)",
            [(stored.id, name, int(name in token.write)) for name in token.read],
        )

    def remove_token(self, name: str) -> AccessToken | None:
        for stored in self._tokens(" WHERE t.name = ?", [name]):
            self._connection.execute("DELETE FROM z_access_tokens WHERE id = ?", [stored.id])
            return stored.token
        return None

    def mark_used(self, token_id: str, day: str) -> None:
        self._connection.execute(
            "UPDATE z_access_tokens SET last_used = ? WHERE id = ?", [day, token_id]
        )

    def record(self, entry: AuditEntry) -> None:
        cursor = self._connection.execute(
            "INSERT INTO audit (at, actor, face, session, action, target)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [entry.at, entry.actor, entry.face, entry.session, entry.action, entry.target],
        )
        assert cursor.lastrowid is not None
        if cursor.lastrowid % 100 == 0:  # now and then is enough
            self._connection.execute(
                "DELETE FROM audit WHERE id <= ?", [cursor.lastrowid - MAX_AUDIT_ENTRIES]
            )
            oldest = clock.from_ns(clock.now_ns() - MAX_AUDIT_DAYS * _DAY_NS)
            self._connection.execute("DELETE FROM audit WHERE at < ?", [oldest])


def rename_scopes(connection: Connection, old: str, new: str) -> None:
    """Let the tokens of a collection follow its new name."""
    connection.execute(
        "UPDATE OR REPLACE z_access_scopes SET collection = ? WHERE collection = ?", [new, old]
    )


def remove_scopes(connection: Connection, collection: str) -> None:
    """Close a collection that is removed: a later one of its name is another."""
    connection.execute("DELETE FROM z_access_scopes WHERE collection = ?", [collection])
