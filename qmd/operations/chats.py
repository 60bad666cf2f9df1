"""Conversations with the agent that are kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from qmd import errors
from qmd.operations.definition import KnowledgeBase, Replied, operation
from qmd.values.chats import MAX_NAME, ChatInfo, ChatPage
from qmd.values.facts import Describe, Inline, InSchema, Range, Shell
from qmd.values.text import one_line

FAMILY = {"toolset": None, "group": "chat"}

#: The most conversations that are looked through: all that are kept.
MOST = 2_000

_Chat = Annotated[str, Shell("ID", completes="chats")]


def resolve(kb: KnowledgeBase, beginning: str) -> ChatInfo:
    """The conversation whose id begins so. Raises ChatNotFoundError, AmbiguousNameError."""
    if not beginning:
        raise errors.ChatNotFoundError(beginning)
    chats = [each for each in kb.chats(limit=MOST).chats if each.id.startswith(beginning)]
    if not chats:
        raise errors.ChatNotFoundError(beginning)
    if len(chats) > 1:
        raise errors.AmbiguousNameError(beginning, [each.id for each in chats])
    return chats[0]


@operation(
    never_cut=True,
    command=None,  # 'qmd chat list' and 'qmd chat search': `qmd.cli.chat`
)
def chats(
    kb: KnowledgeBase,
    query: Annotated[str, Describe("Words in names, questions and answers")] = "",
    limit: Annotated[int, Range(1, 1000), Describe("The most conversations to list")] = 50,
    offset: Annotated[int, Range(0, 999_999), Describe("How many to leave out at the start")] = 0,
) -> ChatPage:
    """
    Conversations, the latest first.

    All, or those that hold all words of the query.
    """
    return kb.chats(query, limit=limit, offset=offset)


@dataclass(frozen=True, slots=True)
class ChatRenamed:
    chat: Annotated[ChatInfo, Inline()]


def _chat_renamed(replied: Replied) -> ChatRenamed:
    return ChatRenamed(replied.value)


@operation(
    route="PUT /chats/{chat}",
    sends=_chat_renamed,
    text=lambda replied: f"Renamed {replied.value.id} to {one_line(replied.value.name)}",
    command="chat rename",
    examples=("qmd chat rename 3f9a 'Backups'",),
    bodies=({"name": "Backups"},),
    errors=(errors.ChatNotFoundError, errors.AmbiguousNameError),
    lane="write",
)
def rename_chat(
    kb: KnowledgeBase,
    chat: _Chat,
    name: Annotated[str, Describe("The new name"), InSchema(maxLength=MAX_NAME)],
) -> ChatInfo:
    """
    Rename a conversation.

    The first name is made of the first question.
    """
    return kb.rename_chat(resolve(kb, chat).id, name)


@operation(
    in_shell_alone=True,  # a server stops the turn that runs, too: `qmd.server.endpoints`
    text=lambda replied: f"Deleted {replied.value.id}: {one_line(replied.value.name)}",
    command="chat delete",
    destroys=True,
    examples=("qmd chat delete 3f9a",),
    errors=(errors.ChatNotFoundError, errors.AmbiguousNameError),
    lane="write",
)
def delete_chat(kb: KnowledgeBase, chat: _Chat) -> ChatInfo:
    """Delete a conversation for good."""
    info = resolve(kb, chat)
    kb.delete_chat(info.id)
    return info


@dataclass(frozen=True, slots=True)
class ChatExported:
    status: Literal["exported"]
    chat: str
    path: Annotated[str, Describe("The new note")]


def _chat_exported(replied: Replied) -> ChatExported:
    exported: ChatExported = replied.value
    return exported


@operation(
    route="POST /chats/{chat}/export",
    sends=_chat_exported,
    text=lambda replied: f"Wrote {one_line(replied.value.path)}",
    command="chat export",
    examples=("qmd chat export 3f9a notes/backups.md",),
    bodies=({"path": "notes/backups.md"},),
    errors=(
        errors.ChatNotFoundError,
        errors.AmbiguousNameError,
        errors.InvalidPathError,
        errors.ConflictError,
        errors.EditError,
        errors.OutsideRootsError,
        errors.FileAccessError,
    ),
    lane="write",
)
def export_chat(
    kb: KnowledgeBase,
    chat: _Chat,
    path: Annotated[
        str,
        Describe("The new note, as collection/path"),
        Shell("NOTE", completes="documents"),
    ],
) -> ChatExported:
    """
    Write a conversation into a new note, as collection/path.

    Questions, answers and sources as Markdown, with history and undo.
    """
    return ChatExported("exported", chat, kb.export_chat(resolve(kb, chat).id, path).path)
