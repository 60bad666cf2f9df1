"""
Literals in the texts themselves: what the index has lost (signs, spacing, endings).

Both sides are brought to NFKC without letter case, and any run of blanks equals any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from qmd.parse.segment import fold
from qmd.sqlite import Connection
from qmd.store import texts
from qmd.store.filters import Where

Pattern = re.Pattern[str] | str

#: As much of a literal is looked for before a text is folded.
QUICK = 64


def pattern(literal: str) -> Pattern:
    """What `holds` looks for in a folded text."""
    words = fold(literal).split()
    if len(words) == 1:
        return words[0]
    return re.compile(r"\s+".join(map(re.escape, words)))


def holds(folded: str, wanted: Pattern) -> bool:
    """Whether a text from `fold` holds the literal."""
    return wanted in folded if isinstance(wanted, str) else wanted.search(folded) is not None


def scan(connection: Connection, literals: Sequence[Sequence[str]], where: Where) -> Iterator[int]:
    """
    Ids of documents that hold one literal of each sequence, by reading all texts, in order.

    For what the index does not hold: literals without any letter or digit, such as ``->``.
    """
    quick = [re.compile("|".join(map(_unfolded, group))) for group in literals]
    exact = [[pattern(literal) for literal in group] for group in literals]
    for number, text in texts.titles_and_texts(connection, where):
        # Folding takes many times longer than looking: only what looks right is folded.
        if all(expression.search(text) for expression in quick):
            folded = fold(text)
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
