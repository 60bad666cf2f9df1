"""
Splits an answer into sentences, and says whether lines of a document support one.

The words are compared (below). Where a sentence and the lines are of different scripts, a
sentence in Chinese about an English note, words cannot agree, and the cosine of their vectors
decides.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import add

from qmd.parse.segment import cjk_runs, fold
from qmd.search.words import CHATTER, STOP_WORDS, stem

#: The least cosine if words cannot agree. The built-in model gave .833 to .877 for ten true
#: sentences in the other language, and more than .83 for two of ten false ones on the same subject.
LEAST_COSINE = 0.83

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


# --- numbers and words ----------------------------------------------------------------
# Words are compared by their stems, Chinese by pairs of characters, as the searches do it. A number
# of the claim must stand in the lines, however it is written (``9:00`` and ``9 am``, ``三十`` and
# 30, ``March`` and 3), and a claim that denies must cite lines that deny.


#: The least share of a claim's words that the lines must hold. With .33 to .5 all 43 claims of
#: `tests/support/claims.py` are told apart.
THRESHOLD = 0.4

#: The characters of a claim that are compared: the last ones, next to the citation.
MAX_CLAIM = 2_000

_THOUSANDS = re.compile(r"\d{1,3}(?:,\d{3})+")
_A_DATE = 3  # numbers; so many that agree are worth half a word each

_MARKUP = re.compile(r"[*_`~#>|\[\]“”\"‘’'「」『』()（）\0]+")
_BLANKS = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d_]+")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_QUIET_WORDS = STOP_WORDS | frozenset(
    """
    according says say said note notes also only just very per which while since however therefore
    thus source sources see every each other document documents file section should must
    """.split()  # noqa: SIM905  a list of quoted words is no easier to read
)
_QUIET_CHARACTERS = frozenset(
    "的了和与及或在是有为以对从到把被将其该此并也都就还则即之于等个每请您你我他她它们"
)


def _words(text: str) -> list[str]:
    return text.split()


_MONTHS = {
    name[:length]: number
    for number, name in enumerate(
        _words("january february march april may june july august september october november"
        " december"), 1
    )
    for length in {3, len(name)}
}  # fmt: skip
_WORD_NUMBERS = {
    word: number
    for number, word in enumerate(
        _words("zero one two three four five six seven eight nine ten eleven twelve thirteen"
        " fourteen fifteen sixteen seventeen eighteen nineteen twenty")
    )
} | {"thirty": 30, "forty": 40, "fifty": 50, "sixty": 60, "seventy": 70, "eighty": 80,
     "ninety": 90, "hundred": 100, "thousand": 1000, "once": 1, "twice": 2, "dozen": 12,
     "first": 1, "second": 2, "third": 3}  # fmt: skip
_DAYS = re.compile(
    r"\b(mon|tue|wed|thu|fri|sat|sun)(?:(?:s|nes|rs|ur)?day)?s?\b|(?:周|星期|礼拜)([一二三四五六日天])"
)
_CHINESE_DAYS = dict(
    zip("一二三四五六日天", ["mon", "tue", "wed", "thu", "fri", "sat", "sun", "sun"], strict=True)
)
#: Words that are often no number: "one of them", "a second time", "may".
_VAGUE_NUMBERS = frozenset({"one", "once", "first", "second", "third", "may", "mar", "dec", "zero"})

_DIGITS = {c: n for n, c in enumerate("零一二三四五六七八九")} | {"两": 2, "〇": 0}
_UNITS = {"十": 10, "百": 100, "千": 1000, "万": 10_000}
_CHINESE_NUMBER = re.compile("[零〇一二两三四五六七八九十百千万]+")
_COUNTED = frozenset("点天年月日号周星次个台块元分秒小时人条行岁度倍份种项轮遍%名位层")

_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nor|neither|without|cannot|avoid\w*|forbid\w*|forbidden|nobody|nothing)\b"
    r"|n['’]t\b|不(?!仅|但|过|少|断|同|久|妨|止|光|管|论)|没|无(?!论)|未|别(?!人|的|处)|勿|禁止|避免|严禁|切忌",
    re.IGNORECASE,
)
_CLAUSE = re.compile(r"[,;:.!?，。；：！？、\n\r]+(?:\s|$)|[，。；：！？\n\r]")


@dataclass(frozen=True)
class Wording:
    """A text, prepared for comparison."""

    text: str

    @cached_property
    def plain(self) -> str:
        """Folded, without markup, blanks as one."""
        return _BLANKS.sub(" ", _MARKUP.sub(" ", fold(self.text))).strip()

    @cached_property
    def terms(self) -> set[str]:
        """Stems of words, and pairs of Chinese characters, without those that say little."""
        return _terms(self.plain)

    @cached_property
    def numbers(self) -> frozenset[str]:
        """All that may be a number, or is a day of the week, in it."""
        return frozenset(_numbers(self.plain, sure_only=False))

    @cached_property
    def sure_numbers(self) -> frozenset[str]:
        """What is certainly a number in it."""
        return frozenset(_numbers(self.plain, sure_only=True))

    @property
    def denies(self) -> bool:
        return _NEGATION.search(self.plain) is not None


def problem_with(claim: str, lines: str, place: str = "", *, is_near: bool = False) -> str:
    """
    Why the lines do not support a claim; "" if they do.

    Args:
        place: The path and the title of the document, which may hold numbers such as a year.
        is_near: Claim and lines are near in meaning, so they need not share words.
    """
    claimed, cited = Wording(claim[-MAX_CLAIM:]), Wording(lines)
    if claimed.plain in cited.plain:
        return ""
    missing = sorted(claimed.sure_numbers - cited.numbers - Wording(place).numbers)
    if not cited.numbers:  # "three steps" may be a count of what stands there
        missing = [number for number in missing if not _is_count(number)]
    if missing:
        return f"the lines do not say {', '.join(missing[:3])}"
    if not claimed.terms:
        return ""
    overlap = share(claimed.terms, cited.terms)
    if len(claimed.sure_numbers) >= _A_DATE:  # all of which stand in the lines
        held = overlap * len(claimed.terms) + 0.5 * len(claimed.sure_numbers)
        overlap = held / (len(claimed.terms) + 0.5 * len(claimed.sure_numbers))
    if overlap < THRESHOLD and not is_near:
        return "the lines say something else"
    return "" if _agree(claimed, lines) else "one says that it is so, the other that it is not"


def _is_count(number: str) -> bool:
    return number.isdecimal() and 2 <= int(number[:9]) <= 12


def share(claimed: Collection[str], cited: Collection[str]) -> float:
    """The share of the claimed words that are cited, or of which a longer or shorter form is."""
    if not claimed:
        return 1.0
    beginnings = {term[:4] for term in cited if len(term) >= 4 and term.isascii()}
    held = sum(
        1.0 if term in cited else 0.8 if len(term) >= 5 and term[:4] in beginnings else 0.0
        for term in claimed
    )
    return held / len(claimed)


def _agree(claimed: Wording, lines: str) -> bool:
    """Whether claim and lines both deny, or both do not, in the clauses that they share."""
    clauses = [Wording(clause) for clause in _CLAUSE.split(lines) if clause.strip()]
    shared = [(len(clause.terms & claimed.terms), clause) for clause in clauses]
    most = max((count for count, _ in shared), default=0)
    if not most:
        return True
    if claimed.denies:
        return any(clause.denies for count, clause in shared if count)
    return any(not clause.denies for count, clause in shared if count == most)


def _terms(plain: str) -> set[str]:
    terms = {
        stem(word)
        for word in _WORD.findall(_without_cjk(plain))
        if word not in _QUIET_WORDS and word not in _WORD_NUMBERS and len(word) > 1
    }
    pairs = {pair for match in cjk_runs(plain) for pair in map(add, match[0], match[0][1:])}
    return terms.union(
        pair
        for pair in pairs
        if pair not in CHATTER
        and _QUIET_CHARACTERS.isdisjoint(pair)
        and _CHINESE_NUMBER.fullmatch(pair) is None
    )


def _without_cjk(plain: str) -> str:
    runs: Sequence[re.Match[str]] = list(cjk_runs(plain))
    pieces, position = [], 0
    for run in runs:
        pieces += [plain[position : run.start()], " "]
        position = run.end()
    return "".join([*pieces, plain[position:]])


def _numbers(plain: str, *, sure_only: bool) -> list[str]:
    numbers: list[str] = []
    for match in _NUMBER.finditer(plain):
        numbers += _written(match[0])
    for word in _WORD.findall(plain):
        value = _MONTHS.get(word, _WORD_NUMBERS.get(word))
        if value is not None and not (sure_only and word in _VAGUE_NUMBERS):
            numbers.append(str(value))
    for match in _DAYS.finditer(plain):
        numbers.append(match[1] or _CHINESE_DAYS[match[2]])
    for match in _CHINESE_NUMBER.finditer(plain):
        value = _chinese_value(match[0])
        is_counted = plain[match.end() : match.end() + 1] in _COUNTED and match[0] != "一"
        if value is not None and (is_counted or not sure_only):
            numbers.append(str(value))
    return numbers


def _written(digits: str) -> list[str]:
    """``1,000`` as 1000, ``09:00`` as 9, ``2026.03`` as it is, each without needless zeros."""
    if _THOUSANDS.fullmatch(digits):
        return [digits.replace(",", "").lstrip("0") or "0"]
    if ":" in digits:  # a time: nobody writes the minutes of a whole hour in words
        parts = [part.lstrip("0") for part in re.split("[:.,]", digits)]
        return [parts[0] or "0", *filter(None, parts[1:])]
    return [_without_zeros(part) for part in digits.split(",")]


def _without_zeros(digits: str) -> str:
    whole, _, rest = digits.partition(".")
    whole = whole.lstrip("0") or "0"
    if "." not in rest:
        rest = rest.rstrip("0")
    return f"{whole}.{rest}" if rest else whole


def _chinese_value(text: str) -> int | None:
    if not any(character in _UNITS for character in text):
        return int("".join(str(_DIGITS[character]) for character in text)[:15])
    total = section = digit = 0
    for character in text:
        if character in _DIGITS:
            digit = _DIGITS[character]
            continue
        unit = _UNITS[character]
        if unit == 10_000:
            total, section, digit = total + (section + digit or 1) * unit, 0, 0
        else:
            section, digit = section + (digit or 1) * unit, 0
    return total + section + digit if total < 10**15 else None
