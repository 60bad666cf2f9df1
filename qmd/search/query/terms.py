"""Split a run of characters into the terms of a query."""

from __future__ import annotations

import unicodedata
from typing import Literal

from qmd import lazy
from qmd.parse.segment import cjk_runs, has_token, is_cjk, normalize
from qmd.records import NamedTuple

Field = Literal["title", "description", "path"]
#: What most words of a text are: words of letters, or pairs of Chinese characters.
Script = Literal["alphabet", "characters"]

#: Full text searches for at most this many characters of a literal; the whole literal is then
#: checked in the texts of the hits. A phrase of 50,000 words would take FTS5 a minute.
LEAD = 64

_WORD_PART = lazy.pattern(r"[^\W_]+")


class Term(NamedTuple):
    """
    One word or phrase to search for.

    Attributes:
        quoted: The user typed it in quotes.
        prefix: Words that begin with the text match too.
        field: Only this field is searched; None for all.
    """

    text: str
    quoted: bool = False
    prefix: bool = False
    field: Field | None = None

    @property
    def literal(self) -> bool:
        """
        Whether a text must hold the term exactly as typed.

        That is so for phrases, for words with signs that the index leaves out (``foo_bar``,
        ``v1.2``, ``a@b.org``), and for terms longer than `LEAD`.
        """
        return (
            self.quoted
            or len(self.text) > LEAD
            or not all(character.isalnum() for character in self.text)
        )

    @property
    def lead(self) -> str:
        """The text or, if it is long, its first `LEAD` characters, cut between two words."""
        if len(self.text) <= LEAD:
            return self.text
        end = next(
            (position for position in range(LEAD, 0, -1) if _is_border(self.text, position)),
            len(self.text),
        )
        return self.text[:end]

    @property
    def chinese(self) -> bool:
        """Whether the term has Chinese, Japanese or Korean characters."""
        return any(cjk_runs(self.text))


def split_terms(word: str, field: Field | None) -> list[Term]:
    """Split a run of non-blank characters into terms, at non-ASCII signs such as ``，``."""
    if word.isascii() and word.isalnum():
        return [Term(word, field=field)]
    is_prefix = word.endswith(("*", "＊")) and has_token(word)
    spaced = "".join(character if _belongs_to_term(character) else " " for character in word)
    pieces = [_strip(normalize(piece)) for piece in spaced.split()]
    terms = [Term(piece, field=field) for piece in pieces if piece]
    if is_prefix and terms:
        terms[-1] = Term(terms[-1].text, prefix=True, field=field)
    return terms


def loose_parts(term: Term) -> list[str]:
    """
    Split a term for loose matching into words and pairs of Chinese characters.

    A single Chinese character between other words says little, so it is left out.
    """
    if term.text.isascii() and term.text.isalnum():
        return [term.text]
    parts: dict[str, None] = {}
    for run in _WORD_PART.findall(normalize(term.text)):
        position = 0
        for match in cjk_runs(run):
            parts[run[position : match.start()]] = None
            characters = match[0]
            for start in range(len(characters) - 1):
                parts[characters[start : start + 2]] = None
            if len(characters) == 1 and characters == term.text:
                parts[characters] = None
            position = match.end()
        parts[run[position:]] = None
    return [part for part in parts if part]


def text_parts(text: str) -> list[str]:
    """The words and pairs of Chinese characters of a text, without signs; see `loose_parts`."""
    return [part for word in text.split() for part in loose_parts(Term(word))]


def script_of(text: str) -> Script:
    """
    "characters" if at least half of a text's words are pairs of characters, else "alphabet".

    The two are measured differently: ten Chinese characters are nine pairs, and a document often
    has a pair by chance.
    """
    parts = text_parts(text)
    pairs = sum(map(is_cjk, parts))
    return "characters" if pairs and 2 * pairs >= len(parts) else "alphabet"


def _belongs_to_term(character: str) -> bool:
    return character.isascii() or has_token(character) or _is_combining(character)


def _is_border(text: str, position: int) -> bool:
    """Whether a cut at this position is in no word."""
    return not (_is_in_word(text[position - 1]) and _is_in_word(text[position]))


def _is_in_word(character: str) -> bool:
    is_letter = character.isalnum() or has_token(character) or _is_combining(character)
    return is_letter and not is_cjk(character)


def _is_combining(character: str) -> bool:
    return unicodedata.category(character).startswith("M")


def _strip(piece: str) -> str:
    """Remove the signs around a piece, except those of names such as ``C++`` and ``C#``."""
    start, end = 0, len(piece)
    while start < end and not has_token(piece[start]):
        start += 1
    while end > start and not has_token(piece[end - 1]):
        end -= 1
    if piece[end : end + 2] == "++":
        end += 2
    elif piece[end : end + 1] == "#" and end - start == 1:
        end += 1
    return piece[start:end]
