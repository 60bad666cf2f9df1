"""Makes the hits of a reply, each with its snippet."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from qmd import lazy, parse, search, values
from qmd.engine_text import sentences
from qmd.parse.lines import line_starts, lines_and_starts
from qmd.parse.segment import cjk_runs, fold, has_token, is_cjk, pairs_of, without_breaks
from qmd.records import NamedTuple
from qmd.search.candidates import Candidate
from qmd.search.query import ParsedQuery, loose_parts, parse_string
from qmd.search.words import STOP_WORDS, stem
from qmd.values import Context, Hit, SearchReply, SearchRequest

if TYPE_CHECKING:
    from qmd.store import Reader
    from qmd.values import DocumentAnchor


MAX_CHARS = 300
#: A following line that does not fit is cut if at least this many characters of it can be shown.
WORTH_SHOWING = 60
#: If folding changes the length of a line, the position of a word in it is counted. In a line of
#: more characters than this, the position is estimated.
MAX_EXACT = 100_000
#: The most needles of a query; each is searched for in the whole text of a hit.
MAX_NEEDLES = 128
#: All other needles weigh 1 and more.
STOP_WORD_WEIGHT = 0.1
#: A longer line repeats no name.
MAX_NAME = 500

_UNDERLINE = lazy.pattern(r"(=+|-{2,})\s*")
_NAME_KEY = lazy.pattern(r"(title|alias|aliases)\s*[:=]", re.IGNORECASE)


class Snippet(NamedTuple):
    """
    A snippet of a document.

    Attributes:
        text: Lines of the form ``N: …``, at most 300 characters in all.
        line: The number of the best line, from 1.
    """

    text: str
    line: int


def needles(query: ParsedQuery) -> dict[str, float]:
    """
    What to look for in folded lines, and how much each counts, the heaviest first.

    Whole terms count most, then words, then pairs of Chinese characters.
    """
    weights: dict[str, float] = {}
    for term in query.terms:
        whole = fold(term.text)
        is_stop_word = whole in STOP_WORDS and not term.quoted
        if not is_stop_word and (not is_cjk(whole) or len(whole) <= 2):
            weights[whole] = max(weights.get(whole, 0), 3.0 if len(whole) > 1 else 1.0)
        for word in map(str.casefold, loose_parts(term)):
            weights.setdefault(stem(word), STOP_WORD_WEIGHT if word in STOP_WORDS else 1.0)
        for run in (match[0] for match in cjk_runs(whole) if len(match[0]) > 2):
            weights[run] = 3.0 * len(run) / 2
            weights.update(dict.fromkeys(pairs_of(run), 1.0))
    heaviest = sorted(weights.items(), key=lambda item: -item[1])[:MAX_NEEDLES]
    return {text: weight for text, weight in heaviest if text}


def make_snippet(
    text: str,
    body_start: int,
    query_needles: Mapping[str, float],
    span: tuple[int, int] | None = None,
    names: Sequence[str] = (),
    *,
    keys: Collection[str] = (),
    line: int | None = None,
) -> Snippet:
    """
    Show the line that holds most of the query, and its neighbours.

    A reply shows the names of a hit anyway, so a line that only repeats one is not chosen. If the
    query stands nowhere else, the snippet begins with the first paragraph, and that of a query for
    properties alone with the line that gives the property.

    Args:
        body_start: The position at which the frontmatter ends, in characters.
        span: start_char and end_char of the best chunk, if there is one. Its lines win ties, and
            if neither a line nor a name holds a word of the query, the snippet starts with it.
        names: The title of the document, its file name and its aliases.
        keys: The properties for which a query without words asks.
        line: The line, from 1, of the task for which such a query asks; None without one.
    """
    lines, starts = lines_and_starts(text)
    if not lines:
        return Snippet("", 1)
    first = bisect_right(starts, body_start) - 1 if body_start < len(text) else 0
    page = _Page(text, lines, starts, max(first, 0), names, frozenset(map(_letters, names)))
    best = _best_line(page, query_needles, span)
    if best is None and line is not None and line <= len(lines):
        best = line - 1
    if best is None and keys:
        first_body_line = page.first if body_start < len(text) else len(lines)
        best = parse.frontmatter.property_line(lines, first_body_line, keys)
    if best is None:
        at_chunk = span is not None and not page.weight_of_names(query_needles)
        best = page.line_at(span[0]) if span and at_chunk else page.first_paragraph()
    # The frontmatter explains no line of the body.
    lowest = page.first if best >= page.first else 0
    return Snippet(_window(lines, best, query_needles, lowest), best + 1)


class _Page(NamedTuple):
    """
    A document and its lines.

    Attributes:
        starts: The position at which each line starts, in characters.
        first: The index of the first line of the body.
        names: The names of the document.
        name_letters: The same as `_letters` gives them.
    """

    text: str
    lines: Sequence[str]
    starts: Sequence[int]
    first: int
    names: Sequence[str]
    name_letters: Collection[str]

    def line_at(self, position: int) -> int:
        """The index of the first line with a text from this position on."""
        start = bisect_right(self.starts, position) - 1
        indexes = range(start, len(self.lines))
        return next((index for index in indexes if self.lines[index].strip()), start)

    def first_paragraph(self) -> int:
        """The index of the first line of text in the body, or of its first heading."""
        for index in range(self.first, len(self.lines)):
            if not self.is_heading(index) and has_token(self.lines[index]):
                return index
        return self.line_at(self.starts[self.first])

    def weight_of_names(self, query_needles: Mapping[str, float]) -> float:
        """The greatest weight of all needles in a name, without those of stop words."""
        return max((_weight(name, query_needles) for name in self.names), default=0.0)

    def worth(self, index: int, name_lines: Collection[int] = ()) -> float:
        """How much a match in this line counts; body text explains most, a name nothing."""
        if index in name_lines:
            return 0.0
        if index < self.first:
            return 0.5
        if not self.is_heading(index):
            return 1.0
        line = self.lines[index]
        is_name = len(line) <= MAX_NAME and _letters(line) in self.name_letters
        return 0.0 if is_name else 0.95

    def is_heading(self, index: int) -> bool:
        """Whether the line is a heading, by the look of it; one in code is taken for one too."""
        if self.lines[index].startswith("#"):
            return True
        return (
            index + 1 < len(self.lines) and _UNDERLINE.fullmatch(self.lines[index + 1]) is not None
        )

    def name_lines(self) -> set[int]:
        """The indexes of the lines of the frontmatter that give names."""
        indexes = set()
        in_names = False
        for index in range(self.first):
            line = self.lines[index]
            if line[:1].isalnum():
                in_names = _NAME_KEY.match(line) is not None
            if in_names:
                indexes.add(index)
        return indexes


def _letters(text: str) -> str:
    """A text without signs, blanks and letter case: ``# *Red* boat`` is ``redboat``."""
    return "".join(filter(str.isalnum, fold(text)))


