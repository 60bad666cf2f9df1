"""Writes a conversation with the agent as the text of a note."""

from __future__ import annotations

import json
from collections.abc import Iterator

from qmd.files.inert import inert
from qmd.values.chats import Chat, ChatTurn

_STATUS = {
    "running": "This question is still being answered.",
    "stopped": "Stopped before it was answered.",
    "failed": "An error ended this turn.",
    "limit": "The limit of rounds or time was reached.",
    "interrupted": "The program ended before it was answered.",
}


def chat_as_note(chat: Chat) -> str:
    """
    Frontmatter, and for each turn the question as a heading, the answer and its sources.

    The answers are those of a model: `qmd.files.inert` says what of them is not kept.
    """
    info = chat.info
    head = [
        "---",
        f"title: {json.dumps(info.name, ensure_ascii=False)}",
        f"created: {info.created}",
        f"updated: {info.updated}",
        f"qmd_chat: {info.id}",
        "---",
        "",
        f"# {info.name}",
    ]
    return "\n".join([*head, *(line for turn in chat.turns for line in _turn(turn))]) + "\n"


def _turn(turn: ChatTurn) -> Iterator[str]:
    first, *others = turn.question.strip().splitlines() or [""]
    yield from ("", f"## {first.strip()}", "")
    if any(map(str.strip, others)):
        yield from (*(f"> {line}".rstrip() for line in others), "")
    yield inert(turn.answer.strip()) or f"*{_STATUS.get(turn.status, 'No answer.')}*"
    sources = list(dict.fromkeys(_sources(turn)))
    if sources:
        yield from ("", "Sources:", "", *(f"- {source}" for source in sources))


def _sources(turn: ChatTurn) -> Iterator[str]:
    for event in turn.events:
        if event.kind == "answer":
            citations = event.data.get("citations")
            for each in citations if isinstance(citations, list) else ():
                if isinstance(each, dict) and each.get("status") == "ok":
                    yield f"`{each.get('file')}:{each.get('from_line')}-{each.get('to_line')}`"
