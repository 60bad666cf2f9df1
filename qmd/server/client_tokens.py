"""Looks up what the tokens of clients open: those of the database, and those of an OAuth issuer."""

from __future__ import annotations

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request
from starlette.responses import Response

from qmd.kb import KnowledgeBase
from qmd.server.oauth import OauthOptions, TokenIssuer
from qmd.values.access import AccessScope

_AT_ONCE = 8  # more look-ups wait: one that asks the issuer for its keys may take seconds

_places: RunVar[anyio.CapacityLimiter] = RunVar("qmd_token_places")


class ClientTokens:
    """The tokens of all clients but the administrator."""

    def __init__(self, kb: KnowledgeBase, oauth: OauthOptions | None) -> None:
        self._kb = kb
        self._oauth = oauth
        self._issuer = None if oauth is None else TokenIssuer(oauth)

    async def find_scope(self, token: str) -> AccessScope | None:
        """What a client with this token may use; None if the token is not valid."""
        issuer = self._issuer
        if issuer is not None and issuer.may_be_token(token):
            return await anyio.to_thread.run_sync(issuer.scope_of, token, limiter=_limiter())
        return await anyio.to_thread.run_sync(self._kb.scope_of_token, token, limiter=_limiter())

    async def is_valid(self, scope: AccessScope) -> bool:
        """Whether the token that opened a scope is still valid."""
        if self._issuer is not None and self._issuer.is_valid(scope):
            return True
        return await anyio.to_thread.run_sync(self._kb.is_valid_scope, scope, limiter=_limiter())

    async def metadata(self, request: Request) -> Response:
        """Who issues tokens for this server (RFC 9728)."""
        assert self._oauth is not None
        return Response(self._oauth.metadata(), media_type="application/json")


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _places.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_AT_ONCE)
        _places.set(limiter)
        return limiter
