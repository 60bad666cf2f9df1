"""The tool calls of answers as sloppy models write them; the rules for all are properties."""

from __future__ import annotations

import json

import pytest

from qmd.agent.parser import Malformed, ToolCall, parse

A, B = ToolCall("a", {}), ToolCall("b", {"x": 1})
JSON_A, JSON_B = '{"tool": "a", "params": {}}', '{"tool": "b", "params": {"x": 1}}'
BLOCK_A = f"```json:tool\n{JSON_A}\n```"
BLOCK_B = f"```json:tool\n{JSON_B}\n```"


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (BLOCK_A, ""),
        (f"\n\n{BLOCK_A}\n\n", ""),
        (f"before\n{BLOCK_A}\nafter", "before\nafter"),
        (f"before: {BLOCK_A} after", "before:  after"),
        (f"- {BLOCK_A}", "-"),
        (BLOCK_A.replace("\n", "\r\n"), ""),
        (BLOCK_A.replace("\n", "\r"), ""),
        (BLOCK_A.replace("\n", " \t\n"), ""),
        (f"  ```json:tool\n  {JSON_A}\n  ```\nafter", "after"),
        (f"```json:tool {JSON_A} ```after", "after"),
        (f"```json:tool\n{JSON_A}```\nafter", "after"),
        (f"````json:tool\n{JSON_A}\n````\nafter", "after"),
        (f"```json:tool\n\n\n{JSON_A}\n\n```", ""),
        (f"```json\n{JSON_B}\n```\n{BLOCK_A}", f"```json\n{JSON_B}\n```"),
        (f"unclosed:\n```\n{BLOCK_A}", "unclosed:\n```"),
        (f"> quoted\n{BLOCK_A}", "> quoted"),
    ],
)
def test_a_call_is_found_and_the_text_around_it_stays(response: str, text: str) -> None:
    parsed = parse(response)
    assert parsed.blocks == (A,)
    assert parsed.text == text


@pytest.mark.parametrize("between", ["\n", "\n\nand\n", " and ", ""])
def test_several_calls_keep_their_order(between: str) -> None:
    parsed = parse(BLOCK_A + between + BLOCK_B)
    assert parsed.calls == (A, B)
    assert parsed.text == between.strip()


def test_the_order_of_texts_and_blocks_is_kept() -> None:
    parsed = parse(f"one\n{BLOCK_A}\ntwo\n```json:tool\nbad\n```\nthree\n{BLOCK_B}\nfour")
    assert [part if isinstance(part, str) else type(part) for part in parsed.parts] == [
        *("one\n", ToolCall, "two\n", Malformed, "three\n", ToolCall, "four")
    ]


@pytest.mark.parametrize(
    "content",
    [
        "```", "```\n", "\n```\n", "# A\n\n```python\nprint()\n```\nend", "```json:tool\n{}\n```",
        "~~~\n```\n````\n", "\r\n```\r\n", '"```"', "\\n```", "\u2028```",
    ],
)  # fmt: skip
@pytest.mark.parametrize("indent", [None, 2])
def test_fences_in_the_content_end_nothing(content: str, indent: int | None) -> None:
    call = {"tool": "create_note", "params": {"path": "a", "content": content}}
    written = json.dumps(call, indent=indent, ensure_ascii=False)
    parsed = parse(f"before\n```json:tool\n{written}\n```\nafter")
    assert parsed.calls == (ToolCall("create_note", {"path": "a", "content": content}),)
    assert parsed.text == "before\nafter"


@pytest.mark.parametrize(
    ("body", "kind", "error"),
    [
        ("", "malformed_json", "Invalid JSON: Expecting value: line 1 column 1 (char 0)"),
        ("nonsense", "malformed_json", "Invalid JSON: Expecting value: line 1 column 1 (char 0)"),
        (
            f"{JSON_A}\n{JSON_B}",
            "malformed_json",
            "Invalid JSON: Extra data: line 2 column 1 (char 28)",
        ),
        ('{"tool": "a", "params": {"n": NaN}}', "malformed_json", "Invalid JSON: NaN"),
        ('{"tool": "a", "params": {"n": 1e999}}', "malformed_json", "Invalid JSON: 1e999"),
        ("1" * 5000, "malformed_json", "Invalid JSON: Exceeds the limit"),
        ("[" * 2000 + "]" * 2000, "malformed_json", "Invalid JSON: nested too deeply"),
        ('{"tool": "a", "params": ' + "[" * 70 + "]" * 70 + "}", "malformed_json",
         "Invalid JSON: nested too deeply"),
        ("[]", "invalid_structure", "Tool call must be an object"),
        ('"read_note"', "invalid_structure", "Tool call must be an object"),
        ("null", "invalid_structure", "Tool call must be an object"),
        ("{}", "missing_field", "Missing required field: tool"),
        ('{"params": {}}', "missing_field", "Missing required field: tool"),
        ('{"tool": "a"}', "missing_field", "Missing required field: params"),
        ('{"tool": "a", "params": null}', "missing_field", "Missing required field: params"),
        ('{"tool": 7, "params": {}}', "invalid_structure", "Field 'tool' must be a string"),
        ('{"tool": "a", "params": []}', "invalid_structure", "Field 'params' must be an object"),
    ],
)  # fmt: skip
def test_a_block_that_is_no_call_says_why_and_good_blocks_still_run(
    body: str, kind: str, error: str
) -> None:
    bad = f"```json:tool\n{body}\n```"
    parsed = parse(f"{BLOCK_A}\n{bad}\n{BLOCK_B}\nend")
    assert parsed.calls == (A, B)
    (problem,) = parsed.problems
    assert problem.kind == kind
    assert problem.error.startswith(error)
    assert (problem.source, problem.closed) == (bad, True)
    assert parsed.text == "end"


