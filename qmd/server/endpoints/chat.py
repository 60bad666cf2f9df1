"""The endpoints of turns of the agent: ask, read, stop, answer, retry, delete."""

from __future__ import annotations

from qmd.agent.chat import AgentTurn
from qmd.server import rest_models as models
from qmd.server.endpoints.definition import Call, RestEndpoint
from qmd.values.chats import Chat, ChatReply


def begin(call: Call) -> AgentTurn:
    """Start the turn that a request asks for; it runs on a thread of its own."""
    arguments: models.ChatArguments = call.arguments
    return call.chats.start(arguments.question, arguments.chat or None, mode=arguments.mode)


def _ask(call: Call) -> ChatReply:
    return _reply(call, begin(call))


def _retry(call: Call) -> ChatReply:
    return _reply(call, call.chats.retry(call.path["chat"]))


def _reply(call: Call, turn: AgentTurn) -> ChatReply:
    arguments: models.ChatRetryArguments = call.arguments
    if arguments.wait:
        turn.wait()
    return turn.reply()


def _get(call: Call) -> Chat:
    return call.chats.chat(call.path["chat"])


def _delete(call: Call) -> models.ChatDone:
    call.chats.forget(call.path["chat"])
    return models.ChatDone("deleted", call.path["chat"])


def _stop(call: Call) -> models.ChatDone:
    call.chats.turn(call.path["chat"]).stop()
    return models.ChatDone("stopping", call.path["chat"])


def _answer(call: Call) -> models.ChatDone:
    arguments: models.ChatAnswerArguments = call.arguments
    call.chats.turn(call.path["chat"]).answer(arguments.question, arguments.agreed)
    return models.ChatDone("answered", call.path["chat"])


CHAT = RestEndpoint(
    method="POST",
    path="/chat",
    name="chat",
    group="chat",
    summary="Ask the agent",
    description=(
        "Asks a question, in a new conversation or in an earlier one, and answers when the turn "
        "has ended, however it ended (`status`). The turn goes on if the client leaves. "
        "`POST /chat/stream` takes the same body and sends what happens. Without a language model "
        "in the settings: 409."
    ),
    body=models.ChatArguments,
    reply=ChatReply,
    run=_ask,
    errors=(403, 404, 409),
    lane="chat",
    examples=({"question": "What did we decide about backups?"},),
)

ENDPOINTS: tuple[RestEndpoint, ...] = (
    CHAT,
    RestEndpoint(
        method="GET",
        path="/chats/{chat}",
        name="get_chat",
        group="chat",
        summary="A conversation with its turns",
        description="With all events of each turn, also of one that runs.",
        reply=Chat,
        run=_get,
        errors=(404,),
    ),
    RestEndpoint(
        method="DELETE",
        path="/chats/{chat}",
        name="delete_chat",
        group="chat",
        summary="Delete a conversation",
        description="For good. A turn that runs is stopped.",
        reply=models.ChatDone,
        run=_delete,
        errors=(404,),
        lane="write",
    ),
    RestEndpoint(
        method="POST",
        path="/chats/{chat}/stop",
        name="stop_chat",
        group="chat",
        summary="Stop the turn that runs",
        description="The model is not waited for any longer; a tool that writes is finished first.",
        reply=models.ChatDone,
        run=_stop,
        errors=(404,),
    ),
    RestEndpoint(
        method="POST",
        path="/chats/{chat}/answer",
        name="answer_chat",
        group="chat",
        summary="Agree to a write, or decline it",
        description=(
            "The event `question` of the turn shows the change. Only the session that began the "
            "turn may answer: the page in that browser, or REST with the same `X-QMD-Session`."
        ),
        body=models.ChatAnswerArguments,
        reply=models.ChatDone,
        run=_answer,
        errors=(403, 404),
        examples=({"question": "q1", "agreed": True},),
    ),
    RestEndpoint(
        method="POST",
        path="/chats/{chat}/retry",
        name="retry_chat",
        group="chat",
        summary="Resume a turn that has no answer",
        description="After an error, a stop or a limit, with all that was done before.",
        body=models.ChatRetryArguments,
        reply=ChatReply,
        run=_retry,
        errors=(403, 404, 409),
        lane="chat",
        examples=({},),
    ),
)
