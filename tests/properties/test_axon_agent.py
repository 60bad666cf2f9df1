"""
The correctness properties of the agent, as its specification numbers and names them.

1 to 11 and 15 are asked of the tools themselves in `test_axon_notes`; here 11 and 15 are
asked of the agent, which is where the specification has them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from qmd import KnowledgeBase, Settings
from qmd.agent.executor import ToolExecutor, ToolResult
from qmd.agent.loop import ExecutionLoop
from qmd.agent.parser import Malformed, ToolCall, parse
from qmd.agent.prompt import Prompt, system_prompt
from qmd.inference.llm import ChatAnswer, Message
from qmd.inference.llm.answer import Fence
from qmd.operations.replies import Reply
from qmd.tools.toolsets import select
from qmd.values.text import one_line

pytestmark = pytest.mark.unmeasured  # many examples of what unit tests take

for_all = settings(deadline=None)

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text()
    | st.sampled_from(["```", "\n```\n", "```python\nx\n```", "```json:tool\n{}\n```", "~~~\n"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
params = st.dictionaries(st.text(), json_values, max_size=5)
calls = st.builds(ToolCall, st.text(), params)
line_ends = st.sampled_from(["\n", "\r\n"])
blanks = st.sampled_from(["", " ", "\t  "])

# Text of a model that holds no block of its own; fences of other languages are text.
texts = (
    st.text(max_size=200)
    | st.sampled_from(["```json\n{}\n```", "```\ncode\n```", "`json:tool`", "json:tool", "---\n"])
).filter(lambda text: "```json:tool" not in text and "````" not in text and "~~~" not in text)


@st.composite
def blocks(draw: st.DrawFn, call: ToolCall) -> str:
    """A call as a model may write it: on one line or several, with LF or CRLF."""
    written = json.dumps(
        {"tool": call.tool, "params": call.params},
        indent=draw(st.sampled_from([None, 2])),
        ensure_ascii=draw(st.booleans()),
    )
    end = draw(line_ends)
    body = written.replace("\n", end)
    return f"```json:tool{draw(blanks)}{end}{body}{end}```{draw(blanks)}"


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    directory = tmp_path_factory.mktemp("agent")
    (directory / "vault").mkdir()
    path = directory / "index.sqlite"
    with KnowledgeBase.open(
        path, Settings(vault=directory / "vault", confirm_writes=lambda proposed: True), create=True
    ) as opened:
        yield opened


def vault(kb: KnowledgeBase) -> list[Path]:
    return sorted(kb.path.parent.joinpath("vault").rglob("*"))


class Scripted:
    """A model that says what was written down for it."""

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[list[Message]] = []

    def chat(
        self,
        messages: Sequence[Message],
        *,
        listen: object = None,
        budget_s: float | None = None,
    ) -> ChatAnswer:
        self.asked.append(list(messages))
        return ChatAnswer(self.answers.pop(0))


# --- 11: parameters ------------------------------------------------------------------

TOOLS = {tool.name: tool for tool in select().tools}


@for_all
@given(data=st.data(), tool=st.sampled_from(sorted(TOOLS)))
def test_property_11_parameter_validation_rejects_invalid_params(
    kb: KnowledgeBase, data: st.DataObject, tool: str
) -> None:
    """
    **Feature: axon-mcp, Property 11: Parameter validation rejects invalid params**
    **Validates: Requirements 4.5**
    """
    schema = TOOLS[tool].input_schema()
    required = schema.get("required", [])
    given_params: dict[str, Any] = data.draw(params)
    wrong: list[str] = []
    for name, each in schema["properties"].items():
        kinds = [option["type"] for option in each.get("anyOf", [each])]
        what = data.draw(st.sampled_from(["good", "absent", "null", "wrong"]))
        if what == "good":
            given_params[name] = {"string": "text", "integer": 1, "number": 0.5, "boolean": True,
                                  "array": [], "object": {}}[kinds[0]]  # fmt: skip
        elif what == "wrong":
            samples = [7.5, [7], {"a": 1}, True, "7"]
            given_params[name] = data.draw(
                st.sampled_from(
                    [each for each in samples if not any(fits(each, kind) for kind in kinds)]
                )
            )
            wrong.append(f"Parameter '{name}' must be ")
        else:
            given_params.pop(name, None)
            if what == "null":
                given_params[name] = None
            if name in required:
                wrong.append(f"Missing required parameter: {name}")
    assume(wrong)
    before = vault(kb)
    result = ToolExecutor(kb, [TOOLS[tool]]).execute(ToolCall(tool, given_params))
    assert not result.success
    assert result.error is not None
    assert result.error.startswith("Invalid parameters: ")
    assert all(each in result.error for each in wrong)
    assert vault(kb) == before


def fits(value: object, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    kinds = {"string": str, "number": (int, float), "array": list, "object": dict}
    return isinstance(value, kinds.get(kind, ()))


def test_property_11_the_model_is_told_every_tool_with_its_parameters(kb: KnowledgeBase) -> None:
    """
    **Feature: axon-mcp, Property 11: Parameter validation rejects invalid params**
    **Validates: Requirements 4.1-4.5**
    """
    definitions = ToolExecutor(kb, list(TOOLS.values())).definitions()
    prompt = system_prompt(definitions).text
    assert [each.name for each in definitions] == list(TOOLS)
    for each in definitions:
        assert f"### {each.name}\n{each.description}\n" in prompt
        assert json.dumps(each.input_schema(), ensure_ascii=False) in prompt
    # What the prompt shows as a call is one.
    example_calls = parse(prompt).calls
    assert [call.tool for call in example_calls] == ["tool name"]


# --- 12 to 16 ------------------------------------------------------------------------


@for_all
@given(data=st.data(), call=calls)
@example(data=None, call=ToolCall("create_note", {"content": "# x\n```py\ny\n```\n"}))
def test_property_12_tool_block_parsing_extracts_correct_data(
    data: st.DataObject | None, call: ToolCall
) -> None:
    """
    **Feature: axon-mcp, Property 12: Tool block parsing extracts correct data**
    **Validates: Requirements 5.1**
    """
    written = json.dumps({"tool": call.tool, "params": call.params})
    block = f"```json:tool\n{written}\n```" if data is None else data.draw(blocks(call))
    parsed = parse(block)
    assert parsed.blocks == (call,)
    assert parsed.text == ""


@for_all
@given(data=st.data(), made=st.lists(calls, min_size=1, max_size=6))
def test_property_13_multiple_tool_calls_execute_in_order(
    data: st.DataObject, made: list[ToolCall]
) -> None:
    """
    **Feature: axon-mcp, Property 13: Multiple tool calls execute in order**
    **Validates: Requirements 5.5**
    """
    ran: list[ToolCall] = []

    class Recording(ToolExecutor):
        def __init__(self) -> None:
            pass

        def writes(self, name: str) -> bool:
            return False

        def only_reads(self, name: str) -> bool:
            return False

        def execute(self, call: ToolCall) -> ToolResult:
            ran.append(call)
            return ToolResult(success=True, data=str(len(ran)))

    answer = "\n".join(data.draw(texts) + "\n" + data.draw(blocks(call)) for call in made)
    model = Scripted(answer, "done")
    fence = Fence.new()
    result = ExecutionLoop(model, Recording(), system=Prompt("", fence)).run("go")
    assert ran == made == [each.call for each in result.tool_executions]
    told = model.asked[1][-1]
    assert told.role == "user"
    assert told.content == "\n\n".join(
        ["Tool execution results:"]
        + [
            fence.around(f"Tool {n}: {shown_name(call.tool)}\n✅ Success\n{n}")
            for n, call in enumerate(made, 1)
        ]
    )
    assert (result.final_response, result.rounds) == ("done", 2)


def shown_name(tool: str) -> str:
    """On one line, and not longer than any tool's name is."""
    name = one_line(" ".join(tool.split()))
    return name if len(name) <= 100 else f"{name[:100]}…"


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


