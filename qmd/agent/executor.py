"""Runs the tools that the model calls, and keeps which lines of documents it has read by them."""

from __future__ import annotations

import contextvars
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from qmd.agent.parser import ToolCall
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.operations.problems import InvalidArgumentsError, parameter_sentences
from qmd.operations.replies import DocumentBlock, Reply
from qmd.operations.texts import MCP, error_text
from qmd.system.cancellation import Cancellation
from qmd.tools.arguments import validate
from qmd.tools.definition import Tool
from qmd.values.text import one_line

#: The first and the last line, counted from 1.
LineRange = tuple[int, int]

_MAX_FILES = 2_000
_MAX_RANGES = 20_000  # of all files


class Reading:
    """Lines of documents, named ``collection/path``."""

    def __init__(self, lines: Mapping[str, Sequence[LineRange]] | None = None) -> None:
        self._lines: dict[str, list[LineRange]] = {}
        self._ranges = 0
        for file, ranges in (lines or {}).items():
            for first, last in ranges:
                self.add(file, first, last)

    def add(self, file: str, first: int, last: int) -> None:
        """Add lines; more than any run reads are not kept."""
        if last < first or self._ranges >= _MAX_RANGES:
            return
        if file not in self._lines and len(self._lines) >= _MAX_FILES:
            return
        ranges = self._lines.setdefault(file, [])
        if ranges and ranges[-1][0] <= first <= ranges[-1][1] + 1:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
            return
        ranges.append((first, last))
        self._ranges += 1

    def merge(self, others: Iterable[Reading]) -> Reading:
        """These lines and those of others."""
        merged = Reading(self._lines)
        for other in others:
            for file, ranges in other._lines.items():
                for first, last in ranges:
                    merged.add(file, first, last)
        return merged

    def holds(self, file: str, first: int, last: int) -> bool:
        """Whether all lines from ``first`` to ``last`` were read."""
        at = first
        for begin, end in sorted(self._lines.get(file, ())):
            if begin > at:
                return False
            at = max(at, end + 1)
            if at > last:
                return True
        return False

    def as_json(self) -> dict[str, list[LineRange]]:
        return dict(self._lines)


def lines_read(reply: Reply) -> Reading:
    """
    The lines of documents in the reply of a tool: of `get`, `multi_get`, the searches, and of
    `read_note` where the notes are those of the collections.
    """
    reading = Reading()
    if reply.whole is not None:
        file, lines = reply.whole
        reading.add(file, 1, lines)
    for block in reply.blocks:
        if isinstance(block, DocumentBlock) and block.last_line:
            reading.add(block.document.file, block.first_line, block.last_line)
    results = (reply.structured or {}).get("results")
    for hit in results if isinstance(results, list) else ():
        _add_snippet(reading, hit)
    return reading


def _add_snippet(reading: Reading, hit: Any) -> None:
    """Add the lines ``N: text`` of a hit's snippet."""
    if not isinstance(hit, Mapping):
        return
    file, snippet = hit.get("file"), hit.get("snippet")
    if not isinstance(file, str) or not isinstance(snippet, str):
        return
    for line in snippet.split("\n"):
        number = line.partition(":")[0]
        if number.isdecimal() and len(number) < 8:
            reading.add(file, int(number), int(number))


#: The texts of MCP, but without the server's name that MCP clients put before a tool's name, and
#: with the file of a document in brackets.
DIALECT = replace(MCP, get_tool="get", heads_with=frozenset({"context"}))

_READ_ONLY = (
    "Tool '{tool}' writes, and this run only reads. Nothing was changed. "
    "The person must allow that first: with --write in a terminal, or with the mode write "
    "(May write on the page)."
)


@dataclass(frozen=True, slots=True)
class ToolResult:
    """
    The result of a call: ``data`` if it succeeded, else ``error``.

    ``reading``: the lines of documents that ``data`` has.
    """

    success: bool
    data: str | None = None
    error: str | None = None
    reading: Reading = field(default_factory=Reading, compare=False)

    @property
    def text(self) -> str:
        return (self.data if self.success else self.error) or ""

    def as_json(self) -> dict[str, Any]:
        if self.success:
            return {"success": True, "data": self.data}
        return {"success": False, "error": self.error}


@dataclass(frozen=True, slots=True)
class ToolExecution:
    """A call that was run or refused, with its result, start time and duration."""

    call: ToolCall
    result: ToolResult
    timestamp: datetime
    duration_s: float

    def as_json(self) -> dict[str, Any]:
        return {
            "toolCall": {"tool": self.call.tool, "params": dict(self.call.params)},
            "result": self.result.as_json(),
            "timestamp": self.timestamp.isoformat(timespec="milliseconds"),
            "durationMs": round(self.duration_s * 1000),
        }


