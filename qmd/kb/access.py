"""Tokens that open a part of the knowledge base, and the log of who wrote what."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from qmd import ingest, lazy, libraries, search, values
from qmd.errors import ConflictError, InputError, NotFoundError
from qmd.kb.parts import Parts
from qmd.store import sql
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.store import Writer
    from qmd.values.access import AccessScope, AccessToken, AuditEntry, NewAccessToken

_NAME = lazy.pattern(r"[\w.@-]{1,60}")


class AccessMethods(Parts):
    def create_token(
        self,
        name: str,
        *,
        read: Sequence[str] = (),
        write: Sequence[str] = (),
        push: Sequence[str] = (),
        expires: str | None = None,
    ) -> NewAccessToken:
        """
        Create a token with which a client of a server uses some collections only.

        Args:
            read: The names of collections that its clients may read.
            write: Those whose files they may write; they may read these, too.
            push: Those that they may push (`push`) and read; these need not exist yet.
            expires: When the token expires: after a span such as ``90d`` (h, d, w, y), or at a
                date; None for never.

        Raises:
            CollectionNotFoundError.
            ConflictError: There is a token of this name, or a collection of ``push`` is a folder
                of this machine.
            InputError: The name or the time is not usable, or no collection is named.
            StoreError: The database cannot restrict readers: its user may not make the views.
        """
        if _NAME.fullmatch(name) is None:
            raise InputError(
                f"Not a usable name of a token: {name!r}",
                hint="Use 1 to 60 letters, digits and . _ @ -",
            )
        existing = tuple(sorted({*read, *write}))
        names = tuple(sorted({*existing, *push}))
        for each in push:
            ingest.new_collection.check_name(each)
        if not names:
            raise InputError(
                "A token opens at least one collection.",
                hint="For example: --read work,docs --write inbox",
            )
        until = None if expires is None else _expiry(expires)
        token = values.access.AccessToken(
            name, names, tuple(sorted({*write, *push})), clock.now(), until, None
        )
        secret = values.access.TOKEN_PREFIX + libraries.secrets.token_urlsafe(32)
        digest = libraries.hashlib.sha256(secret.encode()).hexdigest()

        def add(writer: Writer) -> None:
            writer.collections.ids(existing)  # raises for a name that no collection has
            not_pushed = {each.name for each in writer.collections.all() if not each.owner}
            for each in sorted(not_pushed.intersection(push)):
                raise ConflictError(
                    f"The collection '{each}' is a folder of the server itself; nobody pushes it.",
                    hint=f"--write {each} lets clients change its files; for what another machine"
                    " sends, choose another name.",
                )
            writer.access.add_token(
                sql.access.StoredAccessToken(libraries.secrets.token_hex(8), digest, token)
            )

        with self._store.scoped(
            values.access.AccessScope("", name, frozenset(), frozenset())
        ).reading():
            pass  # the database can restrict readers
        self._write_audited(self._store, "token create", name, add)
        return values.access.NewAccessToken(secret, token)

    def tokens(self) -> list[AccessToken]:
        """All tokens, by name."""
        return self._store.read(lambda reader: [stored.token for stored in reader.access.tokens()])

    def revoke_token(self, name: str) -> AccessToken:
        """
        Remove a token: from now on it is refused.

        Raises:
            NotFoundError: There is none of this name.
        """

        def remove(writer: Writer) -> AccessToken:
            removed = writer.access.remove_token(name)
            if removed is None:
                raise NotFoundError(
                    f"There is no token '{name}'.", hint="See: qmd server token list"
                )
            return removed

        return self._write_audited(self._store, "token revoke", name, remove)

    def scope_of_token(self, secret: str) -> AccessScope | None:
        """What a client with this token may use; None if no such token is valid now."""
        digest = libraries.hashlib.sha256(secret.encode("utf-8", "surrogateescape")).hexdigest()
        store = self._store
        stored = store.read(lambda reader: reader.access.token_with_hash(digest))
        if (
            stored is None
            or not libraries.hmac.compare_digest(stored.hash, digest)
            or stored.token.expired
        ):
            return None
        today = clock.now()[:10]
        if stored.token.last_used != today:
            store.write_soon(lambda writer: writer.access.mark_used(stored.id, today), lambda: None)
        token = stored.token
        owner = f"token:{stored.id}"
        return values.access.AccessScope(
            owner, token.name, frozenset(token.read), frozenset(token.write)
        )

    def is_valid_scope(self, scope: AccessScope) -> bool:
        """Whether a token opens just this scope now: it was not revoked, and has not expired."""
        tokens = self._store.read(lambda reader: reader.access.tokens())
        return any(
            scope.owner == f"token:{each.id}"
            and scope.read == frozenset(each.token.read)
            and scope.write == frozenset(each.token.write)
            and not each.token.expired
            for each in tokens
        )

    def audit(
        self, *, since: str | None = None, token: str | None = None, limit: int | None = 100
    ) -> list[AuditEntry]:
        """
        The latest entries of the log of who wrote what, newest first.

        Args:
            since: Only what was written since then: a span such as ``7d``, or a date; None for all.
            token: Only what was written with the token of this name; "" is the administrator.
            limit: Return at most this many; None for all.

        Raises:
            InputError: ``since`` is neither a span nor a date.
        """
        limit = sql.access.MAX_AUDIT_ENTRIES if limit is None else limit
        start = None if since is None else search.query.moment(since, datetime.now(timezone.utc))
        with self._store.reading() as reader:
            return reader.access.audit(since=start, actor=token, limit=limit)


def _expiry(text: str) -> str:
    """
    The time (ISO 8601 UTC) that a span from now on, or a date, means.

    Raises:
        InputError: It is neither, or has passed.
    """
    now = datetime.now(timezone.utc)
    length = search.query.span(text)
    try:
        until = clock.parse(search.query.filter_date(text)) if length is None else now + length
        end = until.astimezone(timezone.utc)
    except (InputError, OverflowError):
        raise InputError(
            f"{text!r} is neither a span of time nor a date.",
            hint="Write 90d, 12h, 2w, 1y or 2027-03-01.",
        ) from None
    if end <= now:
        raise InputError(f"A token that expires at {text} would be refused at once.")
    return end.isoformat(timespec="milliseconds").replace("+00:00", "Z")