@for_all
@given(body=st.text() | calls.flatmap(lambda call: st.just(json.dumps(call.params)[:-1])))
@example(body='{"tool": "a", "params": {}')
@example(body='{"tool": "a", "params": {"content": "raw\nline"}}')
@example(body='{"a": NaN}')
@example(body="[" * 100_000)
@example(body='{"tool": "a", "params": {}} and more')
@example(body="```")
@example(body="")
def test_property_14_malformed_json_handled_gracefully(body: str) -> None:
    """
    **Feature: axon-mcp, Property 14: Malformed JSON handled gracefully**
    **Validates: Requirements 7.1**
    """
    assume(not is_json(body) or "NaN" in body)
    parsed = parse(f"before\n```json:tool\n{body}\n```\nafter")
    assert parsed.calls == ()
    problem = parsed.problems[0]
    assert problem.kind == "malformed_json"
    assert problem.error.startswith("Invalid JSON: ")
    assert parsed.text.startswith("before")
    assert parsed.text.endswith("after")


@for_all
@given(name=st.text(), values=params)
@example(name="read_note ", values={"path": "a"})
@example(name="READ_NOTE", values={"path": "a"})
@example(name="__class__", values={})
def test_property_15_undefined_tool_returns_error(
    kb: KnowledgeBase, name: str, values: dict[str, Any]
) -> None:
    """
    **Feature: axon-mcp, Property 15: Undefined tool returns error**
    **Validates: Requirements 7.2**
    """
    assume(name not in TOOLS)
    result = ToolExecutor(kb, list(TOOLS.values())).execute(ToolCall(name, values))
    error = f"Tool '{name}' is not available (tool not found)"
    assert result == ToolResult(success=False, error=error)
    assert result.as_json() == {"success": False, "error": error}


