"""Stores tokens of clients, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence

from qmd.errors import ConflictError
from qmd.store.access import MAX_AUDIT_DAYS, MAX_AUDIT_ENTRIES, StoredAccessToken
from qmd.store.postgres.library import Connection
from qmd.store.postgres.rows import one
from qmd.system import clock
from qmd.values.access import AccessToken, AuditEntry

_TOKENS = """
    SELECT t.id, t.hash, t.name, t.created_at, t.expires_at, t.last_used,
           ARRAY(SELECT collection FROM z_access_scopes WHERE token_id = t.id ORDER BY collection),
           ARRAY(SELECT collection FROM z_access_scopes WHERE token_id = t.id AND may_write = 1
                 ORDER BY collection)
    FROM z_access_tokens t
"""
_DAY_NS = 86_400 * 1_000_000_000


class PostgresAccess:
    """`qmd.store.access.Access` in PostgreSQL."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def tokens(self) -> list[StoredAccessToken]:
        return self._tokens(" ORDER BY t.name")

    def token_with_hash(self, hash_: str) -> StoredAccessToken | None:
        return next(iter(self._tokens(" WHERE t.hash = %s", [hash_])), None)

    def audit(
        self, *, since: str | None = None, actor: str | None = None, limit: int
    ) -> list[AuditEntry]:
        conditions, values = ["true"], list[object]()
        if since is not None:
            conditions.append("at >= %s")
            values.append(since)
        if actor is not None:
            conditions.append("actor = %s")
            values.append(actor)
        rows = self._connection.execute(
            "SELECT at, actor, face, session, action, target FROM audit"
            f" WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT %s",
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
                    tuple(read),
                    tuple(write),
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


class PostgresAccessWriter(PostgresAccess):
    """`qmd.store.access.AccessWriter` in PostgreSQL."""

    def add_token(self, stored: StoredAccessToken) -> None:
        token = stored.token
        if self._tokens(" WHERE t.name = %s", [token.name]):
            raise ConflictError(
                f"There is already a token named '{token.name}'.",
                hint=f"Choose another name, or first: qmd server token revoke {token.name}",
            )
        self._connection.execute(
            "INSERT INTO z_access_tokens (id, name, hash, created_at, expires_at)"
            " VALUES (%s, %s, %s, %s, %s)",
            [stored.id, token.name, stored.hash, token.created, token.expires],
        )
        for name in token.read:
            self._connection.execute(
                "INSERT INTO z_access_scopes (token_id, collection, may_write) VALUES (%s, %s, %s)",
                [stored.id, name, int(name in token.write)],
            )

    def remove_token(self, name: str) -> AccessToken | None:
        for stored in self._tokens(" WHERE t.name = %s", [name]):
            self._connection.execute("DELETE FROM z_access_tokens WHERE id = %s", [stored.id])
            return stored.token
        return None

    def mark_used(self, token_id: str, day: str) -> None:
        self._connection.execute(
            "UPDATE z_access_tokens SET last_used = %s WHERE id = %s", [day, token_id]
        )

    def record(self, entry: AuditEntry) -> None:
        (number,) = one(
            self._connection,
            "INSERT INTO audit (at, actor, face, session, action, target)"
            " VALUES (%s, %s, %s, %s, %s, %s) RETURNING id",
            [entry.at, entry.actor, entry.face, entry.session, entry.action, entry.target],
        )
        if number % 100 == 0:  # now and then is enough
            self._connection.execute(
                "DELETE FROM audit WHERE id <= %s", [number - MAX_AUDIT_ENTRIES]
            )
            oldest = clock.from_ns(clock.now_ns() - MAX_AUDIT_DAYS * _DAY_NS)
            self._connection.execute("DELETE FROM audit WHERE at < %s", [oldest])


def rename_scopes(connection: Connection, old: str, new: str) -> None:
    """Let the tokens of a collection follow its new name."""
    connection.execute(
        "UPDATE z_access_scopes SET collection = %s WHERE collection = %s", [new, old]
    )


def remove_scopes(connection: Connection, collection: str) -> None:
    """Close a collection that is removed: a later one of its name is another."""
    connection.execute("DELETE FROM z_access_scopes WHERE collection = %s", [collection])
