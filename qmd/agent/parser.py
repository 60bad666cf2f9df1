"""
Tool calls in the answer of a language model.

A call is a block fenced by ``` ```json:tool ``` and ``` ``` ```, with a JSON object inside that
has ``tool`` and ``params``. Everything else is text, other fences included; a block inside a
fence of four or more backticks (or of tildes) is shown and not meant. Models are sloppy, so
fences may be indented, stand behind text, or end with spaces or CRLF.

Valid JSON has no raw line end inside a string, so no line of it begins with a fence: a block
ends at the first line that does, and code fences inside a string end nothing.
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
    """What the model wants done; ``source`` is the block as it stands in the answer."""

    tool: str
    params: Mapping[str, Any]
    source: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Malformed:
    """
    A block that is no call: what is wrong with it, and the block as it stands there.

    ``closed`` is False where it has no end.
    """

    kind: ProblemKind
    error: str
    source: str
    closed: bool = True


Part = str | ToolCall | Malformed


@dataclass(frozen=True, slots=True)
class Parsed:
    """An answer, taken apart: ``parts`` in their order."""

    parts: tuple[Part, ...]

    @property
    def untrimmed(self) -> str:
        """What is not in blocks. A block without an end stays in the text."""
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
        """Calls and broken calls, in order."""
        return tuple(part for part in self.parts if not isinstance(part, str))

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return tuple(part for part in self.parts if isinstance(part, ToolCall))

    @property
    def problems(self) -> tuple[Malformed, ...]:
        return tuple(part for part in self.parts if isinstance(part, Malformed))


_LINE = r"(?:^|(?<=[\n\r]))"
# A fence that begins a line, as it ends a block; and a line with nothing but a fence.
_CLOSING = re.compile(_LINE + r"[ \t]*(`{3,})")
_OPENING = re.compile(
    _LINE + r"[ \t]*`{3,}json:tool(?![\w:`-])"  # at the beginning of a line
    # Behind text, if a block follows; what every line of stands behind ">" is a quotation.
    r"|`{3}json:tool(?=[ \t]*(?:\r?\n|\r(?!\n))(?![ \t]*>))"
    r"|(?<!>)(?<!> )`{3}json:tool(?=[ \t]*\{)"
)
_QUOTING = re.compile(_LINE + r"[ \t]*(`{4,}|~{3,})(?!json:tool)([^\n\r]*)")
_REST_OF_LINE = re.compile(r"[ \t]*(?:\r\n|\n|\r)?")
_INLINE_END = re.compile(r"[ \t]*(`{3,})")
_LATE_END = re.compile(r"`{3}[ \t]*(?=[\n\r]|$)")
_BACKTICKS = re.compile("`+")
_SPACE = " \t\n\r"
_LONGEST = 16  # backticks of a fence that are told apart
_DEEPEST = 64  # levels of JSON; what is handed on must be writable as JSON again


def parse(response: str) -> Parsed:
    """
    Take an answer apart; whatever it is, nothing is raised and nothing is lost.

    Takes time in proportion to the length of the answer.
    """
    parts: list[Part] = []
    quoted = list(_quoted(response))
    starts = [start for start, _ in quoted]
    closings = [match.start() for match in _CLOSING.finditer(response)]
    done = position = 0
    while opening := _OPENING.search(response, position):
        where = opening.end()  # the fence itself may be preceded by what belongs to the text
        span = bisect.bisect_right(starts, where) - 1
        if span >= 0 and where < quoted[span][1]:
            position = quoted[span][1]
            continue
        begin = response.index("`", opening.start())
        block, end = _block(response, begin, where, _next(closings, where))
        if begin > done:
            parts.append(response[done:begin])
        parts.append(block)
        done = position = end
    if done < len(response):
        parts.append(response[done:])
    return Parsed(tuple(parts))


def _block(
    text: str, begin: int, inside: int, limit: int | None
) -> tuple[ToolCall | Malformed, int]:
    """
    The block whose fence opens at ``begin`` and whose JSON begins at ``inside``, and its end.

    ``limit``: where the next line begins with a fence.
    """
    body = text[inside:limit]
    first = inside + len(body) - len(body.lstrip(_SPACE))
    body = body.strip(_SPACE)
    value, length, problem = _decoded(body)
    if not problem and (inline := _INLINE_END.match(body, length)):
        end = _fence_end(text, first + inline.start(1))
        return _call(value, text[begin:end]), _behind(text, end)
    if not problem and (rest := body[length:].lstrip(_SPACE)):
        problem = f"Extra data: {_place(body, len(body) - len(rest))}"
    closing = None if limit is None else _CLOSING.match(text, limit)
    end = _fence_end(text, closing.start(1)) if closing is not None else len(text)
    if closing is None or end == closing.start(1):  # the text ends, or another block begins
        return _without_end(text, begin, inside, end, problem)
    source = text[begin:end]
    if problem:
        return Malformed("malformed_json", f"Invalid JSON: {problem}", source), _behind(text, end)
    return _call(value, source), _behind(text, end)


def _decoded(body: str) -> tuple[Any, int, str]:
    """The JSON value at the beginning, where it ends, and what is wrong with it."""
    try:
        value, end = _DECODER.raw_decode(body)
    except RecursionError:
        return None, 0, "nested too deeply"
    except ValueError as error:
        return None, 0, str(error)
    return value, end, "nested too deeply" if _is_deep(value) else ""


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return bool(level)


def _fence_end(text: str, start: int) -> int:
    """The end of the fence at ``start``, which leaves three backticks to a block behind it."""
    fence = _BACKTICKS.match(text, start)
    end = fence.end() if fence is not None else start
    return end - 3 if text.startswith("json:tool", end) else end


def _without_end(
    text: str, begin: int, inside: int, limit: int, problem: str
) -> tuple[Malformed, int]:
    """A block that no line of its own ends; up to ``limit`` at most."""
    late = _LATE_END.search(text, inside, limit) if problem else None
    if late is not None:
        error = f"Invalid JSON: {problem}"
        return Malformed("malformed_json", error, text[begin : late.end()]), late.end()
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


def _quoted(text: str) -> Iterator[tuple[int, int]]:
    """The spans inside long fences that are closed; tool blocks in them are examples."""
    fences = list(_QUOTING.finditer(text))
    hopeless = {"`": _LONGEST + 1, "~": _LONGEST + 1}  # no fence of that length closes any more
    number = 0
    while number < len(fences):
        mark, length = fences[number][1][0], min(len(fences[number][1]), _LONGEST)
        if length < hopeless[mark]:
            for behind in range(number + 1, len(fences)):
                other = fences[behind]
                if (
                    other[1][0] == mark
                    and min(len(other[1]), _LONGEST) >= length
                    and not other[2].strip()
                ):
                    yield fences[number].end(), other.start()
                    number = behind
                    break
            else:
                hopeless[mark] = length
        number += 1


def _next(places: list[int], after: int) -> int | None:
    index = bisect.bisect_left(places, after)
    return places[index] if index < len(places) else None


def _behind(text: str, end: int) -> int:
    """Where the text goes on: the rest of the closing fence's line is no text, if it is blank."""
    rest = _REST_OF_LINE.match(text, end)
    assert rest is not None
    line_ends = rest.end() == len(text) or text[rest.end() - 1] in "\n\r"
    return rest.end() if line_ends else end


def _place(body: str, at: int) -> str:
    line = body.count("\n", 0, at) + 1
    return f"line {line} column {at - body.rfind(chr(10), 0, at)} (char {at})"


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON value")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:20]} is too large a number")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite)
