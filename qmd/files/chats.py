"""
Writes a conversation with the agent as the text of a note, harmless to the programs that open it.

A note may have led the model to write what acts when it is shown: an image at another site tells
that site the text of its address, and programs for notes run queries and scripts in code.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from qmd.parse.convert.in_note import (
    code_in_note,
    inert_heading,
    inert_in_note,
    inert_markdown,
    inert_value,
)
from qmd.parse.lines import split_lines
from qmd.parse.markdown import closed
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

    The answers are those of a model, and a question may repeat the text of others:
    `qmd.parse.convert.in_note.inert_markdown` says what of them is not kept.
    """
    info = chat.info
    head = [
        "---",
        f"title: {json.dumps(inert_value(info.name), ensure_ascii=False)}",
        f"created: {info.created}",
        f"updated: {info.updated}",
        f"qmd_chat: {info.id}",
        "---",
        "",
        f"# {inert_heading(info.name)}",
    ]
    return "\n".join([*head, *(line for turn in chat.turns for line in _turn(turn))]) + "\n"


def _turn(turn: ChatTurn) -> Iterator[str]:
    first, *others = turn.question.strip().splitlines() or [""]
    yield from ("", f"## {inert_heading(first.strip())}", "")
    if any(map(str.strip, others)):
        quoted = split_lines(inert_markdown("\n".join(others)))
        yield from (*(f"> {line}".rstrip() for line in quoted), "")
    answer = closed(inert_markdown(turn.answer.strip()))
    yield answer or f"*{_STATUS.get(turn.status, 'No answer.')}*"
    sources = list(dict.fromkeys(_sources(turn)))
    if sources:
        yield from ("", "Sources:", "", *(f"- {source}" for source in sources))


def _sources(turn: ChatTurn) -> Iterator[str]:
    for event in turn.events:
        if event.kind == "answer":
            citations = event.data.get("citations")
            for each in citations if isinstance(citations, list) else ():
                if isinstance(each, dict) and each.get("status") == "ok":
                    page = f", {inert_in_note(str(each['place']))}" if each.get("place") else ""
                    lines = f"{each.get('from_line')}-{each.get('to_line')}"
                    place = code_in_note(f"{each.get('file')}:{lines}")
                    yield f"{place}{page}"
