"""The lines of a document that show why it is a hit."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from typing import NamedTuple

from qmd.parse.lines import line_starts, lines_and_starts
from qmd.parse.segment import cjk_runs, fold, is_cjk, pairs_of
from qmd.search.query.language import ParsedQuery
from qmd.search.query.terms import loose_parts
from qmd.search.words.weights import STOP_WORDS, stem

MAX_CHARS = 300
#: A following line that does not fit is cut, if at least this much of it can be shown.
WORTH_SHOWING = 60
#: Beyond this many characters of a text only its lines up to here are looked at for words.
MAX_SCAN = 2_000_000
#: In longer lines the place of a word is reckoned, not counted, where folding changes lengths.
MAX_EXACT = 100_000
#: Most needles of a pasted page: each is a search through the whole text of a hit.
MAX_NEEDLES = 128


class Needle(NamedTuple):
    """What to look for in a folded line, and how much it counts."""

    text: str
    weight: float


class Snippet(NamedTuple):
    """``text``: lines ``N: …``, at most 300 characters; ``line``: the best one's number."""

    text: str
    line: int


def needles(query: ParsedQuery) -> list[Needle]:
    """Whole terms weigh most, then words, then pairs of Chinese characters."""
    weights: dict[str, float] = {}
    for term in query.terms:
        whole = fold(term.text)
        if not is_cjk(whole) or len(whole) <= 2:
            weights[whole] = max(weights.get(whole, 0), 3.0 if len(whole) > 1 else 1.0)
        for word in map(str.casefold, loose_parts(term)):
            weights.setdefault(stem(word), 0.1 if word in STOP_WORDS else 1.0)
        for run in (match[0] for match in cjk_runs(whole) if len(match[0]) > 2):
            weights[run] = 3.0 * len(run) / 2
            weights.update(dict.fromkeys(pairs_of(run), 1.0))
    heaviest = sorted(weights.items(), key=lambda each: -each[1])[:MAX_NEEDLES]
    return [Needle(text, weight) for text, weight in heaviest if text]


def make_snippet(
    text: str,
    body_start: int,
    query_needles: Sequence[Needle],
    span: tuple[int, int] | None = None,
) -> Snippet:
    """
    The line with most of the query and its neighbours.

    Args:
        span: start_char and end_char of the best chunk, if there is one: its lines win ties,
            and where no line holds a word of the query it starts the snippet.
    """
    lines, starts = lines_and_starts(text)
    if not lines:
        return Snippet("", 1)
    first = bisect_right(starts, body_start) - 1 if body_start < len(text) else 0
    best = _best_line(text, lines, starts, max(first, 0), query_needles, span)
    return Snippet(_window(lines, best, query_needles), best + 1)


def _best_line(
    text: str,
    lines: list[str],
    starts: list[int],
    first: int,
    query_needles: Sequence[Needle],
    span: tuple[int, int] | None,
) -> int:
    low = high = -1
    if span is not None:
        low, high = bisect_right(starts, span[0]) - 1, bisect_right(starts, span[1] - 1) - 1
    present = fold(text[:MAX_SCAN])  # folding moves no line end
    best, best_score = -1, 0.0
    telling = [needle for needle in query_needles if needle.weight >= 1 and needle.text in present]
    present_starts = starts if text.isascii() else line_starts(present)
    weights = _weights(present, present_starts, telling or query_needles)
    for number, weight in sorted(weights.items()):
        score = weight + 1.5 if low <= number <= high else weight
        if number < first:
            score *= 0.5  # frontmatter counts, but the text explains more
        if score > best_score:
            best, best_score = number, score
    if best >= 0:
        return best
    start = low if low >= 0 else first
    for number in range(start, len(lines)):
        if lines[number].strip():
            return number
    return start


def _weights(
    folded: str, starts: Sequence[int], query_needles: Sequence[Needle]
) -> dict[int, float]:
    """Line number (from 0) → weight of all that stands in the line, for lines with something."""
    weights: dict[int, float] = {}
    for needle, weight in query_needles:
        # From hit to hit, and from there to the next line: most lines hold nothing.
        at = folded.find(needle)
        while at >= 0:
            number = bisect_right(starts, at) - 1
            weights[number] = weights.get(number, 0.0) + weight
            if number + 1 == len(starts):
                break
            at = folded.find(needle, starts[number + 1])
    return weights


def _window(lines: list[str], best: int, query_needles: Sequence[Needle]) -> str:
    """The best line, then as many of its neighbours as fit: below, above, below, above."""
    low = high = best
    shown = {
        best: _numbered(best, _crop(lines[best], query_needles, MAX_CHARS - len(f"{best + 1}: ")))
    }
    used = len(shown[best])
    for step in (1, -1, 1):
        number = high + 1 if step > 0 else low - 1
        if not 0 <= number < len(lines):
            continue
        line = _numbered(number, lines[number])
        room = MAX_CHARS - used - 1
        if len(line) > room:
            if step < 0 or room < WORTH_SHOWING:
                continue
            line = line[: room - 1] + "…"  # a heading alone says little
        shown[number] = line
        used += 1 + len(line)
        low, high = min(low, number), max(high, number)
    while low < best and not lines[low].strip():
        low += 1
    while high > best and not lines[high].strip():
        high -= 1
    return "\n".join(shown[number] for number in range(low, high + 1))


def _numbered(number: int, line: str) -> str:
    return f"{number + 1}: {line}"


def _crop(line: str, query_needles: Sequence[Needle], most: int) -> str:
    """The part of a long line around the first word that was looked for."""
    if len(line) <= most:
        return line
    folded = fold(line)
    places = [folded.find(needle.text) for needle in query_needles if needle.weight >= 1]
    place = _unfolded(line, folded, min((p for p in places if p >= 0), default=0))
    start = max(0, min(place - most // 3, len(line) - most + 2))
    piece = line[start : start + most - 2]
    return ("…" if start else "") + piece + ("…" if start + len(piece) < len(line) else "")


def _unfolded(line: str, folded: str, place: int) -> int:
    """The place in a line of a place in its folded form, which may be longer or shorter."""
    if len(folded) == len(line):
        return place
    if len(line) > MAX_EXACT:
        return place * len(line) // len(folded)
    ends = list(accumulate(len(fold(character)) for character in line))
    return min(bisect_right(ends, place), len(line) - 1)
