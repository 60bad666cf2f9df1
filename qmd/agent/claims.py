"""
Splits an answer into sentences, and says whether lines of a document support one.

`qmd.agent.wording` compares the words. Where a sentence and the lines are of different scripts, a
sentence in Chinese about an English note, words cannot agree, and the cosine of their vectors
decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from qmd.agent.wording import Wording, problem_with

LEAST_COSINE = 0.83
"""
The least cosine if words cannot agree. The built-in model gave .833 to .877 for ten true sentences
in the other language, and more than .83 for two of ten false ones on the same subject.
"""

_MAX_COMPARED = 4_000  # characters of the lines
_LEAST_TERMS = 2
_END = re.compile(r"(?<=[。！？；…])|(?<=[.!?])(?=\s)|\n+")
_CITED = re.compile(r"\[[^\[\]\n]{1,1000}\]")
_NOTHING_THERE = re.compile(
    r"\b(?:nothing|no (?:notes?|documents?|results?|hits?|mention)|not (?:found|find|mention\w*)"
    r"|(?:could|did|can|do)(?: not|n['’]t) (?:find|see|say|mention)|cannot (?:find|say))\b"
    r"|没有(?:找到|提到|查到|相关)|未(?:找到|提及|提到|查到|见)|找不到|查不到|没有任何",
    re.IGNORECASE,
)
_TALK = re.compile(
    r"\W*(?:hello|hi|hey|thanks|thank you|sure|certainly|of course|let me|i (?:will|have|can"
    r"|searched|looked|found|read|checked)|i['’](?:ll|ve|d)|here (?:is|are)|would you|do you"
    r"|if you (?:like|want)|you can ask|feel free|in short|summary|sources?|references?)\b"
    r"|\W*(?:你好|您好|谢谢|好的|当然|我来|我(?:已|会|可以|查|找|搜索)|让我|如果(?:你|您)|需要我"
    r"|以下|下面|总结|来源|参考|出处|希望)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of an answer, at the characters ``[start, end)``."""

    text: str
    start: int
    end: int


def sentences(text: str) -> list[Sentence]:
    """The sentences of a text in English or Chinese; a line end always ends one."""
    result = []
    start = 0
    for match in [*_END.finditer(text), None]:
        end = len(text) if match is None else match.start()
        part = text[start:end]
        if part.strip():
            lead = len(part) - len(part.lstrip())
            result.append(Sentence(part.strip(), start + lead, start + len(part.rstrip())))
        start = end if match is None else match.end()
    return result


def has_claim(sentence: str) -> bool:
    """Whether a sentence claims something: no heading, question, greeting or "nothing found"."""
    text = sentence.strip()
    if text.startswith("#") or text.endswith(("?", "？", ":", "：")):
        return False
    if _TALK.match(text) is not None or _NOTHING_THERE.search(text) is not None:
        return False
    wording = Wording(text)
    return len(wording.terms) >= _LEAST_TERMS or bool(wording.sure_numbers)


def has_words(sentence: str) -> bool:
    """Whether anything stands in a sentence that can be compared."""
    wording = Wording(sentence)
    return bool(wording.terms or wording.numbers)


def supports(
    claim: str, text: str, place: str, similarity: Callable[[str, str], float | None]
) -> str:
    """
    Why a text does not support a claim; "" if it does.

    Args:
        place: The path and the title of the document, which may hold numbers such as a year.
        similarity: The cosine of two texts' vectors; None if no model is loaded.
    """
    claim = _CITED.sub(" ", claim)
    text = text[:_MAX_COMPARED]
    is_near = False
    if _is_chinese(claim) != _is_chinese(text):
        cosine = similarity(claim, text)
        # Without a model there is nothing to compare by but numbers.
        is_near = cosine is None or cosine >= LEAST_COSINE
    return problem_with(claim, text, place, is_near=is_near)


def _is_chinese(text: str) -> bool:
    chinese = sum(1 for character in text if "\u3400" <= character <= "\u9fff")
    letters = sum(1 for character in text if character.isascii() and character.isalpha())
    return chinese * 3 > letters
