"""
How the CPU time of a function grows with its input: hostile texts of any size, and the judge.

Times are of this process's CPU, so a busy machine does not lengthen them much, and a verdict is
only given where four times the input takes many times the CPU again and again.
"""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

#: Pieces that mean something to a parser here, or that a text is full of.
UNITS = (
    *("a", " ", "\t", "\r", "0", "ab ", "a1", "aB", "a-", "a.b", "a/", "a b. ", "C++"),
    *("c#", "[", "]", "](", "[a](", '[a](b "', "![", "[[", "[[a]", "[[a]]", "[a][", "[^a]"),
    *("[a]: b", "(", "()", "<", "<a", "<a b=", "<!--", "<div>", "<pre>", "<?", "<![CDATA["),
    *("&", "&amp;", "\\", "\\[", "`", "``a", "` ``", "~", "~~a", "*", "**a", "* ", " _a"),
    *("_", "=", "==a", "$", "%%", "{", "{#", "-", "- ", "--", "---", "- [ ] ", "+ ", "1. "),
    *("|", "|-", "| - ", "#", "# ", "#a", "#a/", "> ", ">- ", ":", "a: ", ": ", "1:", '"'),
    *("'", '"""', ",", "a,", "!", "?", ".", "...", ". ", "&a ", "*a ", "<<: ", "!!a "),
    *("{a: ", "[a, ", "a.", "0x", "1_", "2024-01-01", "00", "//", "OR ", "-a ", "tag:"),
    *("(a ", "lex: ", "```json:tool\n", '{"a":', "<think>", "**/", "[a-", "{a,b}", "中"),
    *("文。", "，", "ア", "가", "é", "e\u0301", "\u0301", "\u2028", "\u3000", "\u200d", "👩"),
    *("İ", "ß", "ﷺ", "…", "\x0b", "\x1c", "\x85", "\xa0", "\x1b", "\x7f", "\u202e"),
    *("\\ud800", "a:: b", "[a:: ", "(a:: b [", "%%a", " ^a"),
)  # fmt: skip

_CLOSING = dict(zip("[({<\"'`*_~=$%|#", "])}>\"'`*_~=$%|#", strict=True))


def line(unit: str, size: int) -> str:
    return unit * max(1, size // len(unit))


def lines(unit: str, size: int) -> str:
    return line(unit + "\n", size)


def mac_lines(unit: str, size: int) -> str:
    return line(unit + "\r", size)


def paragraphs(unit: str, size: int) -> str:
    return line(unit + "\n\n", size)


def spaced(unit: str, size: int) -> str:
    """Two of them far apart."""
    return unit + " " * size + unit


def unfinished(unit: str, size: int) -> str:
    """A long run that something else ends, so that what began with it comes to nothing."""
    return line(unit, size) + "x"


def prose(unit: str, size: int) -> str:
    return line(f"ab {unit} cd ", size)


def numbered(unit: str, size: int) -> str:
    """All different."""
    return "\n".join(f"{unit}{number:05d}" for number in range(size // (len(unit) + 6)))


def growing(unit: str, size: int) -> str:
    """Runs of every length."""
    longest = max(1, int((2 * size / len(unit)) ** 0.5))
    return " ".join(unit * length for length in range(1, longest))


def growing_lines(unit: str, size: int) -> str:
    return growing(unit, size).replace(" ", "\n")


def stairs(unit: str, size: int) -> str:
    """Each line further to the right than the last, and then many short ones."""
    deep = "\n".join(" " * depth + unit for depth in range(int(size**0.5)))
    return deep + "\n\n" + line(" " + unit + "\n", size // 2)


def nested(unit: str, size: int) -> str:
    closing = "".join(_CLOSING.get(sign, "") for sign in reversed(unit)) or unit
    depth = size // (len(unit) + len(closing))
    return unit * depth + "x" + closing * depth


def below_prose(unit: str, size: int) -> str:
    """Under a long line of a paragraph."""
    return "ab " * 150 + "\n" + line(unit + "\n", size)


def below_table(unit: str, size: int) -> str:
    return "| a | b |\n" + line(unit + "\n", size)


def in_list(unit: str, size: int) -> str:
    return line(f"- {unit}\n", size)


def in_quote(unit: str, size: int) -> str:
    return line(f"> {unit}\n", size)


def headings(unit: str, size: int) -> str:
    return line("# " + line(unit, 990) + "\n", size)


SHAPES: tuple[Callable[[str, int], str], ...] = (
    *(line, lines, mac_lines, paragraphs, spaced, unfinished, prose, numbered, growing),
    *(growing_lines, stairs, nested, below_prose, below_table, in_list, in_quote, headings),
)
#: Those that matter where line ends and Markdown mean nothing.
PLAIN_SHAPES = (line, lines, spaced, unfinished, numbered, growing, nested)

#: Below this many seconds of CPU nothing is judged: it may be anything but growth.
FLOOR = 0.05
#: Linear is 4, n log n a little more, quadratic 16.
MOST_GROWTH = 7.0
#: Seconds of CPU that any one input may take before it is given up.
LIMIT = 10.0


class TooSlowError(Exception):
    """An input has taken `LIMIT` seconds of CPU."""


@contextmanager
def _limited() -> Iterator[None]:
    """Ends what takes exponential time, where the system can (regular expressions look too)."""
    if not hasattr(signal, "SIGPROF"):
        yield
        return

    def end(*_: object) -> None:
        raise TooSlowError(f"over {LIMIT:g} s of CPU")

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def cpu(function: Callable[[Any], object], value: object) -> float:
    """Seconds of CPU that a call takes, without the collection of garbage."""
    gc.disable()
    try:
        with _limited():
            start = time.process_time()
            function(value)
            return time.process_time() - start
    finally:
        gc.enable()


def problem(
    function: Callable[[Any], object],
    make: Callable[[int], object],
    size: int,
    *,
    most_per_kb: float = 0.01,
) -> str | None:
    """
    What is wrong with how the CPU time grows from ``size`` to four times as much, or None.

    Args:
        make: The input of about so many characters.
        most_per_kb: Seconds of CPU that 1,000 characters may take at most.
    """
    small, large = make(size), make(4 * size)
    try:
        slow = cpu(function, large)
        if slow < FLOOR:
            return None
        quick = cpu(function, small)
        for _ in range(3):  # caches are filled, and what else there was has passed
            quick = max(min(quick, cpu(function, small)), FLOOR / MOST_GROWTH)
            slow = min(slow, cpu(function, large))
            if slow / quick < MOST_GROWTH and slow < most_per_kb * 4 * size / 1000:
                return None
    except TooSlowError as error:
        return str(error)
    return f"{size:,} characters take {quick:.3f} s of CPU, {4 * size:,} take {slow:.3f} s"
