"""Parses TREC's files: topics (questions) and qrels (judgments)."""

from __future__ import annotations

import re

from qmd.errors import InputError

_TOPIC = re.compile(r"<top>(.*?)</top>", re.DOTALL | re.IGNORECASE)
_TOPIC_ID = re.compile(r"<num>\s*(?:Number\s*:)?\s*([^\s<]+)", re.IGNORECASE)
_TITLE = re.compile(r"<title>\s*(?:Topic\s*:)?(.*?)(?=<|$)", re.DOTALL | re.IGNORECASE)
_QREL = (
    re.compile(r"(\S+)\s+\S+\s+(\S.*?)\s+(-?\d+)"),  # topic, iteration, document, grade
    re.compile(r"(\S+)\s+(\S+)\s+(-?\d+)"),
)
_HINT = "A line is: topic 0 document grade."


def topics(text: str, name: str) -> dict[str, str]:
    """
    Topic id → question: the titles of ``<top>`` sections, else the texts of lines ``id text``.

    Raises:
        InputError: The text has no topic.
    """
    questions: dict[str, str] = {}
    for topic in _TOPIC.findall(text):
        topic_id, title = _TOPIC_ID.search(topic), _TITLE.search(topic)
        if topic_id is not None and title is not None:
            questions[topic_id[1]] = " ".join(title[1].split())
    if not questions:
        for line in text.split("\n"):
            fields = line.strip().split(maxsplit=1)
            if len(fields) == 2:
                questions[fields[0]] = fields[1]
    if not questions:
        raise InputError(f"{name}: no topics", hint="A line is an id, a tab and a question.")
    return questions


def qrels(text: str, name: str) -> dict[str, dict[str, int]]:
    """
    Topic id → document → grade.

    A line has four columns (TREC) or three (BEIR, which may have a header), with tabs or blanks
    between them. A document's name may hold blanks.

    Raises:
        InputError: A line is no judgment.
    """
    grades: dict[str, dict[str, int]] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        judgment = _judgment(line.strip())
        if judgment is None:
            if number == 1:
                continue  # a header
            raise InputError(f"{name}, line {number}: no judgment", hint=_HINT)
        topic_id, document, grade = judgment
        grades.setdefault(topic_id, {})[document] = grade
    if not grades:
        raise InputError(f"{name}: no judgments", hint=_HINT)
    return grades


def _judgment(line: str) -> tuple[str, str, int] | None:
    fields = [field.strip() for field in line.split("\t")]
    if len(fields) in (3, 4) and re.fullmatch(r"-?\d+", fields[-1]):
        return fields[0], fields[-2], int(fields[-1])
    match = next(filter(None, (pattern.fullmatch(line) for pattern in _QREL)), None)
    return None if match is None else (match[1], match[2], int(match[3]))
