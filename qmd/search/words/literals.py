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

from qmd.parse.segment import SIGNS, fold, is_cjk, normalize

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

#: As much of a literal is looked for before a text is folded.
QUICK = 64


class RawText(NamedTuple):
    """A text in its folded form, and the same with capitals, character by character."""

    folded: str
    capitals: str


class Pattern(NamedTuple):
    """What to look for in a folded text; with ``word``, a word must begin there."""

    expression: re.Pattern[str] | str
    word: bool


def raw_text(raw: str) -> RawText:
    """The form of a text that `holds` searches."""
    normal = normalize(raw)
    folded = normal.casefold()
    if len(folded) != len(normal):
        normal = "".join(c if len(c.casefold()) == 1 else c.casefold() for c in normal)
    return RawText(folded, normal)


def pattern(literal: str) -> Pattern:
    """The form of a literal that `holds` looks for."""
    words = fold(literal).split()
    whole = words[0] if len(words) == 1 else re.compile(r"\s+".join(map(re.escape, words)))
    return Pattern(whole, bool(words) and _in_word(words[0][0]))


def holds(text: RawText, pattern: Pattern) -> bool:
    """Whether a text holds the literal."""
    positions = _positions(text.folded, pattern.expression)
    return any(not pattern.word or _begins_word(text, position) for position in positions)


def _positions(folded: str, expression: re.Pattern[str] | str) -> Iterator[int]:
    position = -1
    while True:
        if isinstance(expression, str):
            position = folded.find(expression, position + 1)
        else:
            match = expression.search(folded, position + 1)
            position = match.start() if match else -1
        if position < 0:
            return
        yield position


def _begins_word(text: RawText, position: int) -> bool:
    """Parts of CamelCase names are words, too."""
    if position == 0 or not _in_word(text.folded[position - 1]):
        return True
    before, first, behind = (
        text.capitals[position - 1],
        *text.capitals[position : position + 2].ljust(2),
    )
    return first.isupper() and (not before.isupper() or behind.islower())


def _in_word(character: str) -> bool:
    # CJK characters are words by themselves in the index, signs are blanks there.
    return character.isalnum() and not (is_cjk(character) or SIGNS.match(character))


def scan_documents(
    reader: Reader, literals: Sequence[Sequence[str]], selection: Selection
) -> Iterator[int]:
    """
    Ids of documents that hold one literal of each sequence, by reading all texts, in order.

    For literals that the index does not hold: those without any letter or digit, such as ``->``.
    """
    quick = [re.compile("|".join(map(_unfolded, group))) for group in literals]
    exact = [[pattern(literal) for literal in group] for group in literals]
    for document_id, raw in reader.documents.titles_and_texts(selection):
        # Folding takes many times longer than this search: only texts that pass it are folded.
        if all(expression.search(raw) for expression in quick) and _holds_each(raw, exact):
            yield document_id


def _holds_each(raw: str, groups: Sequence[Sequence[Pattern]]) -> bool:
    """Whether a text holds one pattern of each group."""
    text = raw_text(raw)
    return all(any(holds(text, each) for each in group) for group in groups)


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
