"""Tokens of clients, and the audit log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from qmd.errors import ConflictError
from qmd.store.sql import Capability, Sql
from qmd.system import clock
from qmd.values.access import AccessToken, AuditEntry

#: The most entries of the audit log; the oldest are removed first. They take about 20 MB.
MAX_AUDIT_ENTRIES = 100_000
#: The days after which an entry of the audit log is removed.
MAX_AUDIT_DAYS = 400


class StoredAccessToken(NamedTuple):
    """
    A token as it is stored.

    Attributes:
        id: Random and never used again, so that what belonged to a token is never another's.
        hash: SHA-256 of the secret, in hexadecimal.
    """

    id: str
    hash: str
    token: AccessToken


_SCOPES = "FROM z_access_scopes WHERE token_id = t.id {}ORDER BY collection"
_DAY_NS = 86_400 * 1_000_000_000


class Access(Capability):
    """Reads tokens and the audit log."""

    def tokens(self) -> list[StoredAccessToken]:
        """All tokens, by name."""
        return self._tokens(" ORDER BY t.name")

    def token_with_hash(self, hash_: str) -> StoredAccessToken | None:
        """The token whose secret has this SHA-256 (hexadecimal); None if there is none."""
        return next(iter(self._tokens(" WHERE t.hash = ?", [hash_])), None)

    def audit(
        self, *, since: str | None = None, actor: str | None = None, limit: int
    ) -> list[AuditEntry]:
        """
        The latest entries of the audit log, newest first.

        Args:
            since: Only entries from this time on (ISO 8601 UTC); None for all.
            actor: Only entries of this token; "" for those of the administrator, None for all.
        """
        conditions, values = ["true"], list[object]()
        if since is not None:
            conditions.append("at >= ?")
            values.append(since)
        if actor is not None:
            conditions.append("actor = ?")
            values.append(actor)
        return self._sql.all(
            AuditEntry,
            "SELECT at, actor, face, session, action, target FROM audit"
            f" WHERE {' AND '.join(conditions)} ORDER BY id DESC LIMIT ?",
            [*values, limit],
        )

    def _tokens(self, condition: str, values: Sequence[object] = ()) -> list[StoredAccessToken]:
        now, dialect = clock.now(), self._sql.dialect
        read, write = (
            dialect.listed.format("collection", _SCOPES.format(which))
            for which in ("", "AND may_write = 1 ")
        )
        rows = self._sql.run(
            "SELECT t.id, t.hash, t.name, t.created_at, t.expires_at, t.last_used,"
            f" {read}, {write} FROM z_access_tokens t{condition}",
            values,
        )
        return [
            StoredAccessToken(
                token_id,
                hash_,
                AccessToken(
                    name,
                    tuple(dialect.parsed(read)),
                    tuple(dialect.parsed(write)),
                    created,
                    expires,
                    last_used,
                    expired=expires is not None and expires <= now,
                ),
            )
            for token_id, hash_, name, created, expires, last_used, read, write in rows
        ]


class AccessWriter(Access):
    """Changes tokens, and adds to the audit log."""

    def add_token(self, stored: StoredAccessToken) -> None:
        """
        Add a token.

        Raises:
            ConflictError: There is a token of this name.
        """
        token = stored.token
        if self._tokens(" WHERE t.name = ?", [token.name]):
            raise ConflictError(
                f"There is already a token named '{token.name}'.",
                hint=f"Choose another name, or first: qmd server token revoke {token.name}",
            )
        self._sql.run(
            "INSERT INTO z_access_tokens (id, name, hash, created_at, expires_at)"
            " VALUES (?, ?, ?, ?, ?)",
            [stored.id, token.name, stored.hash, token.created, token.expires],
        )
        self._sql.many(
            "INSERT INTO z_access_scopes (token_id, collection, may_write) VALUES (?, ?, ?)",
            [(stored.id, name, int(name in token.write)) for name in token.read],
        )

    def remove_token(self, name: str) -> AccessToken | None:
        """Remove a token and return it; None if there is none of this name."""
        for stored in self._tokens(" WHERE t.name = ?", [name]):
            self._sql.run("DELETE FROM z_access_tokens WHERE id = ?", [stored.id])
            return stored.token
        return None

    def mark_used(self, token_id: str, day: str) -> None:
        """Record the day (``2025-12-31``) on which a token was used."""
        self._sql.run("UPDATE z_access_tokens SET last_used = ? WHERE id = ?", [day, token_id])

    def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log; entries beyond `MAX_AUDIT_ENTRIES` are removed."""
        number = self._sql.number(
            "INSERT INTO audit (at, actor, face, session, action, target)"
            " VALUES (?, ?, ?, ?, ?, ?) RETURNING id",
            [entry.at, entry.actor, entry.face, entry.session, entry.action, entry.target],
        )
        if number % 100 == 0:  # now and then is enough
            self._sql.run("DELETE FROM audit WHERE id <= ?", [number - MAX_AUDIT_ENTRIES])
            oldest = clock.from_ns(clock.now_ns() - MAX_AUDIT_DAYS * _DAY_NS)
            self._sql.run("DELETE FROM audit WHERE at < ?", [oldest])


def rename_scopes(sql: Sql, old: str, new: str) -> None:
    """Let the tokens of a collection follow its new name."""
    remove_scopes(sql, new)  # a token may have been promised to push a folder of this name
    sql.run("UPDATE z_access_scopes SET collection = ? WHERE collection = ?", [new, old])


def remove_scopes(sql: Sql, collection: str) -> None:
    """Close a collection that is removed: a later one of its name is another."""
    sql.run("DELETE FROM z_access_scopes WHERE collection = ?", [collection])
