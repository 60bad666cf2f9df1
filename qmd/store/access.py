"""Tokens of clients, and the audit log."""

from __future__ import annotations

from typing import NamedTuple, Protocol

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


class Access(Protocol):
    """Reads tokens and the audit log."""

    def tokens(self) -> list[StoredAccessToken]:
        """All tokens, by name."""
        ...

    def token_with_hash(self, hash_: str) -> StoredAccessToken | None:
        """The token whose secret has this SHA-256 (hexadecimal); None if there is none."""
        ...

    def audit(
        self, *, since: str | None = None, actor: str | None = None, limit: int
    ) -> list[AuditEntry]:
        """
        The latest entries of the audit log, newest first.

        Args:
            since: Only entries from this time on (ISO 8601 UTC); None for all.
            actor: Only entries of this token; "" for those of the administrator, None for all.
        """
        ...


class AccessWriter(Access, Protocol):
    """Changes tokens, and adds to the audit log."""

    def add_token(self, stored: StoredAccessToken) -> None:
        """
        Add a token.

        Raises:
            ConflictError: There is a token of this name.
        """
        ...

    def remove_token(self, name: str) -> AccessToken | None:
        """Remove a token and return it; None if there is none of this name."""
        ...

    def mark_used(self, token_id: str, day: str) -> None:
        """Record the day (``2025-12-31``) on which a token was used."""
        ...

    def record(self, entry: AuditEntry) -> None:
        """Add an entry to the audit log; entries beyond `MAX_AUDIT_ENTRIES` are removed."""
        ...