@for_all
@given(data=st.data(), pieces=st.lists(texts, min_size=2, max_size=5), end=line_ends)
def test_property_16_mixed_response_text_extraction(
    data: st.DataObject, pieces: list[str], end: str
) -> None:
    """
    **Feature: axon-mcp, Property 16: Mixed response text extraction**
    **Validates: Requirements 7.5**
    """
    made = [data.draw(calls) for _ in pieces[1:]]
    written = [data.draw(blocks(call)) for call in made]
    response = pieces[0]
    for block, text in zip(written, pieces[1:], strict=True):
        response += end + block + end + text
    parsed = parse(response)
    assert parsed.calls == tuple(made)
    assert parsed.problems == ()
    between = [part for part in parsed.parts if isinstance(part, str)]
    assert "".join(between) == "".join(text + end for text in pieces[:-1]) + pieces[-1]
    assert parsed.text == "".join(between).strip()


# --- and beyond them -----------------------------------------------------------------

pieces_of_answers = st.sampled_from(
    [
        *("```json:tool", "```", "````", "~~~", "\n", "\r\n", "\r", " ", "{", "}", '"', "\\", "[")
        ,
        *('{"tool": "a", "params": {}}', '{"tool": 1, "params": {}}', '{"tool": "a"}', "[]"),
        *("text", "> ", "- ", ":", "x" * 50, "\ud800", "\0"),
    ]
)  # fmt: skip


@settings(deadline=None)
@given(st.lists(pieces_of_answers, max_size=40).map("".join) | st.text())
def test_whatever_the_answer_is_nothing_is_raised_and_nothing_is_lost(response: str) -> None:
    parsed = parse(response)
    position = 0
    for part in parsed.parts:
        source = (
            part if isinstance(part, str) else part.source if isinstance(part, Malformed) else ""
        )
        if source:
            found = response.find(source, position)
            # Between what is kept stands at most a call or the blank end of a block's line.
            gap = response[position:found]
            assert found >= 0
            assert not gap.strip() or "json:tool" in gap
            position = found + len(source)
    rest = response[position:]
    assert not rest.strip() or "json:tool" in rest
    if "json:tool" not in response:
        assert parsed.parts == ((response,) if response else ())
    if not parsed.blocks:
        assert parsed.text == response.strip()


def test_what_a_tool_raises_is_a_result(kb: KnowledgeBase) -> None:
    def broken(*arguments: object) -> Reply:
        raise ZeroDivisionError("oops")

    tool = replace(TOOLS["list_folder"], run=broken)
    result = ToolExecutor(kb, [tool]).execute(ToolCall("list_folder", {"path": ""}))
    error = "Tool 'list_folder' failed: ZeroDivisionError: oops"
    assert result == ToolResult(success=False, error=error)