@pytest.mark.parametrize("rest", ["", "\n", f"\n{JSON_A}", '\n{"tool": "a", "par', "\nwords\n"])
def test_a_block_without_an_end_is_an_error_and_stays_in_the_text(rest: str) -> None:
    parsed = parse(f"{BLOCK_B}\nbefore\n```json:tool{rest}")
    assert parsed.calls == (B,)
    (problem,) = parsed.problems
    assert (problem.kind, problem.closed) == ("malformed_json", False)
    assert problem.error.startswith("Invalid JSON: the block has no end")
    assert parsed.text == f"before\n```json:tool{rest}".strip()


def test_a_block_that_another_one_interrupts_has_no_end() -> None:
    parsed = parse(f"```json:tool\n{JSON_A}\n{BLOCK_B}")
    assert parsed.calls == (B,)
    assert not parsed.problems[0].closed


@pytest.mark.parametrize(
    "text",
    [
        f"```json\n{JSON_A}\n```",
        f"```\n{JSON_A}\n```",
        f"```json:toolbox\n{JSON_A}\n```",
        f"```json:tools\n{JSON_A}\n```",
        f"`json:tool`\n{JSON_A}",
        "Write a ```json:tool block.",
        JSON_A,
        f"````markdown\n{BLOCK_A}\n````",
        f"~~~\n{BLOCK_A}\n~~~",
        f"> {BLOCK_A}".replace("\n", "\n> "),
        "",
        "   ",
        "just text",
    ],
)
def test_what_is_no_block_is_text(text: str) -> None:
    parsed = parse(text)
    assert parsed.blocks == ()
    assert parsed.text == text.strip()


@pytest.mark.unmeasured
@pytest.mark.parametrize(
    "piece",
    [
        "```json:tool\n", "```json:tool {", '```json:tool\n{"a":"', "````\n", "~~~ x\n", "`",
        "``` ", f"{BLOCK_A}\n", "\n```", "[", '{"', "````````````````````\n```\n",
        "> ```json:tool\n",
    ],
)  # fmt: skip
def test_a_long_answer_takes_no_quadratic_time(piece: str) -> None:
    # A quadratic parser would not come to an end here.
    parsed = parse(piece * 40_000)
    assert len(parsed.parts) <= 80_000


@pytest.mark.parametrize("text", ["a -> b >", "see > ", ">", "> "])
def test_a_block_behind_a_sign_is_a_call_unless_its_lines_are_quoted(text: str) -> None:
    block = '```json:tool\n{"tool": "status", "params": {}}\n```'
    assert [call.tool for call in parse(text + block).calls] == ["status"]
    assert parse("> " + block.replace("\n", "\n> ")).blocks == ()


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (f"{JSON_A}\n{JSON_B}", "Extra data: line 2 column 1 (char 28)"),
        (f"{JSON_A} \n\n  end", "Extra data: line 3 column 3 (char 32)"),
        (f"{JSON_A}\nx\ny\nz", "Extra data: line 2 column 1 (char 28)"),
        (f"\n {JSON_A} x", "Extra data: line 1 column 29 (char 28)"),
        ('{"tool": "a", "params": {"n": NaN}}', "NaN is no JSON value"),
        ('{"tool": "a", "params": {"n": -Infinity}}', "-Infinity is no JSON value"),
        (
            '{"tool": "a", "params": {"n": 1234567890.1234567890e999}}',
            "1234567890.123456789 is too large a number",
        ),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_wrong_with_the_json_is_said_to_the_place(body: str, error: str) -> None:
    (problem,) = parse(f"```json:tool\n{body}\n```").problems
    assert problem.error == f"Invalid JSON: {error}"
    assert problem.kind == "malformed_json"


