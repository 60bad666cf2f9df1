"""
Lets clients in with tokens of an OAuth 2.1 authorization server (`--oauth-issuer`).

This server is the resource server. Its metadata (RFC 9728) name the issuer, so that MCP clients
know where to ask for a token. Tokens are JWTs (RFC 9068), checked by the keys that the issuer
publishes (RFC 8414, RFC 7517). Their scopes ``qmd:read:NAME`` and ``qmd:write:NAME`` open
collections.
"""

from __future__ import annotations

import hashlib
import json
import logging
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import anyio
import anyio.to_thread
from anyio.lowlevel import RunVar
from starlette.requests import Request
from starlette.responses import Response

from qmd import libraries
from qmd.errors import InputError
from qmd.ingest.new_collection import check_name
from qmd.kb import KnowledgeBase
from qmd.server.security import is_loopback
from qmd.server.workers import limiter_of_loop
from qmd.system import http_client
from qmd.system.http_client import ProxyError
from qmd.values.access import AccessScope

if TYPE_CHECKING:
    import jwt

METADATA_PATH = "/.well-known/oauth-protected-resource"

#: The most characters of a token.
MAX_TOKEN = 16_384

#: Seconds after which the keys of the issuer are read again.
KEYS_S = 600.0

#: Seconds between two readings of the keys, also if tokens name unknown ones.
RETRY_S = 30.0

_MAX_BYTES = 256 * 1024
_WAIT_S = 5.0
_LEEWAY_S = 30  # by which the clocks of two machines may differ
#: Signatures by a private key. One that the issuer shares with this server could be forged here.
_ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512",
               "EdDSA"]  # fmt: skip
_MIN_RSA_BITS = 2048  # RFC 7518, section 3.3; shorter keys can be computed from public ones
_LATEST = 2**53  # the time of an end that a float can hold
_READ, _WRITE = "qmd:read:", "qmd:write:"

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OauthOptions:
    """
    Who issues tokens for this server.

    Attributes:
        issuer: The URL of the authorization server.
        resource: The URL at which clients reach MCP; tokens must be made for it (``aud``).
    """

    issuer: str
    resource: str

    @property
    def metadata_url(self) -> str:
        """Where clients find the metadata of the resource (RFC 9728, section 3.1)."""
        url = urlsplit(self.resource)
        path = METADATA_PATH + url.path.rstrip("/")
        return urlunsplit((url.scheme, url.netloc, path, "", ""))

    @property
    def metadata_paths(self) -> frozenset[str]:
        """The paths of the metadata on this server."""
        return frozenset({METADATA_PATH, urlsplit(self.metadata_url).path})

    def metadata(self) -> bytes:
        """The metadata, as JSON. The names of collections are not among them: all may read this."""
        values = {
            "resource": self.resource,
            "authorization_servers": [self.issuer],
            "bearer_methods_supported": ["header"],
            "resource_name": "qmd",
        }
        return json.dumps(values).encode()


def check_options(issuer: str, resource: str) -> OauthOptions:
    """
    Check the URLs.

    Raises:
        InputError: One is no URL, or leads over plain HTTP to another machine.
    """
    for url in (issuer, resource):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
            raise InputError(f"Not a URL: {url}", hint="For example: https://login.example.org")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise InputError(
                f"{url} is not encrypted: whoever is on the way could change it.",
                hint="Use https.",
            )
    return OauthOptions(issuer, resource)


