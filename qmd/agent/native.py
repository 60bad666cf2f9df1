"""
Calls of tools in the server's own form (``tools`` of chat completions), as blocks for the loop.

Towards the loop, calls are the blocks of `qmd.agent.parser`, and results the messages of
`qmd.agent.prompt`; towards the server they are native. So the loop, its events, the kept
conversations and all rules are the same for both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from qmd.agent.parser import Parsed, ToolCall, decoded, parse
from qmd.agent.prompt import Prompt, parts_of_results
from qmd.inference.llm import ChatAnswer, Message, NativeCall
from qmd.tools.definition import Tool

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # the names that OpenAI takes
_NO_NAME = "unknown_tool"


def functions(tools: Sequence[Tool[Any]]) -> list[dict[str, Any]]:
    """The tools as the API of chat completions describes them."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": tool.input_schema(),
            },
        }
        for tool in tools
    ]


# --- from the server to the loop ---------------------------------------------------------


def in_blocks(answer: ChatAnswer) -> ChatAnswer:
    """An answer whose text ends with a block for each native call."""
    if not answer.calls:
        return answer
    is_cut_off = answer.finish_reason == "length"
    last = len(answer.calls) - 1
    blocks = [
        block_of(call, is_cut_off=is_cut_off and number == last)
        for number, call in enumerate(answer.calls)
    ]
    text = f"{answer.text.rstrip()}\n\n" if answer.text.strip() else ""
    return replace(answer, text=text + "\n".join(blocks), calls=())


def block_of(call: NativeCall, *, is_cut_off: bool = False) -> str:
    """
    A native call as a block, on three lines whatever the call holds.

    Arguments that are no JSON make a block that the parser refuses, with the position of the
    fault; if the server cut the answer off there, a block without an end.
    """
    name = json.dumps(call.name, ensure_ascii=False)
    params, end, problem = decoded(call.arguments.strip() or "{}")
    if not problem and not call.arguments.strip()[end:].strip():
        written = json.dumps(params, ensure_ascii=False)
        return f'```json:tool\n{{"tool": {name}, "params": {written}}}\n```'
    broken = f'{{"tool": {name}, "params": {" ".join(call.arguments.split())}}}'
    if not decoded(broken)[2]:  # what follows the arguments must not make JSON of them
        broken = f'{{"tool": {name}, "params": {json.dumps(call.arguments)}}}'
    return f"```json:tool\n{broken}" + ("" if is_cut_off else "\n```")


# --- from the loop to the server ---------------------------------------------------------


def natively(messages: Sequence[Message], prompt: Prompt) -> list[Message]:
    """The messages of a loop, with native calls and results instead of blocks."""
    sent: list[Message] = []
    calls: tuple[NativeCall, ...] = ()
    count = 0  # of the calls so far; a number makes an id, as servers take few other characters
    for position, message in enumerate(messages):
        if message.role == "system":
            sent.append(Message("system", prompt.natively(message.content)))
        elif calls:
            results = parts_of_results(message.content, prompt.fence)
            sent += [
                Message("tool", result, call_id=call.id)
                for call, result in zip(calls, results, strict=True)
            ]
            calls = ()
        elif message.role == "assistant" and position + 1 < len(messages):
            parsed = parse(message.content)
            results = parts_of_results(messages[position + 1].content, prompt.fence)
            if parsed.blocks and len(parsed.blocks) == len(results):
                calls = _native_calls(parsed, count)
                count += len(calls)
                sent.append(Message("assistant", parsed.text, calls))
            else:
                sent.append(message)
        else:
            sent.append(message)
    return sent


def _native_calls(parsed: Parsed, count: int) -> tuple[NativeCall, ...]:
    """The blocks of an answer as native calls; servers reject what is no JSON, even in history."""
    calls = []
    for number, block in enumerate(parsed.blocks, count + 1):
        name, arguments = _NO_NAME, "{}"
        if isinstance(block, ToolCall):
            name = block.tool if _NAME.fullmatch(block.tool) else _NO_NAME
            arguments = json.dumps(block.params, ensure_ascii=False)
        calls.append(NativeCall(f"call{number:05}", name, arguments))
    return tuple(calls)
