"""Calls that only read run at the same time; a call that writes waits for them."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from qmd import KnowledgeBase, Settings
from qmd.agent.events import EventLog
from qmd.agent.executor import MAX_TOGETHER, ToolExecutor
from qmd.agent.loop import ExecutionLoop, RunState
from qmd.agent.prompt import Prompt
from qmd.errors import RequestEndedError
from qmd.inference.llm import ChatAnswer, Message
from qmd.inference.llm.answer import Fence
from qmd.operations.replies import Reply, TextBlock
from qmd.operations.texts import Dialect
from qmd.system import cancellation
from qmd.system.cancellation import Cancellation
from qmd.tools.arguments import Arguments
from qmd.tools.definition import Tool

WAIT_S = 30


class Number(Arguments):
    number: int = 0


class Model:
    def __init__(self, *script: str) -> None:
        self.script = list(script)

    def chat(
        self, messages: Sequence[Message], *, listen: object = None, budget_s: float | None = None
    ) -> ChatAnswer:
        return ChatAnswer(self.script.pop(0))


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    path = tmp_path_factory.mktemp("together") / "index.sqlite"
    settings = Settings(confirm_writes=lambda proposed: True)
    with KnowledgeBase.open(path, settings, create=True) as opened:
        yield opened


def block(tool: str, number: int) -> str:
    return "```json:tool\n" + json.dumps({"tool": tool, "params": {"number": number}}) + "\n```\n"


def run(kb: KnowledgeBase, answer: str, *tools: Tool[Any], **options: Any) -> RunState:
    loop = ExecutionLoop(
        Model(answer, "Done."), ToolExecutor(kb, tools), system=Prompt("", Fence("f" * 16)),
        **options,
    )  # fmt: skip
    return loop.run("question")


def tool(name: str, work: Any, *, read_only: bool = True) -> Tool[Any]:
    def call(kb: KnowledgeBase, arguments: Number, dialect: Dialect) -> Reply:
        text = str(work(arguments.number))
        return Reply((TextBlock(text),))

    return Tool(name, None, name, Number, call, read_only=read_only)


def test_calls_in_a_row_that_read_meet_and_keep_their_order(kb: KnowledgeBase) -> None:
    barrier = threading.Barrier(MAX_TOGETHER)
    log = EventLog()

    def meet(number: int) -> int:
        barrier.wait(WAIT_S)
        return number

    answer = "".join(block("look", number) for number in range(1, 2 * MAX_TOGETHER + 1))
    result = run(kb, answer, tool("look", meet), tell=log.add)
    numbers = [str(number) for number in range(1, 2 * MAX_TOGETHER + 1)]
    assert [each.result.data for each in result.tool_executions] == numbers
    finished = [each.data for each in log.all() if each.kind == "tool_finished"]
    assert [each["result"] for each in finished] == numbers
    started = [each.data for each in log.all() if each.kind == "tool_started"]
    assert [each["params"] for each in started] == [{"number": int(each)} for each in numbers]
    assert [each["call"] for each in started] == [each["call"] for each in finished]


def test_a_call_that_writes_waits_for_those_before_and_blocks_those_behind(
    kb: KnowledgeBase,
) -> None:
    order: list[str] = []
    barrier = threading.Barrier(2)

    def look(number: int) -> int:
        barrier.wait(WAIT_S)
        order.append("look")
        return number

    def write(number: int) -> int:
        order.append("write")
        return number

    answer = "".join(
        block(name, number)
        for number, name in enumerate(["look", "look", "write", "look", "look", "write"])
    )
    result = run(kb, answer, tool("look", look), tool("write", write, read_only=False))
    assert order == ["look", "look", "write", "look", "look", "write"]
    assert [each.result.data for each in result.tool_executions] == list("012345")


def test_an_error_in_one_call_leaves_the_others_alone(kb: KnowledgeBase) -> None:
    def look(number: int) -> float:
        return 1 / number

    result = run(kb, block("look", 0) + block("look", 1), tool("look", look))
    assert [each.result.success for each in result.tool_executions] == [False, True]


def test_a_stop_ends_all_of_them(kb: KnowledgeBase) -> None:
    begun = threading.Barrier(3)
    ended: list[int] = []

    def look(number: int) -> int:
        begun.wait(WAIT_S)
        waiting = threading.Event()
        try:
            while not waiting.wait(0.005):
                cancellation.check()
        except RequestEndedError:
            ended.append(number)
            raise
        return number

    signal = Cancellation()

    def stop() -> None:
        begun.wait(WAIT_S)
        signal.cancel()

    thread = threading.Thread(target=stop)
    thread.start()
    result = run(kb, block("look", 1) + block("look", 2), tool("look", look), stop=signal)
    thread.join(WAIT_S)
    assert result.interrupted
    assert sorted(ended) == [1, 2]
    assert "Not run: the user stopped" in result.messages[-1].content
