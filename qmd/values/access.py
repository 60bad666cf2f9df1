"""Tokens that open a part of a knowledge base, what they open, and the log of who wrote what."""

from __future__ import annotations

from typing import Annotated

from qmd.records import dataclass
from qmd.values.facts import Describe

#: How each token begins, so that people and programs that look for secrets recognise it.
TOKEN_PREFIX = "qmd_"  # noqa: S105 - the beginning alone is no secret


@dataclass(frozen=True, slots=True)
class AccessScope:
    """
    The part of a knowledge base that a client may use.

    Attributes:
        owner: Whose conversations with the agent the client sees; unique to the client.
        name: The name of the client's token, for the audit log.
        read: The names of the collections that exist for the client, those of ``write`` among them.
        write: The names of the collections whose files it may write.
    """

    owner: str
    name: str
    read: frozenset[str]
    write: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A token as lists show it; its secret is stored nowhere."""

    name: Annotated[str, Describe("Its name")]
    read: Annotated[tuple[str, ...], Describe("Collections that its clients may read, by name")]
    write: Annotated[tuple[str, ...], Describe("Those of them that its clients may write")]
    created: Annotated[str, Describe("When it was created")]
    expires: Annotated[str | None, Describe("When it expires; null: never")]
    last_used: Annotated[str | None, Describe("The day (UTC) of its last use; null: never used")]
    expired: Annotated[bool, Describe("Whether it has expired")] = False


@dataclass(frozen=True, slots=True)
class NewAccessToken:
    """A token that was created just now, with its secret, which is shown this once."""

    token: Annotated[str, Describe("What clients send; it cannot be shown again")]
    stored: Annotated[AccessToken, Describe("The token as lists show it")]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """One thing that was written."""

    at: Annotated[str, Describe("When")]
    actor: Annotated[str, Describe("The name of the token; empty: the administrator")]
    face: Annotated[str, Describe("Through which part of qmd: cli, mcp, rest, page")]
    session: Annotated[str, Describe("The session, as the history of files names it")]
    action: Annotated[str, Describe("The tool, or what was done")]
    target: Annotated[str, Describe("The file, or what else was changed")]
