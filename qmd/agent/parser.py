"""
Finds the tool calls in the answer of a language model.

A call is a block fenced by ``` ```json:tool ``` and ``` ``` ```, with a JSON object inside that
has ``tool`` and ``params``. All else is text, including other fences. A block inside a fence of
four or more backticks (or of tildes) is an example and no call. Models are sloppy, so fences may
be indented, follow text on the same line, or end with spaces or CRLF.

A block ends at the first line that begins with a fence. Such a line cannot be a part of valid
JSON, whose strings have no raw line ends; so code fences inside a string do not end a block.
"""

from __future__ import annotations

import bisect
import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

ProblemKind = Literal["malformed_json", "missing_field", "invalid_structure"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool; ``source`` is the text of its block in the answer."""

    tool: str
    params: Mapping[str, Any]
    source: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Malformed:
    """
    A block that is not a valid call.

    ``source`` is the text of the block in the answer; ``closed`` is False if the block has no end.
    """

    kind: ProblemKind
    error: str
    source: str
    closed: bool = True


Part = str | ToolCall | Malformed


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer, split into texts, calls and invalid blocks in their order."""

    parts: tuple[Part, ...]

    @property
    def untrimmed(self) -> str:
        """The text outside the blocks. A block without an end counts as text."""
        texts = (
            part if isinstance(part, str)
            else part.source if isinstance(part, Malformed) and not part.closed
            else ""
            for part in self.parts
        )  # fmt: skip
        return "".join(texts)

    @property
    def text(self) -> str:
        """`untrimmed`, without the blanks around it."""
        return self.untrimmed.strip()

    @property
    def blocks(self) -> tuple[ToolCall | Malformed, ...]:
        """The calls and the invalid blocks, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    def up_to_block(self, count: int) -> str:
        """The answer up to its block of this number, counted from 1; else the whole answer."""
        texts = []
        for part in self.parts:
            texts.append(part if isinstance(part, str) else f"{part.source}\n")
            count -= not isinstance(part, str)
            if not count:
                break
        return "".join(texts)

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def problems(self) -> tuple[Malformed, ...]:
        return tuple(part for part in self.parts if isinstance(part, Malformed))


_LINE = r"(?:^|(?<=[\n\r]))"
# A line that begins with a fence, which ends a block.
_CLOSING = re.compile(_LINE + r"[ \t]*(`{3,})")
_OPENING = re.compile(
    _LINE + r"[ \t]*`{3,}json:tool(?![\w:`-])"  # at the beginning of a line
    # After text on the same line, if a block follows; lines that begin with ">" are a quotation.
    r"|`{3}json:tool(?=[ \t]*(?:\r?\n|\r(?!\n))(?![ \t]*>))"
    r"|(?<!>)(?<!> )`{3}json:tool(?=[ \t]*\{)"
)
_QUOTING = re.compile(_LINE + r"[ \t]*(`{4,}|~{3,})(?!json:tool)([^\n\r]*)")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n|\n|\r)?")
_INLINE_END = re.compile(r"[ \t]*(`{3,})")
_LATE_END = re.compile(r"`{3}[ \t]*(?=[\n\r]|$)")
_BACKTICKS = re.compile("`+")
_SPACE = " \t\n\r"
_MAX_FENCE = 16  # characters; longer fences count as this long
_MAX_DEPTH = 64  # levels of JSON; json.dumps must be able to write the parameters again


def parse(response: str) -> Parsed:
    """
    Split an answer into its parts. Raises nothing and drops no text, whatever the answer is.

    Takes time in proportion to the length of the answer.
    """
    parts: list[Part] = []
    quoted_spans = list(_quoted_spans(response))
    quoted_starts = [start for start, _ in quoted_spans]
    fence_lines = [match.start() for match in _CLOSING.finditer(response)]
    parsed_end = position = 0
    while opening := _OPENING.search(response, position):
        inside = opening.end()
        span = bisect.bisect_right(quoted_starts, inside) - 1
        if span >= 0 and inside < quoted_spans[span][1]:
            position = quoted_spans[span][1]
            continue
        begin = response.index("`", opening.start())  # the match may begin with blanks
        block, end = _block(response, begin, inside, _first_from(fence_lines, inside))
        if begin > parsed_end:
            parts.append(response[parsed_end:begin])
        parts.append(block)
        parsed_end = position = end
    if parsed_end < len(response):
        parts.append(response[parsed_end:])
    return Parsed(tuple(parts))


def _block(
    text: str, begin: int, inside: int, limit: int | None
) -> tuple[ToolCall | Malformed, int]:
    """
    Parse the block whose fence opens at ``begin`` and whose JSON begins at ``inside``.

    Args:
        limit: The position of the next line that begins with a fence; None if there is none.

    Returns:
        The block, and the position where the rest of the answer begins.
    """
    body = text[inside:limit]
    body_start = inside + len(body) - len(body.lstrip(_SPACE))
    body = body.strip(_SPACE)
    value, length, problem = decoded(body)
    if not problem and (inline := _INLINE_END.match(body, length)):
        end = _fence_end(text, body_start + inline.start(1))
        return _call(value, text[begin:end]), _after_block(text, end)
    if not problem and (rest := body[length:].lstrip(_SPACE)):
        problem = f"Extra data: {_position_text(body, len(body) - len(rest))}"
    closing = None if limit is None else _CLOSING.match(text, limit)
    end = _fence_end(text, closing.start(1)) if closing is not None else len(text)
    if closing is None or end == closing.start(1):  # the text ends, or another block begins
        return _unclosed_block(text, begin, inside, end, problem)
    source = text[begin:end]
    if problem:
        malformed = Malformed("malformed_json", f"Invalid JSON: {problem}", source)
        return malformed, _after_block(text, end)
    return _call(value, source), _after_block(text, end)


def decoded(body: str) -> tuple[Any, int, str]:
    """The JSON value at the beginning of a text, its end, and the problem ("" if it is valid)."""
    try:
        value, end = _DECODER.raw_decode(body)
    except RecursionError:
        return None, 0, "nested too deeply"
    except ValueError as error:
        return None, 0, str(error)
    return value, end, "nested too deeply" if _is_deep(value) else ""


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for outer in level
            if isinstance(outer, (dict, list))
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
    return bool(level)


def _fence_end(text: str, start: int) -> int:
    """The end of the fence at ``start``, without the three backticks of a block that follows."""
    fence = _BACKTICKS.match(text, start)
    end = fence.end() if fence is not None else start
    return end - 3 if text.startswith("json:tool", end) else end


def _unclosed_block(
    text: str, begin: int, inside: int, limit: int, problem: str
) -> tuple[Malformed, int]:
    """
    A block that no line with a fence ends, and the position after it (``limit`` at most).

    If its JSON is invalid, a fence at the end of a line ends it.
    """
    late_end = _LATE_END.search(text, inside, limit) if problem else None
    if late_end is not None:
        error = f"Invalid JSON: {problem}"
        return Malformed("malformed_json", error, text[begin : late_end.end()]), late_end.end()
    error = "Invalid JSON: the block has no end (``` on a line of its own)"
    return Malformed("malformed_json", error, text[begin:limit], closed=False), limit


def _call(value: object, source: str) -> ToolCall | Malformed:
    if not isinstance(value, dict):
        return Malformed("invalid_structure", "Tool call must be an object", source)
    for name in ("tool", "params"):
        if value.get(name) is None:
            return Malformed("missing_field", f"Missing required field: {name}", source)
    if not isinstance(value["tool"], str):
        return Malformed("invalid_structure", "Field 'tool' must be a string", source)
    if not isinstance(value["params"], dict):
        return Malformed("invalid_structure", "Field 'params' must be an object", source)
    return ToolCall(value["tool"], value["params"], source)


def _quoted_spans(text: str) -> Iterator[tuple[int, int]]:
    """The spans inside long fences that are closed; tool blocks in them are examples."""
    fences = list(_QUOTING.finditer(text))
    # Character → length from which on no fence is closed any more. It keeps the time linear.
    unclosed = {"`": _MAX_FENCE + 1, "~": _MAX_FENCE + 1}
    index = 0
    while index < len(fences):
        character, length = fences[index][1][0], min(len(fences[index][1]), _MAX_FENCE)
        if length < unclosed[character]:
            for closing_index in range(index + 1, len(fences)):
                closing = fences[closing_index]
                if (
                    closing[1][0] == character
                    and min(len(closing[1]), _MAX_FENCE) >= length
                    and not closing[2].strip()
                ):
                    yield fences[index].end(), closing.start()
                    index = closing_index
                    break
            else:
                unclosed[character] = length
        index += 1


def _first_from(positions: list[int], start: int) -> int | None:
    """The first of the sorted positions that is ``start`` or later."""
    index = bisect.bisect_left(positions, start)
    return positions[index] if index < len(positions) else None


def _after_block(text: str, end: int) -> int:
    """The position after a closing fence, and after the rest of its line if that is blank."""
    rest = _REST_OF_LINE.match(text, end)
    assert rest is not None
    is_line_end = rest.end() == len(text) or text[rest.end() - 1] in "\n\r"
    return rest.end() if is_line_end else end


def _position_text(body: str, position: int) -> str:
    """A position in the words of `json.JSONDecodeError`."""
    line = body.count("\n", 0, position) + 1
    column = position - body.rfind("\n", 0, position)
    return f"line {line} column {column} (char {position})"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite_number(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant, parse_float=_finite_number)


# --- while an answer arrives ----------------------------------------------------------


_FENCE_OPENING = "```json:tool"


class AnswerText:
    """Holds back the tool calls in an answer that arrives piece by piece."""

    def __init__(self) -> None:
        self._text = ""
        self._shown = 0  # characters of the text that `feed` has returned or held back for good

    def feed(self, delta: str) -> str:
        """Take the next piece, and return the further text that is certainly no tool call."""
        self._text += delta
        held = self._text[self._shown : self._shown + 100].lstrip("`")
        if self._text.startswith("```", self._shown) and held.startswith("json:tool"):
            return ""
        end = self._text.find(_FENCE_OPENING, self._shown)
        if end < 0:
            end = len(self._text) - _undecided_chars(self._text[self._shown :])
        while end > self._shown and self._text[end - 1] == "`":  # the fence has more backticks
            end -= 1
        shown = self._text[self._shown : end]
        self._shown = end
        return shown

    def rest(self, parsed: Parsed) -> str:
        """The text that is still to be shown when the answer is complete."""
        return parsed.untrimmed[self._shown :].rstrip()


def _undecided_chars(text: str) -> int:
    """How many characters at the end may begin a tool call, or are the first half of CR LF."""
    if text.endswith("\r"):
        return 1
    longest = min(len(text), len(_FENCE_OPENING) - 1)
    return next(
        (length for length in range(longest, 0, -1) if _FENCE_OPENING.startswith(text[-length:])),
        0,
    )