class TokenIssuer:
    """Checks the tokens of one issuer. Thread-safe; `scope_of` may ask the issuer for its keys."""

    def __init__(self, options: OauthOptions) -> None:
        self._options = options
        self._lock = threading.Lock()  # never held while the issuer is asked
        self._reading = threading.Lock()
        self._keys: list[jwt.PyJWK] = []
        self._read_at = float("-inf")
        self._ends: dict[AccessScope, float] = {}

    @staticmethod
    def may_be_token(text: str) -> bool:
        """Whether a text has the form of a JWT."""
        return text.startswith("eyJ") and text.count(".") == 2 and len(text) <= MAX_TOKEN

    def scope_of(self, token: str) -> AccessScope | None:
        """What a client with this token may use; None if the token is not valid here."""
        try:
            header = libraries.jwt.get_unverified_header(token)
            key = self._key(header.get("kid"))
            if key is None:
                return None
            claims = libraries.jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=self._options.resource,
                issuer=self._options.issuer,
                leeway=_LEEWAY_S,
                options={"require": ["exp", "iss", "aud", "sub"]},
            )
        except (libraries.jwt.PyJWTError, ValueError, TypeError, OverflowError) as error:
            _log.info("a token of the issuer is refused: %s", error)
            return None
        scope = _scope_of_claims(claims)
        now = time.time()
        end = float(min(int(claims["exp"]), _LATEST))
        with self._lock:
            self._ends = {each: end for each, end in self._ends.items() if end > now}
            self._ends[scope] = max(self._ends.get(scope, 0.0), end)
        return scope

    def is_valid(self, scope: AccessScope) -> bool:
        """Whether a token that opened this scope has not expired."""
        with self._lock:
            return self._ends.get(scope, 0.0) > time.time() - _LEEWAY_S

    def _key(self, key_id: str | None) -> jwt.PyJWK | None:
        key = self._fresh_key(key_id)
        if key is not None:
            return key
        with self._reading:
            key = self._fresh_key(key_id)  # another thread may have read it meanwhile
            age = time.monotonic() - self._read_at
            if key is None and age > RETRY_S:
                self._read_at = time.monotonic()
                try:
                    self._keys = self._read_keys()
                except (
                    http_client.HttpError, ProxyError, libraries.jwt.PyJWTError, InputError,
                    ValueError, TypeError, AttributeError, RecursionError,
                ) as error:  # fmt: skip
                    _log.warning("the keys of %s cannot be read: %s", self._options.issuer, error)
            return _chosen(self._keys, key_id)

    def _fresh_key(self, key_id: str | None) -> jwt.PyJWK | None:
        """A key that was read within the last `KEYS_S`; None if there is none with this id."""
        if time.monotonic() - self._read_at > KEYS_S:
            return None
        return _chosen(self._keys, key_id)

    def _read_keys(self) -> list[jwt.PyJWK]:
        """Raises HttpError, PyJWTError, ValueError."""
        issuer = self._options.issuer
        url = urlsplit(issuer)
        path = url.path.rstrip("/")
        places = (  # RFC 8414, section 3.1; OpenID Connect Discovery, section 4
            urlunsplit((*url[:2], "/.well-known/oauth-authorization-server" + path, "", "")),
            issuer.rstrip("/") + "/.well-known/openid-configuration",
        )
        for place in places:
            metadata = _read_json(place)
            if metadata is None:
                continue
            if metadata.get("issuer") != issuer:
                raise ValueError(f"{place} is of another issuer: {metadata.get('issuer')}")
            address = str(metadata.get("jwks_uri", ""))
            check_options(issuer, address)
            keys = _read_json(address)
            if keys is None:
                raise ValueError(f"{address} has no keys")
            return [key for key in libraries.jwt.PyJWKSet.from_dict(keys).keys if _may_sign(key)]
        raise ValueError("it has no metadata")


def _may_sign(key: jwt.PyJWK) -> bool:
    """Whether signatures by a key count: one for encryption is in other hands, a short one too."""
    is_short = key.key_type == "RSA" and key.key.key_size < _MIN_RSA_BITS
    return key.public_key_use in (None, "sig") and not is_short


def _chosen(keys: list[jwt.PyJWK], key_id: str | None) -> jwt.PyJWK | None:
    """The key with an id; without an id the only key."""
    if key_id is None:
        return keys[0] if len(keys) == 1 else None
    return next((key for key in keys if key.key_id == key_id), None)


def _read_json(url: str) -> dict[str, Any] | None:
    """The object at a URL; None if there is none (404). Raises HttpError, ValueError."""
    with http_client.request(url, limit=http_client.TimeLimit(_WAIT_S, _WAIT_S)) as reply:
        body = reply.read(_MAX_BYTES)
        if reply.status == 404:
            return None
        if reply.status != 200:
            raise ValueError(f"{url} answers {reply.status}")
    value = json.loads(body)
    if not isinstance(value, dict):
        raise ValueError(f"{url} is no object")  # noqa: TRY004 - as for other wrong replies
    return value


def _scope_of_claims(claims: Mapping[str, Any]) -> AccessScope:
    write, read = _named(claims, _WRITE), _named(claims, _READ)
    subject = str(claims["sub"])
    # Whoever has another token of the same subject may see less than this one's conversations.
    identity = json.dumps([claims["iss"], subject, sorted(read | write), sorted(write)])
    owner = f"oauth:{hashlib.sha256(identity.encode()).hexdigest()}"
    name = "".join(each if each.isprintable() else "?" for each in subject)[:60]
    return AccessScope(owner, f"oauth:{name}", frozenset(read | write), frozenset(write))


def _named(claims: Mapping[str, Any], prefix: str) -> set[str]:
    """The collections that scopes with a prefix name; no name that no collection can have."""
    granted = claims.get("scope") or claims.get("scp")
    words = granted.split() if isinstance(granted, str) else granted
    named = set()
    for word in words if isinstance(words, list) else ():
        if isinstance(word, str) and word.startswith(prefix):
            name = unquote(word.removeprefix(prefix))
            with suppress(InputError):
                check_name(name)
                named.add(name)
    return named


# --- tokens of clients ----------------------------------------------------------------


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
    return limiter_of_loop(_places, _AT_ONCE)
