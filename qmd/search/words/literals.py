"""
Literals in the texts themselves: what the index has lost (signs, spacing, endings).

Both sides are brought to NFKC without letter case, and any run of blanks equals any other.
A literal begins where a word begins, as the index has it: ``als*`` is not in ``tutorials``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from qmd.parse.segment import CJK_RUN, SIGNS, fold, normalize

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

#: As much of a literal is looked for before a text is folded.
QUICK = 64

#: What ends a word without being one: to the index these are words of their own, or blanks.
_SEPARATE = re.compile(f"{CJK_RUN.pattern}|{SIGNS.pattern}")


class Text(NamedTuple):
    """What literals are looked for in, and the same with its capitals, sign by sign."""

    folded: str
    capitals: str


class Pattern(NamedTuple):
    """What to look for in a folded text; ``word``: and there a word must begin."""

    expression: re.Pattern[str] | str
    word: bool


def text(raw: str) -> Text:
    """What `holds` looks in."""
    normal = normalize(raw)
    folded = normal.casefold()
    if len(folded) != len(normal):
        normal = "".join(c if len(c.casefold()) == 1 else c.casefold() for c in normal)
    return Text(folded, normal)


def pattern(literal: str) -> Pattern:
    """What `holds` looks for."""
    words = fold(literal).split()
    whole = words[0] if len(words) == 1 else re.compile(r"\s+".join(map(re.escape, words)))
    return Pattern(whole, bool(words) and _in_word(words[0][0]))


def holds(text: Text, wanted: Pattern) -> bool:
    """Whether a text holds the literal."""
    places = _places(text.folded, wanted.expression)
    return any(not wanted.word or _begins_word(text, place) for place in places)


def _places(folded: str, expression: re.Pattern[str] | str) -> Iterator[int]:
    place = -1
    while True:
        if isinstance(expression, str):
            place = folded.find(expression, place + 1)
        else:
            found = expression.search(folded, place + 1)
            place = found.start() if found else -1
        if place < 0:
            return
        yield place


def _begins_word(text: Text, place: int) -> bool:
    """Parts of CamelCase names are words, too."""
    if place == 0 or not _in_word(text.folded[place - 1]):
        return True
    before, first, behind = text.capitals[place - 1], *text.capitals[place : place + 2].ljust(2)
    return first.isupper() and (not before.isupper() or behind.islower())


def _in_word(character: str) -> bool:
    return character.isalnum() and _SEPARATE.match(character) is None


def scan(reader: Reader, literals: Sequence[Sequence[str]], selection: Selection) -> Iterator[int]:
    """
    Ids of documents that hold one literal of each sequence, by reading all texts, in order.

    For what the index does not hold: literals without any letter or digit, such as ``->``.
    """
    quick = [re.compile("|".join(map(_unfolded, group))) for group in literals]
    exact = [[pattern(literal) for literal in group] for group in literals]
    for number, raw in reader.documents.titles_and_texts(selection):
        # Folding takes many times longer than looking: only what looks right is folded.
        if all(expression.search(raw) for expression in quick):
            folded = text(raw)
            if all(any(holds(folded, wanted) for wanted in group) for group in exact):
                yield number


def _unfolded(literal: str) -> str:
    """A regular expression for all raw texts that fold to the literal, and a few more."""
    one, many = _origins()
    literal = fold(literal)[:QUICK]
    words = [
        "".join(f"[{re.escape(character + one.get(character, ''))}]" for character in word)
        for word in literal.split()
    ]
    wider = "".join(dict.fromkeys("".join(many.get(c, "") for c in literal)))
    return r"\s+".join(words) + (f"|[{re.escape(wider)}]" if wider else "")


@lru_cache(maxsize=1)
def _origins() -> tuple[dict[str, str], dict[str, str]]:
    """
    Folded character → the characters that fold to it, and those whose folded form has it
    among others (``.`` → ``…``). Of the basic plane: the others hold no signs that fold.
    """
    one: dict[str, str] = {}
    many: dict[str, str] = {}
    for number in (*range(0x80, 0xD800), *range(0xF900, 0x10000)):
        character = chr(number)
        folded = fold(character)
        if len(folded) == 1:
            if folded != character:
                one[folded] = one.get(folded, "") + character
        else:
            for part in dict.fromkeys(folded):
                many[part] = many.get(part, "") + character
    return one, many
