"""
Splits an answer into sentences, and says whether a text supports one.

The measure is the share of the sentence's words that the text has, without the words of no
content; Chinese is compared by pairs of characters. All numbers of the sentence must stand in the
text. Where the two are of different scripts, a sentence in Chinese about an English note, words
cannot agree, and the cosine of their vectors decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from qmd.search.words.weights import CHATTER, STOP_WORDS, stem

LEAST_SHARED = 0.34
"""The least share of a sentence's words that its source must have."""

LEAST_COSINE = 0.83
"""
The least cosine if words cannot agree. The built-in model gave .833 to .877 for ten true sentences
in the other language, and more than .83 for two of ten false ones on the same subject.
"""

_MAX_COMPARED = 4_000  # characters of a claim
_END = re.compile(r"(?<=[。！？；…])|(?<=[.!?])(?=\s)|\n+")
_WORD = re.compile(r"[A-Za-z]+(?:['’][A-Za-z]+)?|[\u3400-\u9fff\uf900-\ufaff]+|\d+(?:[.,]\d+)*")
_CITED = re.compile(r"\[[^\[\]\n]{1,1000}\]")
_MARKUP = re.compile(r"^\s*(?:#{1,6}|[-*+>]|\d{1,3}[.)])\s+|[*_`]+")
_NO_CLAIM = re.compile(
    r"(?i)^\W*(?:hi|hello|sure|yes|no|ok|okay|thanks|thank you|certainly|of course|"
    r"here (?:is|are)\b.*|in (?:short|summary)|sources?|"
    r"你好|好的|是的|没有|当然|谢谢|以下.*|来源|总结)\W*$"
)
_NOTHING_THERE = re.compile(
    r"(?i)\b(?:nothing|no (?:note|document|information|mention)s?|could not find|did not find|"
    r"(?:not|n't) (?:mention|say|contain|find))\b|没有(?:找到|提到|提及|相关)|未(?:找到|提到|提及)"
)
_NUMBERS = {
    **{word: str(value) for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve".split()  # noqa: SIM905
    )},
    **{word: str(value) for value, word in enumerate("零一二三四五六七八九十")},
    "两": "2",
    "twice": "2",
    "once": "1",
}  # fmt: skip


_COUNTED = re.compile(
    r"[零一二三四五六七八九十两](?=[十百千万点年月日天个小时分秒次周倍条张篇步人元块成份])"
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
    if not text or text.startswith("#") or text.endswith(("?", "？", ":", "：")):
        return False
    plain = _MARKUP.sub(" ", text)
    if _NO_CLAIM.match(plain) or _NOTHING_THERE.search(plain):
        return False
    return sum(1 for _ in _content_words(plain)) >= 2


def has_words(sentence: str) -> bool:
    """Whether anything stands in a sentence that can be compared."""
    plain = _MARKUP.sub(" ", sentence)
    return any(True for _ in _content_words(plain)) or bool(_numbers(plain, words=True))


def supports(
    claim: str, text: str, place: str, similarity: Callable[[str, str], float | None]
) -> str:
    """
    Why a text does not support a claim; "" if it does.

    Args:
        place: The path and the title of the document, which may hold numbers such as a year.
        similarity: The cosine of two texts' vectors; None if no model is loaded.
    """
    claim = _MARKUP.sub(" ", _CITED.sub(" ", claim[:_MAX_COMPARED]))
    present_numbers = _numbers(text, words=True) | _numbers(place, words=True)
    missing = _numbers(claim) - present_numbers
    if _numbers(text, words=True):  # else "three steps" may be a count of what stands there
        missing |= _numbers(claim, words=True) - present_numbers - {"0", "1"}
    if missing:
        return f"the lines do not have the number {min(missing, key=len)}"
    words = set(_content_words(claim))
    if not words:
        return ""
    present = set(_content_words(f"{text} {place}"))
    if len(words & present) / len(words) >= LEAST_SHARED:
        return ""
    if _is_chinese(claim) != _is_chinese(text):
        cosine = similarity(claim, text)
        if cosine is None or cosine >= LEAST_COSINE:
            return ""  # without a model there is nothing to compare by
    return "the lines say something else"


def _content_words(text: str) -> Iterator[str]:
    """The stems of English words, and the pairs of Chinese characters."""
    for match in _WORD.finditer(text):
        word = match[0]
        if word[0].isdigit():
            continue
        if word[0].isascii():
            if word.casefold() not in STOP_WORDS and word.casefold() not in _NUMBERS:
                yield _root(word.replace("’", "'").partition("'")[0])
        elif len(word) == 1:
            yield word
        else:
            for at in range(len(word) - 1):
                if (pair := word[at : at + 2]) not in CHATTER:
                    yield pair


def _root(word: str) -> str:
    """The stem of the stem: "deploys" and "deploy" are one word here."""
    return stem(stem(word))


def _numbers(text: str, *, words: bool = False) -> set[str]:
    """
    The numbers of a text, without separators and zeros in front.

    Args:
        words: Also those written as words, up to twelve; in Chinese each character of a number.
    """
    result: set[str] = set()
    for match in _WORD.finditer(text):
        word = match[0]
        if word[0].isdigit():
            result.update(_values(word))
        elif words and word[0].isascii():
            if value := _NUMBERS.get(word.casefold()):
                result.add(value)
        elif words:
            result.update(_NUMBERS[match[0]] for match in _COUNTED.finditer(word))
    return result


def _values(number: str) -> Iterator[str]:
    """``1,200.50`` as 1200.5; a decimal comma and a separator cannot be told apart."""
    plain = number.replace(",", "")
    whole, dot, fraction = plain.partition(".")
    fraction = fraction.replace(".", "").rstrip("0")
    yield (whole.lstrip("0") or "0") + (f".{fraction}" if dot and fraction else "")


def _is_chinese(text: str) -> bool:
    chinese = sum(1 for character in text if "\u3400" <= character <= "\u9fff")
    letters = sum(1 for character in text if character.isascii() and character.isalpha())
    return chinese * 3 > letters
