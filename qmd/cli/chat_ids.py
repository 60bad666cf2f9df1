"""Finds a conversation by the beginning of its id."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd.errors import AmbiguousNameError, ChatNotFoundError

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase
    from qmd.values.chats import ChatInfo

MOST = 2_000
"""The most conversations that are looked through: all that are kept."""


def resolve(kb: KnowledgeBase, beginning: str) -> ChatInfo:
    """The conversation whose id begins so. Raises ChatNotFoundError, AmbiguousNameError."""
    if not beginning:
        raise ChatNotFoundError(beginning)
    chats = [each for each in kb.chats(limit=MOST).chats if each.id.startswith(beginning)]
    if not chats:
        raise ChatNotFoundError(beginning)
    if len(chats) > 1:
        raise AmbiguousNameError(beginning, [each.id for each in chats])
    return chats[0]
