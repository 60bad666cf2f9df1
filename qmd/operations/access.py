"""The tokens of clients, and who wrote what."""

from __future__ import annotations

from typing import Annotated

from qmd.errors import CollectionNotFoundError, ConflictError, NotFoundError
from qmd.operations.definition import KnowledgeBase, operation
from qmd.values.access import AccessToken, AuditEntry, NewAccessToken
from qmd.values.facts import Describe, Range, Shell
from qmd.values.text import one_line

_SEVERAL = "COLLECTION[,COLLECTION]..."


@operation(
    in_shell_alone=True,
    view="render_new_token",
    command="server token create",
    examples=(
        "qmd server token create anna --read work,docs",
        "qmd server token create agent --read docs --write inbox --expires 90d",
        "qmd server token create bea --read docs --push bea    # for qmd server push",
    ),
    errors=(CollectionNotFoundError, ConflictError),
    lane="write",
)
def create_token(
    kb: KnowledgeBase,
    name: str,
    read: Annotated[
        tuple[str, ...],
        Describe("Collections that clients may read"),
        Shell(_SEVERAL, completes="collections", by_comma=True),
    ] = (),
    write: Annotated[
        tuple[str, ...],
        Describe("Collections that clients may read and write"),
        Shell(_SEVERAL, completes="collections", by_comma=True),
    ] = (),
    push: Annotated[
        tuple[str, ...],
        Describe("Collections that clients may push and read; they need not exist yet"),
        Shell(_SEVERAL, by_comma=True),
    ] = (),
    expires: Annotated[
        str | None,
        Describe(
            "Refuse it after this time: 90d, 12h, 2w, 1y or a date; without this option it does"
            " not expire"
        ),
        Shell("WHEN"),
    ] = None,
) -> NewAccessToken:
    """
    Create a token NAME, and print it once.

    Clients send it to a server as 'Authorization: Bearer TOKEN'. Other collections do not exist
    for them. The token itself is stored nowhere, only its hash.
    """
    return kb.create_token(name, read=read, write=write, push=push, expires=expires)


@operation(
    in_shell_alone=True,
    view="render_tokens",
    command="server token list",
    examples=("qmd server token list", "qmd server token list --json"),
)
def tokens(kb: KnowledgeBase) -> list[AccessToken]:
    """List the tokens: what they open, and when each was last used."""
    return kb.tokens()


@operation(
    in_shell_alone=True,
    text=lambda replied: f"Revoked token {one_line(replied.value.name)}",
    command="server token revoke",
    destroys=True,
    examples=("qmd server token revoke anna",),
    errors=(NotFoundError,),
    lane="write",
)
def revoke_token(kb: KnowledgeBase, name: str) -> AccessToken:
    """Remove the token NAME; servers refuse it from then on."""
    return kb.revoke_token(name)


@operation(
    in_shell_alone=True,
    view="render_audit",
    command="server audit",
    examples=("qmd server audit --since 7d --token anna", "qmd server audit --json"),
)
def audit(
    kb: KnowledgeBase,
    since: Annotated[
        str | None,
        Describe("Only since 7d, yesterday, 2026-11 or another date"),
        Shell("WHEN"),
    ] = None,
    token: Annotated[
        str | None,
        Describe("Only what was written with this token; '' for the administrator"),
        Shell("NAME"),
    ] = None,
    limit: Annotated[int | None, Range(1, 100_000), Describe("Show at most N")] = 100,
) -> list[AuditEntry]:
    """
    Show who wrote what, and when, the latest first.

    It has every file that tools wrote, and every change of collections, contexts and tokens, of the
    last 400 days, at most 100,000 entries.
    """
    return kb.audit(since=since, token=token, limit=limit)