def _weight(name: str, query_needles: Mapping[str, float]) -> float:
    """The weight of all needles in a name, without those of stop words."""
    folded = fold(name)
    return sum(w for text, w in query_needles.items() if w > STOP_WORD_WEIGHT and text in folded)


def _best_line(
    page: _Page, query_needles: Mapping[str, float], span: tuple[int, int] | None
) -> int | None:
    """The index of the line that holds most of the query; None if none holds any of it."""
    starts = page.starts
    folded = _folded(page)
    folded_starts = starts if page.text.isascii() else line_starts(folded)
    heavy = {
        text: weight
        for text, weight in query_needles.items()
        if weight > STOP_WORD_WEIGHT and text in folded
    }
    if len(heavy) == 1 and span is None:
        # All its lines are alike, so the first one in the body is the best.
        lines = _lines_with(next(iter(heavy)), folded, folded_starts)
        best = next((index for index in lines if page.worth(index) == 1), None)
        if best is not None:
            return best
    low = high = -1
    if span is not None:
        low, high = bisect_right(starts, span[0]) - 1, bisect_right(starts, span[1] - 1) - 1
    weights = _weights(folded, folded_starts, heavy or query_needles)
    scores = {
        index: weight + 1.5 if low <= index <= high else weight
        for index, weight in _explaining(weights, page, query_needles).items()
    }
    return _best_of(scores, page)


def _explaining(
    weights: dict[int, float], page: _Page, query_needles: Mapping[str, float]
) -> dict[int, float]:
    """The lines of the body, and those of the frontmatter with more of the query than a name."""
    if not weights or min(weights) >= page.first:
        return weights
    in_name = page.weight_of_names(query_needles)
    return {
        index: weight
        for index, weight in weights.items()
        if index >= page.first or weight > in_name
    }


