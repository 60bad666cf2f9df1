"""
Conversations of a person with the agent, which go on while nobody looks and are kept.

::

    chats = Chats(kb)                            # one for each open knowledge base
    turn = chats.start("What did we decide?")    # returns at once; the turn runs on a thread
    for event in turn.events():                  # all from the beginning, until the turn has ended
        print(event.kind, event.data)
    turn = chats.start("And why?", turn.chat)    # goes on with the conversation

A `AgentTurn` is one question and all that comes of it. From another thread or from asyncio:

- ``turn.subscribe(listener)`` calls ``listener(event)`` with all events so far and then with each
  further one, on the turn's thread, so it must only pass the event on (for asyncio:
  ``loop.call_soon_threadsafe``). It returns a function that ends the subscription.
- ``turn.stop()`` ends the wait for the model at once; a tool that writes is finished first.
- ``turn.answer(question, agreed)`` answers the event ``question`` of a write that waits.
- ``turn.status`` and ``turn.wait(timeout_s)``; ``turn.text()`` is the answer so far.

Of the service: ``chats.turn(chat_id)`` is the turn that runs, or the last one of this process;
``chats.retry(chat_id)`` resumes a turn that failed, was stopped, interrupted or reached a limit;
``chats.forget(chat_id)`` stops and deletes a conversation. The knowledge base itself lists,
searches, reads, renames, exports (`qmd.kb.chats`). docs/agent.md describes the events.

Errors: `NoLanguageModelError` (no server is set), `WritesForbiddenError` (mode ``write`` where
nothing may be written), `ConflictError` (the conversation has a turn that runs; too many turns
run; too long), `InputError` (a blank or too long question), `ChatNotFoundError`.
"""

from qmd.agent.chat.service import Chats
from qmd.agent.chat.turn import AgentTurn

__all__ = ["AgentTurn", "Chats"]