class ToolExecutor:
    """
    The tools of one knowledge base. `execute` turns each error of a tool into a result.

    Tools that write are offered only if a person confirms each write of this thread's work
    (`KnowledgeBase.confirms_writes`): a document may persuade a model to write.
    """

    def __init__(self, kb: KnowledgeBase, tools: Sequence[Tool[Any]]) -> None:
        self._kb = kb
        self._tools = {tool.name: tool for tool in tools if tool.read_only or kb.confirms_writes}
        self._withheld = frozenset(tool.name for tool in tools) - frozenset(self._tools)

    def definitions(self) -> list[Tool[Any]]:
        """The tools that the model is offered."""
        return list(self._tools.values())

    def writes(self, name: str) -> bool:
        """Whether the tool with this name is offered and changes files."""
        return name in self._tools and not self._tools[name].read_only

    def only_reads(self, name: str) -> bool:
        """Whether the tool with this name is offered and changes nothing."""
        return name in self._tools and self._tools[name].read_only

    def execute(self, call: ToolCall) -> ToolResult:
        """Check the parameters, and run the tool if they are valid."""
        tool = self._tools.get(call.tool)
        if tool is None:
            if call.tool in self._withheld:
                return ToolResult(success=False, error=_READ_ONLY.format(tool=call.tool))
            error = f"Tool '{call.tool}' is not available (tool not found)"
            return ToolResult(success=False, error=error)
        try:
            arguments = validate(tool.arguments, call.params)
            return _result(tool.call_checked(self._kb, arguments, DIALECT))
        except InvalidArgumentsError as problem:
            return ToolResult(success=False, error=_problems(tool, problem))
        except QmdError as error:  # the tool's specification demands an error, not a reply
            return ToolResult(success=False, error=error_text(error))
        except Exception as error:  # noqa: BLE001 - a defect must not end the conversation
            kind = type(error).__name__
            return ToolResult(success=False, error=f"Tool '{tool.name}' failed: {kind}: {error}")


def _problems(tool: Tool[Any], error: InvalidArgumentsError) -> str:
    """What is wrong with the parameters of a call, in the words of the agent's specification."""
    sentences = parameter_sentences(error.problems)
    if not sentences:
        message = error_text(tool.refusal(tool.name, error))
        for heading in ("Invalid parameters: ", f"Invalid arguments for {tool.name}: "):
            message = message.removeprefix(heading)
        sentences = [message]
    return "Invalid parameters: " + "; ".join(sentences)


def _result(reply: Reply) -> ToolResult:
    structured = reply.structured or {}
    texts = [
        f"[{one_line(block.document.file)}]\n{block.shown}"
        if isinstance(block, DocumentBlock)
        else block.text
        for block in reply.blocks
    ]
    text = "\n\n".join(texts)
    if reply.is_error:
        return ToolResult(success=False, error=text)
    data = structured.get("data")
    data = data if isinstance(data, str) else text
    return ToolResult(success=True, data=data, reading=lines_read(reply))


# --- calls that run together ----------------------------------------------------------


#: The most calls that run at once.
MAX_TOGETHER = 4

_LOOK_S = 0.05  # how long to wait before looking whether the person has stopped the run

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def run_together(
    work: Callable[[ItemT], ResultT], items: Sequence[ItemT], stop: Cancellation, *, finish: bool
) -> Iterator[ResultT]:
    """
    Do the work of each item on a few threads, and give the results in the order of the items.

    Args:
        stop: Cancels the work, but no change of a file that has begun.
        finish: Whether the results are waited for all the same.

    Raises:
        KeyboardInterrupt: The person has stopped the run.
    """

    def cancellable(item: ItemT) -> ResultT:
        with stop.active():
            return work(item)

    def is_stopped() -> bool:
        return stop.is_cancelled and not finish

    pool = ThreadPoolExecutor(min(MAX_TOGETHER, len(items)), thread_name_prefix="qmd-tool")
    futures: list[Future[ResultT]] = [
        pool.submit(contextvars.copy_context().run, cancellable, item) for item in items
    ]
    try:
        for future in futures:
            while not is_stopped() and not wait([future], timeout=_LOOK_S).done:
                pass
            if is_stopped():
                raise KeyboardInterrupt
            yield future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        # `wait` alone would wait for ever for work that was cancelled before it began.
        while unfinished := [future for future in futures if not future.done()]:
            if stop.is_cancelled:
                stop.cancel()  # again, because it may miss what begins at the same moment
            wait(unfinished, timeout=_LOOK_S)
