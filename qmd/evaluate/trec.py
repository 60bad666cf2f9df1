"""The files of TREC: topics (questions) and qrels (what was judged)."""

from __future__ import annotations

import re

from qmd.errors import InputError

_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_NUMBER = re.compile(r"<num>\s*(?:Number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic\s*:)?(.*?)(?=<|$)", re.DOTALL | re.IGNORECASE)
_QREL = (
    re.compile(r"(\S+)\s+\S+\s+(\S.*?)\s+(-?\d+)"),  # topic, iteration, document, grade
    re.compile(r"(\S+)\s+(\S+)\s+(-?\d+)"),
)
_HINT = "A line is: topic 0 document grade."


def topics(text: str, name: str) -> dict[str, str]:
    """
    id → question: of ``<top>`` sections the title, else lines of id and text.

    Raises:
        InputError: Nothing in the text is a topic.
    """
    questions: dict[str, str] = {}
    for topic in _TOPIC.findall(text):
        number, title = _NUMBER.search(topic), _TITLE.search(topic)
        if number is not None and title is not None:
            questions[number[1]] = " ".join(title[1].split())
    if not questions:
        for line in text.split("\n"):
            number_text = line.strip().split(maxsplit=1)
            if len(number_text) == 2:
                questions[number_text[0]] = number_text[1]
    if not questions:
        raise InputError(f"{name}: no topics", hint="A line is an id, a tab and a question.")
    return questions


def qrels(text: str, name: str) -> dict[str, dict[str, int]]:
    """
    Topic → document → grade. Four columns (TREC) or three (BEIR, perhaps with a header), with
    tabs or blanks between them; a document's name may hold blanks.

    Raises:
        InputError: A line is none.
    """
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        read = _row(line.strip())
        if read is None:
            if number == 1:
                continue  # a header
            raise InputError(f"{name}, line {number}: no judgment", hint=_HINT)
        topic, document, grade = read
        grades.setdefault(topic, {})[document] = grade
    if not grades:
        raise InputError(f"{name}: no judgments", hint=_HINT)
    return grades


def _row(line: str) -> tuple[str, str, int] | None:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) in (3, 4) and re.fullmatch(r"-?\d+", fields[-1]):
        return fields[0], fields[-2], int(fields[-1])
    match = next(filter(None, (pattern.fullmatch(line) for pattern in _QREL)), None)
    return None if match is None else (match[1], match[2], int(match[3]))
