"""
The query language: words, ``"phrases"``, ``-negation``, ``OR``, ``prefix*``, and the fields
``title:``, ``path:``, ``tag:``.

Every string is a valid query. What is not one of these is text to be found: an unclosed
quote, a lonely ``-`` or ``OR``, brackets, ``AND`` inside a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from qmd.parse.segment import CJK_RUN, clean, has_token, normalize

Field = Literal["title", "path"]

#: More terms than this are a pasted text: full text leaves the rest out (vectors do not), and
#: of more negations and tags the rest.
MAX_TERMS = 64

_ITEM = re.compile(
    r"""(?P<not>-)?
        (?:(?P<field>title|path|tag):)?
        (?:"(?P<phrase>[^"]*)"(?=\s|$) | (?P<word>\S+))""",
    re.VERBOSE,
)
_WORD_PART = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Term:
    """
    One thing to find.

    ``literal`` marks what must stand in the text as typed: phrases, and words that hold
    signs the index leaves out (``foo_bar``, ``v1.2``, ``a@b.org``).
    """

    text: str
    quoted: bool = False
    prefix: bool = False
    field: Field | None = None

    @property
    def literal(self) -> bool:
        return self.quoted or not all(c.isalnum() for c in self.text)

    @property
    def chinese(self) -> bool:
        return CJK_RUN.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """
    All of ``groups`` (each: any of its terms), none of ``excluded``, and every tag.

    ``text`` is the query in plain words, as an embedding model wants it.
    """

    groups: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]
    tags: tuple[str, ...]
    text: str

    @property
    def terms(self) -> tuple[Term, ...]:
        return tuple(term for group in self.groups for term in group)


def parse(query: str) -> ParsedQuery:
    """Read a query; never fails. A query of nothing but negations is taken as text."""
    query = clean(query)
    parsed = _parse(query)
    if parsed.excluded and not parsed.groups and not parsed.tags:
        return _parse(" ".join(part.lstrip("-") for part in query.split()))
    return parsed


def _parse(query: str) -> ParsedQuery:
    groups: list[dict[Term, None]] = []
    known: set[Term] = set()
    excluded: dict[Term, None] = {}
    tags: dict[str, None] = {}
    plain: list[str] = []
    symbols: list[str] = []
    join = False  # an OR waits for its right side
    items = list(_ITEM.finditer(query))
    for position, item in enumerate(items):
        word, phrase, field = item["word"], item["phrase"], item["field"]
        between = 0 < position < len(items) - 1 and bool(groups)
        if between and word in {"AND", "OR"} and not item["not"] and not field:
            join = join or word == "OR"
            continue
        negated = bool(item["not"])
        if word is not None and negated and (word.startswith("-") or not has_token(word)):
            word, negated = item[0], False  # "--force", "-" and "->" are text
        if field == "tag":
            name = (phrase if phrase is not None else word).lstrip("#")
            if name and not negated:
                tags[name] = None
                continue
            word, phrase, field = item[0], None, None
        column: Field | None = "title" if field == "title" else "path" if field == "path" else None
        if phrase is not None:
            terms = [Term(phrase.strip(), quoted=True, field=column)] if phrase.strip() else []
        else:
            terms = _words(word, column)
            if not terms:
                symbols.append(word)
        if negated:
            excluded.update(dict.fromkeys(terms))
            continue
        if terms or phrase is None:
            plain.append(phrase if phrase is not None else word)
        for number, term in enumerate(terms):
            if term not in known and len(known) < MAX_TERMS:
                known.add(term)
                if join and groups and number == 0:
                    groups[-1][term] = None
                else:
                    groups.append({term: None})
            join = False
    if not groups and symbols and not tags:
        # Nothing but signs: then they are what is looked for, exactly as typed.
        signs = list(dict.fromkeys(symbols))[:MAX_TERMS]
        groups = [{Term(symbol, quoted=True): None} for symbol in signs]
    return ParsedQuery(
        tuple(map(tuple, groups)),
        tuple(excluded)[:MAX_TERMS],
        tuple(tags)[:MAX_TERMS],
        " ".join(plain).strip(),
    )


def _words(word: str, field: Field | None) -> list[Term]:
    """The terms in a run of non-blanks: split at signs that are not ASCII, such as ``，``."""
    prefix = word.endswith("*") and has_token(word)
    pieces = "".join(c if c.isascii() or has_token(c) or _combining(c) else " " for c in word)
    found = [_strip(normalize(piece)) for piece in pieces.split()]
    terms = [Term(piece, field=field) for piece in found if piece]
    if prefix and terms:
        terms[-1] = Term(terms[-1].text, prefix=True, field=field)
    return terms


def _combining(character: str) -> bool:
    import unicodedata

    return unicodedata.category(character).startswith("M")


def _strip(piece: str) -> str:
    """Without signs around it, except those that belong to a name: ``C++``, ``C#``."""
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


def parts(term: Term) -> list[str]:
    """
    What a term falls apart into for loose matching: words, and the pairs of Chinese runs.

    A single character between other words carries little and is left out.
    """
    found: dict[str, None] = {}
    for run in _WORD_PART.findall(normalize(term.text)):
        position = 0
        for match in CJK_RUN.finditer(run):
            _add_word(found, run[position : match.start()])
            characters = match[0]
            for start in range(len(characters) - 1):
                found[characters[start : start + 2]] = None
            if len(characters) == 1 and characters == term.text:
                found[characters] = None
            position = match.end()
        _add_word(found, run[position:])
    return list(found)


def _add_word(found: dict[str, None], word: str) -> None:
    if word:
        found[word] = None