@pytest.mark.parametrize(("levels", "is_call"), [(61, True), (62, False)])
@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a": ', "}")])
def test_params_hold_61_lists_or_objects_in_each_other(
    levels: int, is_call: bool, opening: str, closing: str
) -> None:
    # 64 levels in all: the call, its params, and the innermost value are three.
    value = opening * levels + "1" + closing * levels
    parsed = parse(f'```json:tool\n{{"tool": "a", "params": {{"x": {value}}}}}\n```')
    assert bool(parsed.calls) == is_call
    assert [problem.error for problem in parsed.problems] == (
        [] if is_call else ["Invalid JSON: nested too deeply"]
    )


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        (f"````\n{BLOCK_A}\n````\n{BLOCK_B}", (B,)),
        (f"{BLOCK_B}\n````\n{BLOCK_A}\n````", (B,)),
        (f"````\n{BLOCK_A}\n````\n{BLOCK_B}\n~~~\n{BLOCK_A}\n~~~~\n{BLOCK_B}", (B, B)),
        (f"````\n{BLOCK_A}\n`````\n{BLOCK_B}", (B,)),  # a longer fence closes
        (f"`````\n{BLOCK_A}\n````\n{BLOCK_B}", (A, B)),  # a shorter one does not
        (f"`````\n{BLOCK_A}\n````\n{BLOCK_A}\n`````\n{BLOCK_B}", (B,)),
        (f"````\n{BLOCK_A}\n~~~~\n{BLOCK_B}", (A, B)),  # nor one of the other sign
        (f"````\n{BLOCK_A}\n```` not the end\n{BLOCK_A}\n````\n{BLOCK_B}", (B,)),
        (f"````\n{BLOCK_A}\n````  \n{BLOCK_B}", (B,)),
        (f"````python\n{BLOCK_A}\n````\n{BLOCK_B}", (B,)),
        (f"  ````\n{BLOCK_A}\n\t````\n{BLOCK_B}", (B,)),
        (f"text ````\n{BLOCK_A}\n````\n{BLOCK_B}", (A, B)),
        (f"~~~\n````\n~~~\n{BLOCK_A}\n````\n{BLOCK_B}", (A, B)),  # a fence in a fence is text
        (f"{'`' * 20}\n{BLOCK_A}\n{'`' * 20}\n{BLOCK_B}", (B,)),
        (f"{'`' * 15}\n{BLOCK_A}\n{'`' * 14}\n{BLOCK_A}\n{'`' * 15}\n{BLOCK_B}", (B,)),
        (f"~~~\n~~~\n{BLOCK_A}\n~~~\n{BLOCK_B}\n~~~", (A,)),
        (f"`````\n````\n{BLOCK_A}\n````\n{BLOCK_B}", (B,)),  # the first fence stays open
    ],
)
def test_a_block_inside_a_long_fence_is_an_example(text: str, calls: tuple[ToolCall, ...]) -> None:
    parsed = parse(text)
    assert parsed.calls == calls
    assert parsed.problems == ()


@pytest.mark.parametrize(
    ("response", "parts"),
    [
        # What stands behind the fence is text; a blank rest of the line goes with the block.
        (f"a\n{BLOCK_A}  \n  b", ["a\n", BLOCK_A, "  b"]),
        (f"a\n{BLOCK_A}  b\n", ["a\n", BLOCK_A, "  b\n"]),
        (f"a\n{BLOCK_A} \t", ["a\n", BLOCK_A]),
        (f"{BLOCK_A}\r\n\r\nb", [BLOCK_A, "\r\nb"]),
        (f"{BLOCK_A}\rb", [BLOCK_A, "b"]),
        (f"  {BLOCK_A}", ["  ", BLOCK_A]),
        (f"{BLOCK_A}{BLOCK_B}", [BLOCK_A, BLOCK_B]),
        (f"```json:tool {JSON_A} ``` b", [f"```json:tool {JSON_A} ```", " b"]),
        (f"```json:tool {JSON_A}``````json:tool {JSON_B}```",
         [f"```json:tool {JSON_A}```", f"```json:tool {JSON_B}```"]),
        # Bad JSON ends at three backticks that end a line, or at the end of the text.
        ("a ```json:tool\n{bad}``` \nb", ["a ", "```json:tool\n{bad}``` ", "\nb"]),
        ("a ```json:tool\n{bad}```x\nb", ["a ", "```json:tool\n{bad}```x\nb"]),
        (f"```json:tool\n{{bad\n{BLOCK_B}", ["```json:tool\n{bad\n", BLOCK_B]),
        (f"```json:tool\n{{bad}}```\n{BLOCK_B}", ["```json:tool\n{bad}```", "\n", BLOCK_B]),
    ],
)  # fmt: skip
def test_the_parts_are_the_answer_cut_where_the_blocks_are(response: str, parts: list[str]) -> None:
    cut = [part if isinstance(part, str) else part.source for part in parse(response).parts]
    assert cut == parts


def test_a_bad_block_that_ends_late_is_closed() -> None:
    (problem,) = parse("```json:tool\n{bad}```\nb").problems
    assert (problem.kind, problem.closed) == ("malformed_json", True)
    assert problem.error.startswith("Invalid JSON: Expecting property name")
    (problem,) = parse("```json:tool\n{bad}```x").problems
    assert (problem.kind, problem.closed) == ("malformed_json", False)
    assert problem.error == "Invalid JSON: the block has no end (``` on a line of its own)"