def _folded(page: _Page) -> str:
    """The folded text of a document."""
    text = page.text
    if text.isascii() or "\r" in text:
        return fold(text)
    # Most lines of most documents are ASCII, which takes a twentieth of the time. Folding adds and
    # removes no line ends.
    others = iter(fold("\n".join(line for line in page.lines if not line.isascii())).split("\n"))
    lines = (line.casefold() if line.isascii() else next(others) for line in page.lines)
    return "\n".join(lines)


def _best_of(scores: Mapping[int, float], page: _Page) -> int | None:
    """The index of the line whose score times its worth is the greatest; None if all are 0."""
    if not scores:
        return None
    name_lines = page.name_lines() if min(scores) < page.first else ()
    greatest = max(scores.values())
    for index in sorted(index for index, score in scores.items() if score == greatest):
        if page.worth(index, name_lines) == 1:  # the greatest worth
            return index
    best, best_score = None, 0.0
    for index in sorted(scores, key=lambda index: (-scores[index], index)):
        if scores[index] < best_score:  # no line is worth more than 1
            break
        score = scores[index] * page.worth(index, name_lines)
        if score > best_score or (score == best_score and best is not None and index < best):
            best, best_score = index, score
    return best


def _weights(
    folded: str, starts: Sequence[int], query_needles: Mapping[str, float]
) -> dict[int, float]:
    """Map line indexes to the weight of all needles in the line, for lines with any needle."""
    weights: dict[int, float] = {}
    for needle, weight in query_needles.items():
        for index in _lines_with(needle, folded, starts):
            weights[index] = weights.get(index, 0.0) + weight
    return weights


def _lines_with(needle: str, folded: str, starts: Sequence[int]) -> Iterator[int]:
    """The indexes of the lines in which a needle begins, in order."""
    # Jump from match to match instead of visiting every line: most lines hold no needle.
    position = folded.find(needle)
    while position >= 0:
        index = bisect_right(starts, position) - 1
        yield index
        if index + 1 == len(starts):
            break
        position = folded.find(needle, starts[index + 1])


def _window(
    lines: Sequence[str], best: int, query_needles: Mapping[str, float], lowest: int
) -> str:
    """
    The best line, then as many of its neighbours as fit: below, above, below.

    Args:
        lowest: The index of the first line that may be shown.
    """
    low = high = best
    shown = {
        best: _numbered(best, _crop(lines[best], query_needles, MAX_CHARS - len(f"{best + 1}: ")))
    }
    used = len(shown[best])
    for step in (1, -1, 1):
        index = high + 1 if step > 0 else low - 1
        if not lowest <= index < len(lines):
            continue
        line = _numbered(index, lines[index])
        room = MAX_CHARS - used - 1
        if len(line) > room:
            if step < 0 or room < WORTH_SHOWING:
                continue
            line = line[: room - 1] + "…"  # a heading alone says little
        shown[index] = line
        used += 1 + len(line)
        low, high = min(low, index), max(high, index)
    while low < best and not lines[low].strip():
        low += 1
    while high > best and not lines[high].strip():
        high -= 1
    return "\n".join(shown[index] for index in range(low, high + 1))


