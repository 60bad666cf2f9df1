"""
Finds the citations in an answer, ``[collection/path:12-14]``, and compares each with its document.

A citation passes if its document has the lines, the model has read them, and they share the words
or the meaning of the sentence that they shall support. What fails is shown as "not found in the
source", never dropped. The comparison is one of words and numbers: it notices what is made up, and
not every sentence that twists what the lines say.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

from qmd.agent.claims import Sentence, has_claim, has_words, sentences, supports
from qmd.agent.executor import Reading
from qmd.errors import QmdError
from qmd.kb import KnowledgeBase
from qmd.values import DocumentAnchor
from qmd.values.documents import place_of_line

#: The most citations of one answer that are compared; further ones fail.
MAX_CITATIONS = 100

#: The most lines that one citation may name.
MAX_LINES = 200

#: The most characters of a quote.
MAX_QUOTE = 400

Status = Literal["ok", "not_found"]

#: The lines ``first`` to ``last`` of a document named by its path; None if there is no such one.
ReadLines = Callable[[str, int, int], "CitedLines | None"]

#: The cosine of two texts' vectors, -1 to 1; None if no model is loaded.
Similarity = Callable[[str, str], "float | None"]


@dataclass(frozen=True, slots=True)
class CitedLines:
    """
    Lines of a document: ``file`` is ``collection/path``, ``lines`` how many it has in all.

    ``place``: the page or the like of its file in which they begin.
    """

    file: str
    title: str
    text: str
    lines: int
    place: DocumentAnchor | None = None


@dataclass(frozen=True, slots=True)
class Citation:
    """
    What one citation of an answer names, and what the comparison found.

    Attributes:
        id: Counts from 1, in the order of the answer.
        file: ``collection/path``, or the name as it is written if there is no such document.
        quote: The beginning of the lines; "" without them.
        reason: Why it fails; "" if it passes.
        start, end: Where the bracket around it stands in the answer; several share one.
        anchor, place: The page or the like in which the lines begin, as hits have it: ``page=12``,
            ``p. 12``; None for a text that has lines alone.
    """

    id: int
    file: str
    from_line: int
    to_line: int
    quote: str
    status: Status
    reason: str
    start: int
    end: int
    anchor: str | None = None
    place: str | None = None

    def as_json(self) -> dict[str, Any]:
        values = asdict(self)
        return values if self.place else {k: values[k] for k in values if k not in _PLACE}


_PLACE = ("anchor", "place")


@dataclass(frozen=True, slots=True)
class CheckedAnswer:
    """
    What the citations of an answer are worth.

    Attributes:
        unsupported: The sentences that claim something and have no citation that passes.
    """

    citations: tuple[Citation, ...] = ()
    unsupported: tuple[Sentence, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "citations": [citation.as_json() for citation in self.citations],
            "unsupported": [sentence.text for sentence in self.unsupported],
        }


def check_answer(
    text: str, reading: Reading, read_lines: ReadLines, similarity: Similarity
) -> CheckedAnswer:
    """
    Compare the citations of an answer with their documents.

    Args:
        reading: What the model has read.
    """
    split = sentences(without_code(text))
    every = find_citations(text)[:MAX_CITATIONS]
    plain = _without(text, every)
    citations = []
    for written in every:
        claims = _claims(plain, split, written, every)
        citations.append(_compared(written, claims, reading, read_lines, similarity))
    unsupported = [
        replace(each, text=text[each.start : each.end])  # with its code
        for each in _unsupported(plain, split, citations)
    ]
    return CheckedAnswer(tuple(citations), tuple(unsupported))


def citation_check(
    kb: KnowledgeBase, before: Sequence[Reading] = ()
) -> Callable[[str, Reading], CheckedAnswer]:
    """
    `check_answer` for the runs of one conversation about a knowledge base.

    Args:
        before: What the model has read in the turns before.
    """

    def read_lines(name: str, first: int, last: int) -> CitedLines | None:
        try:
            document = kb.get(name, from_line=first, max_lines=last - first + 1)
        except QmdError:  # no document, several, or a name that no document can have
            return None
        count = document.last_line + document.more_lines if document.lines else line_count(name)
        file = document.document.file
        place = place_of_line(kb.places(file), first)
        return CitedLines(file, document.document.title, document.text, count, place)

    def line_count(name: str) -> int:
        document = kb.get(name, max_lines=1)
        return document.lines + document.more_lines

    def similarity(claim: str, text: str) -> float | None:
        if not kb.model_loaded():
            return None
        query = kb.embed_texts([claim], kind="query")[0]
        return float(query @ kb.embed_texts([text])[0])

    def check(text: str, reading: Reading) -> CheckedAnswer:
        return check_answer(text, reading.merge(before), read_lines, similarity)

    return check


def _compared(
    written: Citation,
    claims: Sequence[str],
    reading: Reading,
    read_lines: ReadLines,
    similarity: Similarity,
) -> Citation:
    first, last = written.from_line, written.to_line
    if not 1 <= first <= last or last - first >= MAX_LINES:
        return replace(
            written, reason=f"a citation names 1 to {MAX_LINES} lines, the first one first"
        )
    source = read_lines(written.file, first, last)
    if source is None:
        return replace(written, reason="there is no such document")
    written = replace(written, file=source.file, quote=source.text[:MAX_QUOTE])
    if source.place is not None:
        written = replace(written, anchor=source.place.fragment, place=source.place.place)
    if last > source.lines:
        return replace(written, reason=f"the document has {source.lines} lines")
    if not reading.holds(source.file, first, last):
        return replace(written, reason="these lines were not read")
    place = f"{source.file} {source.title}"
    problems = [supports(claim, source.text, place, similarity) for claim in claims]
    if problems and all(problems):
        return replace(written, reason=problems[0])
    return replace(written, status="ok")


def _claims(
    plain: str, split: Sequence[Sentence], written: Citation, every: Sequence[Citation]
) -> list[str]:
    """
    What a citation may support: its sentence as far as the citation, and the whole sentence if the
    citation is its last one; if no words stand before the citation, the sentence before.

    Args:
        plain: The answer with blanks in the place of all citations.
    """
    place = bisect_left(split, written.start, key=lambda sentence: sentence.start)
    for sentence in reversed(split[max(0, place - 2) : place]):
        claim = plain[sentence.start : min(sentence.end, written.start)]
        if not has_words(claim):
            continue
        is_last = not any(written.end <= other.start < sentence.end for other in every)
        if written.end < sentence.end and is_last:
            return [claim, plain[sentence.start : sentence.end]]
        return [claim]
    return []


def _unsupported(
    plain: str, split: Sequence[Sentence], citations: Sequence[Citation]
) -> Iterator[Sentence]:
    good = [citation for citation in citations if citation.status == "ok"]
    claims = [has_claim(plain[sentence.start : sentence.end]) for sentence in split]
    for at, sentence in enumerate(split):
        if not claims[at]:
            continue
        end = sentence.end
        if at + 1 < len(split) and not claims[at + 1]:
            end = split[at + 1].end  # a citation after the full stop
        if not any(sentence.start <= citation.start < end for citation in good):
            yield sentence


def _without(text: str, citations: Sequence[Citation]) -> str:
    """The text with blanks in the place of the citations, so that positions stay."""
    pieces, at = [], 0
    for written in citations:
        if written.start >= at:
            pieces += [text[at : written.start], " " * (written.end - written.start)]
            at = written.end
    return "".join([*pieces, text[at:]])


def marked_answer(text: str, checked: CheckedAnswer, *, strict: bool = False) -> str:
    """The answer with the page after each citation, or "(not found in the source)"."""
    notes: dict[int, str] = {}
    for citation in checked.citations:
        if citation.status == "not_found":
            notes[citation.end] = " (not found in the source)"
        elif citation.place is not None:
            notes.setdefault(citation.end, f" ({citation.place})")
    if strict:
        for sentence in checked.unsupported:
            notes.setdefault(sentence.end, " (without support)")
    pieces, at = [], 0
    for place in sorted(notes):
        pieces += [text[at:place], notes[place]]
        at = place
    return "".join([*pieces, text[at:]])


# --- how citations are written --------------------------------------------------------
# ``[collection/path:12]`` and ``[collection/path:12-15]``. Models write more than they are asked
# to, so several ranges (``:3, 7-9``), several documents in one bracket (separated by ``;``),
# ``L12``, dashes and the brackets and colons of Chinese are read, too. Text in a fenced block of
# code is no citation.


#: The most citations of one answer that are listed; one with more is broken.
MAX_READ = 2_000

_MAX_BRACKET = 2_000  # characters inside a bracket
_RANGE = r"[Ll]?\d{1,9}(?:[ ]?[-–—~][ ]?[Ll]?\d{1,9})?"
_RANGES = re.compile(rf"[ ]?{_RANGE}(?:[ ]?[,，、][ ]?{_RANGE}){{0,20}}")
_ONE_RANGE = re.compile(r"[Ll]?(\d{1,9})(?:[ ]?[-–—~][ ]?[Ll]?(\d{1,9}))?")
_TOKEN = re.compile(r"[\[\]【】\n\r]")
_SEPARATOR = re.compile(r"[;；]")
_SUFFIX = re.compile(r"\.[A-Za-z]\w{0,7}$")
_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})([^\n\r]*)")
_LINE = re.compile(r"[^\n\r]*(?:\r\n|\n|\r|$)")
# What would end a bracket or part it, if it stood in a path.
_ESCAPES = {"%": "%25", "[": "%5B", "]": "%5D", "【": "%E3%80%90", "】": "%E3%80%91",
            ";": "%3B", "；": "%EF%BC%9B", "\n": "%0A", "\r": "%0D"}  # fmt: skip


def format_citation(file: str, from_line: int, to_line: int | None = None) -> str:
    """A citation as `find_citations` reads it, whatever the path holds."""
    escaped = "".join(_ESCAPES.get(character, character) for character in file)
    is_one = to_line is None or to_line == from_line
    return f"[{escaped}:{from_line}]" if is_one else f"[{escaped}:{from_line}-{to_line}]"


def find_citations(text: str) -> list[Citation]:
    """The citations in their order, not compared yet, `MAX_READ` at most. Takes linear time."""
    citations: list[Citation] = []
    for start, end in _brackets(without_code(text)):
        for file, first, last in _parts(text[start + 1 : end - 1]):
            number = len(citations) + 1
            citations.append(Citation(number, file, first, last, "", "not_found", "", start, end))
            if number == MAX_READ:
                return citations
    return citations


def without_code(text: str) -> str:
    """The text with the characters of fenced blocks of code as NUL, line ends excepted."""
    if "```" not in text and "~~~" not in text:
        return text
    pieces: list[str] = []
    fence = ""
    for line in _lines(text):
        match = _FENCE.match(line)
        if not fence:
            if match is not None and not (match[1][0] == "`" and "`" in match[2]):
                fence = match[1]
                pieces.append(_hidden(line))
                continue
            pieces.append(line)
        else:
            closes = match is not None and match[1].startswith(fence) and not match[2].strip()
            fence = "" if closes else fence
            pieces.append(_hidden(line))
    return "".join(pieces)


def _lines(text: str) -> Iterator[str]:
    return (match[0] for match in _LINE.finditer(text) if match[0])


def _hidden(line: str) -> str:
    body = line.rstrip("\r\n")
    return "\0" * len(body) + line[len(body) :]


def _brackets(text: str) -> Iterator[tuple[int, int]]:
    """Where brackets that may hold citations begin and end, inner ones first."""
    openings: list[int] = []
    last_opening = -1
    for match in _TOKEN.finditer(text):
        character = match[0]
        if character in "\n\r":
            openings.clear()
            last_opening = -1
        elif character in "[【":
            openings.append(match.start())
        else:
            # A path with a closing bracket alone still is a path: its bracket began earlier.
            opening = openings.pop() if openings else last_opening
            last_opening = opening
            size = match.start() - opening
            if opening >= 0 and 3 < size < _MAX_BRACKET and text[match.start() - 1] in _DIGITS:
                yield opening, match.end()


_DIGITS = "0123456789 "


def _parts(inside: str) -> Iterator[tuple[str, int, int]]:
    """The citations inside a bracket; none if it is not made of citations alone."""
    parts: list[tuple[str, int, int]] = []
    begun = ""
    for piece in _SEPARATOR.split(inside):
        begun = f"{begun};{piece}" if begun else piece
        colon = max(begun.rfind(":"), begun.rfind("："))
        ranges = begun[colon + 1 :].rstrip(" ")
        if colon <= 0 or _RANGES.fullmatch(ranges) is None:
            continue
        file = unescaped(begun[:colon].strip(" \t"))
        if not _is_path(file):
            return
        for each in _ONE_RANGE.finditer(ranges):
            first = int(each[1])
            parts.append((file, first, int(each[2]) if each[2] else first))
        begun = ""
    if not begun.strip():
        yield from parts


def _is_path(file: str) -> bool:
    """Whether it may name a document: not a time such as 12:30, and no address of the web."""
    if "://" in file and not file.startswith("qmd://"):
        return False
    return bool(file) and ("/" in file or _SUFFIX.search(file) is not None)


def unescaped(file: str) -> str:
    """The path that `format_citation` escaped."""
    if "%" not in file:
        return file
    for character, escape in reversed(_ESCAPES.items()):
        file = file.replace(escape, character)
    return file
