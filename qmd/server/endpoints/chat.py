"""The endpoints of turns of the agent: ask, read, stop, answer, retry, delete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from qmd import errors
from qmd.operations.definition import operation
from qmd.server.endpoints.definition import Call
from qmd.values.chats import MAX_QUESTION, Chat, ChatMode, ChatReply
from qmd.values.facts import Describe, InSchema

if TYPE_CHECKING:
    from qmd.agent.chat import AgentTurn

_OF_A_TURN = (
    errors.WritesForbiddenError,
    errors.ChatNotFoundError,
    errors.ConflictError,
    errors.NoLanguageModelError,
)
FAMILY = {
    "toolset": None,
    "command": None,
    "group": "chat",
    "never_cut": True,
    "errors": (errors.ChatNotFoundError,),
}

_Wait = Annotated[bool, Describe("Answer when the turn has ended; false: at once")]


@dataclass(frozen=True, slots=True)
class ChatDone:
    status: Literal["stopping", "answered", "deleted"]
    chat: str


def _reply(turn: AgentTurn, *, wait: bool) -> ChatReply:
    if wait:
        turn.wait()
    return turn.reply()


@operation(
    route="POST /chat",
    errors=_OF_A_TURN,
    lane="chat",
    bodies=({"question": "What did we decide about backups?"},),
)
def chat(
    call: Call,
    question: Annotated[
        str,
        Describe("What to ask the agent"),
        InSchema(maxLength=MAX_QUESTION, pattern=r"\S"),
    ],
    chat: Annotated[
        str | None, Describe("Go on with this conversation; none for a new one")
    ] = None,
    mode: Annotated[
        ChatMode,
        Describe("write: the agent may change files, and each change waits for /answer"),
    ] = "read",
    wait: _Wait = True,
) -> ChatReply:
    """
    Ask the agent.

    Asks a question, in a new conversation or in an earlier one, and answers when the turn has
    ended, however it ended (`status`). The turn goes on if the client leaves. `POST /chat/stream`
    takes the same body and sends what happens. Without a language model in the settings: 409.
    """
    return _reply(call.chats.start(question, chat, mode=mode), wait=wait)


@operation(route="GET /chats/{chat}")
def get_chat(call: Call, chat: str) -> Chat:
    """
    A conversation with its turns.

    With all events of each turn, also of one that runs.
    """
    return call.chats.chat(chat)


@operation(route="DELETE /chats/{chat}", lane="write")
def delete_chat(call: Call, chat: str) -> ChatDone:
    """
    Delete a conversation.

    For good. A turn that runs is stopped.
    """
    call.chats.forget(chat)
    return ChatDone("deleted", chat)


@operation(route="POST /chats/{chat}/stop")
def stop_chat(call: Call, chat: str) -> ChatDone:
    """
    Stop the turn that runs.

    The model is not waited for any longer; a tool that writes is finished first.
    """
    call.chats.turn(chat).stop()
    return ChatDone("stopping", chat)


@operation(
    route="POST /chats/{chat}/answer",
    errors=(errors.WritesForbiddenError, errors.ChatNotFoundError, errors.NotFoundError),
    bodies=({"question": "q1", "agreed": True},),
)
def answer_chat(
    call: Call,
    chat: str,
    question: Annotated[str, Describe("The question that waits, as its event names it")],
    agreed: Annotated[bool, Describe("Whether the change may be written")],
) -> ChatDone:
    """
    Agree to a write, or decline it.

    The event `question` of the turn shows the change. Only the session that began the turn may
    answer: the page in that browser, or REST with the same `X-QMD-Session`.
    """
    call.chats.turn(chat).decide(question, agreed)
    return ChatDone("answered", chat)


@operation(route="POST /chats/{chat}/retry", errors=_OF_A_TURN, lane="chat", bodies=({},))
def retry_chat(call: Call, chat: str, wait: _Wait = True) -> ChatReply:
    """
    Resume a turn that has no answer.

    After an error, a stop or a limit, with all that was done before.
    """
    return _reply(call.chats.retry(chat), wait=wait)