def crop_snippet(snippet: str, query: str, max_bytes: int) -> str:
    """
    The first line of a snippet, cut to the part around the first word of the query in it.

    Args:
        max_bytes: Of the line in UTF-8.
    """
    number, colon, line = snippet.partition("\n")[0].partition(": ")
    line = line.strip("…")
    size = len(line.encode("utf-8", "replace"))
    room = max_bytes - len(number) - len(colon) - 2 * len("…".encode())
    if size <= room:
        return f"{number}{colon}{line}"
    query_needles = needles(parse_string(query))
    characters = max(3, room * len(line) // size)
    piece = _crop(line, query_needles, characters)
    while characters > 3 and len(piece.encode("utf-8", "replace")) > max_bytes - len(number) - 2:
        characters = max(3, characters * 9 // 10)
        piece = _crop(line, query_needles, characters)
    return f"{number}{colon}{piece}"


def _numbered(index: int, line: str) -> str:
    return f"{index + 1}: {line}"


def _crop(line: str, query_needles: Mapping[str, float], max_chars: int) -> str:
    """Cut a long line to the part around the first word of the query in it."""
    if len(line) <= max_chars:
        return line
    folded = fold(line)
    matches = [
        folded.find(text) for text, weight in query_needles.items() if weight > STOP_WORD_WEIGHT
    ]
    first_match = min((position for position in matches if position >= 0), default=0)
    position = _unfolded_position(line, folded, first_match)
    start = max(0, min(position - max_chars // 3, len(line) - max_chars + 2))
    piece = line[start : start + max_chars - 2]
    return ("…" if start else "") + piece + ("…" if start + len(piece) < len(line) else "")


def _unfolded_position(line: str, folded: str, position: int) -> int:
    """Convert a position in a folded line, which may be longer or shorter, to one in the line."""
    if len(folded) == len(line):
        return position
    if len(line) > MAX_EXACT:
        return position * len(line) // len(folded)
    ends = list(accumulate(len(fold(character)) for character in line))
    return min(bisect_right(ends, position), len(line) - 1)


def splitter(query: str) -> Callable[[str], list[tuple[str, bool]]]:
    """
    Give a function that splits a text into parts, and says of each whether to mark it.

    A word of ``query`` must begin where a word of the text begins; a different ending of up to four
    letters is marked too. Chinese characters are marked anywhere.
    """
    # What a query says about tasks and facts is no word of the text.
    query_needles = needles(parse_string(query, frozenset(values.properties.LINE_COLUMNS)))
    # Marking every "the" would hide the other marks.
    content_needles = [needle for needle in query_needles if needle not in STOP_WORDS]
    marked_needles = content_needles or list(query_needles)
    if not marked_needles:
        return lambda text: [(text, False)]
    patterns = map(_pattern, sorted(marked_needles, key=len, reverse=True))
    # A lookahead finds matches that overlap: 数据库 is 数据 and 据库.
    pattern = re.compile("(?=(" + "|".join(patterns) + "))", re.IGNORECASE)

    def split(text: str) -> list[tuple[str, bool]]:
        parts, end = [], 0
        for start, stop in _spans_in_words(pattern, text):
            parts += [(text[end:start], False), (text[start:stop], True)]
            end = stop
        return [(part, is_match) for part, is_match in [*parts, (text[end:], False)] if part]

    return split


def _spans_in_words(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """As `_spans`, also in words that a soft hyphen or the like parts, which searches pass over."""
    plain = without_breaks(text)
    spans = _spans(pattern, plain)
    if not spans or len(plain) == len(text):
        return spans
    places: list[int] = []
    for place, character in enumerate(text):
        if len(places) < len(plain) and character == plain[len(places)]:
            places.append(place)
    return [(places[start], places[stop - 1] + 1) for start, stop in spans]


def _spans(pattern: re.Pattern[str], text: str) -> list[tuple[int, int]]:
    """The spans of the matches in order; matches that overlap or touch are one span."""
    spans: list[tuple[int, int]] = []
    for match in pattern.finditer(text):
        start, stop = match.span(1)
        if spans and start <= spans[-1][1]:
            spans[-1] = (spans[-1][0], max(stop, spans[-1][1]))
        elif stop > start:
            spans.append((start, stop))
    return spans


def _pattern(text: str) -> str:
    pattern = re.escape(text)
    if not text.isascii():
        return pattern
    if text[0].isalnum():
        pattern = rf"(?<![a-zA-Z0-9]){pattern}"
    if len(text) > 2 and text.isalpha():
        return rf"{pattern}[a-zA-Z]{{0,4}}(?![a-zA-Z])"
    return rf"{pattern}(?![a-zA-Z0-9])" if text[-1].isalnum() else pattern


#: What a reply says none of whose hits is relevant enough.
NOTICE = "Nothing here seems to answer this; the nearest are:"
#: What a reply says whose search was ended by its deadline.
TOO_MANY = (
    "So many documents match that not all could be ranked in time: the latest ones were."
    " A rarer word finds more."
)


def present(
    reader: Reader,
    request: SearchRequest,
    query: ParsedQuery,
    judged: Sequence[Candidate],
    problem: str | None = None,
) -> SearchReply:
    """
    Make the reply: give each candidate its snippet, its context and, on request, an explanation.

    If even the best hit hardly answers the query, or if there is none because no document has a
    property to filter by, the reply has a notice that says so. A reply with
    a budget (``request.max_tokens``) may say in ``left_out`` that it has room for no more hits.

    Args:
        judged: Best first. `arranged` sorts, cuts and groups them if the request says so.
        query: The query whose words choose the lines of the snippets.
        problem: Sentences that say what a missing model or index took away; None for nothing.
    """
    best = judged[0] if judged else None
    names: Mapping[int, str] = {}
    if request.sort is not None or request.group_by is not None:
        judged, names = search.listing.arranged(reader, request, judged)
    contexts = reader.contexts.all()
    chunks = [each.chunk_id for each in judged if each.chunk_id is not None]
    spans = reader.vectors.chunk_spans(chunks) if chunks else {}
    query_needles = needles(query)
    keys = frozenset[str]() if query.groups else query.property_keys
    of_tasks = _lines_of_tasks(reader, query, keys, judged)
    snippets = [
        _snippet(
            each,
            query_needles,
            spans.get(each.chunk_id or 0),
            keys,
            of_tasks.get(each.document_id),
        )
        for each in judged
    ]
    lines = {each.document_id: s.line for each, s in zip(judged, snippets, strict=True)}
    anchors = reader.documents.anchors_at(lines)
    hits = [
        Hit(
            docid=each.page.info.docid,
            file=each.page.info.file,
            title=each.page.info.title,
            score=each.score,
            context=join_contexts(contexts, each.page.info.collection, each.page.info.path),
            snippet=snippet.text,
            line=snippet.line,
            relevance=each.relevance,
            match=each.match,
            group=names.get(each.document_id),
            explain=_explanation(each, best) if request.explain and best else None,
            **_place(anchors.get(each.document_id)),
        )
        for each, snippet in zip(judged, snippets, strict=True)
    ]
    reply = SearchReply(
        request.query,
        tuple(hits),
        notice=_notice(reader, request, judged),
        degraded=_degraded(reader, problem),
    )
    if request.max_tokens is None:
        return reply
    budget = search.budget
    return budget.fit_hits(
        reply, request.max_tokens, budget.hit_tokens, frame_tokens=budget.FRAME_TOKENS
    )


def _notice(reader: Reader, request: SearchRequest, judged: Sequence[Candidate]) -> str | None:
    """What the reply says about its hits as a whole; None for nothing."""
    if judged:
        is_confident = any(each.relevance >= each.grounds.least_confidence for each in judged)
        return None if is_confident else NOTICE
    if not request.filters.properties:
        return None
    return search.listing.missing_property(reader, request.filters.properties)


def _lines_of_tasks(
    reader: Reader, query: ParsedQuery, keys: frozenset[str], judged: Sequence[Candidate]
) -> Mapping[int, int]:
    """Document id → the line of its first task or fact, if the query asks for these alone."""
    if not keys or keys.isdisjoint(values.properties.LINE_COLUMNS):
        return {}
    groups = [[each for each in group if not isinstance(each, str)] for group in query.either]
    return reader.properties.first_lines(groups, [each.document_id for each in judged])


def _snippet(
    candidate: Candidate,
    query_needles: Mapping[str, float],
    span: tuple[int, int, int] | None,
    keys: frozenset[str],
    line: int | None,
) -> Snippet:
    page = candidate.page
    chunk = None if span is None else span[:2]
    return make_snippet(
        page.text, page.body_start, query_needles, chunk, page.names, keys=keys, line=line
    )


def _place(anchor: DocumentAnchor | None) -> dict[str, str]:
    """The fields of a hit that say where in its file it is."""
    return {} if anchor is None else {"anchor": anchor.fragment, "place": anchor.place}


def _degraded(reader: Reader, problem: str | None) -> str | None:
    """What took something away from the reply; None for nothing."""
    if not reader.full_text.is_incomplete:
        return problem
    return sentences(problem, TOO_MANY)


def _explanation(hit: Candidate, best: Candidate) -> Mapping[str, Any]:
    """
    The parts of a score: score = blend * factor.

    The factor is the best hit's relevance / the best hit's blend; None if that blend is 0, because
    the score is then the best hit's relevance.
    """
    return {
        **hit.explanation,
        "blend": hit.blend,
        "factor": best.relevance / best.blend if best.blend else None,
        "score": hit.score,
        "relevance": {"value": hit.relevance, **hit.grounds._asdict()},
    }


def join_contexts(contexts: Sequence[Context], collection: str, path: str) -> str | None:
    """
    The texts of the contexts whose prefix the document lies below, joined by a blank line, or None.

    ``contexts`` are those of the whole database, from the global one to the most specific.
    """
    texts = [context.text for context in contexts if _applies_to(context, collection, path)]
    return "\n\n".join(texts) or None


def _applies_to(context: Context, collection: str, path: str) -> bool:
    if context.collection is None:
        return True
    if context.collection != collection:
        return False
    prefix = context.prefix
    return not prefix or path == prefix or path.startswith(prefix + "/")
