"""
The query language: words, ``"phrases"``, ``-negation``, ``OR``, ``prefix*``, and the fields
``title:``, ``path:``, ``tag:``. The signs may be those of a Chinese keyboard or a word
processor: ``“phrases”``, ``「phrases」``, ``－negation``, ``title：``, ``prefix＊``.

Every string is a valid query. What is not one of these is text to be found: an unclosed
quote, a lonely ``-`` or ``OR``, brackets, ``AND`` inside a sentence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from qmd.parse.segment import CJK_RUN, clean, has_token, normalize

Field = Literal["title", "path"]

#: More terms than this are a pasted text: full text leaves the rest out, and of more negations
#: and tags the rest.
MAX_TERMS = 64

#: So many characters of a question go to an embedding model: more than 512 tokens, which is
#: where most models cut, and where all of a pasted page would take half a minute.
MAX_QUESTION = 2000

#: Full text is asked for as many characters of a literal; the texts it finds are then read.
#: A phrase of 50,000 words takes FTS5 a minute.
LEAD = 64

_ITEM = re.compile(
    r"""(?P<not>[-－])?
        (?:(?P<field>title|path|tag)[:：])?
        (?:(?:"(?P<phrase>[^"]*)" | [“”„＂](?P<curly>[^“”„＂]*)[“”＂] | 「(?P<corner>[^「」]*)」)
           (?=\s|$)
         | (?P<word>\S+))""",
    re.VERBOSE,
)
_WORD_PART = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True)
class Term:
    """
    One thing to find.

    ``literal`` marks what must stand in the text as typed: phrases, words that hold signs
    the index leaves out (``foo_bar``, ``v1.2``, ``a@b.org``), and what is longer than `LEAD`.
    """

    text: str
    quoted: bool = False
    prefix: bool = False
    field: Field | None = None

    @property
    def literal(self) -> bool:
        return self.quoted or len(self.text) > LEAD or not all(c.isalnum() for c in self.text)

    @property
    def lead(self) -> str:
        """The beginning of a long text, cut where no word is, else the text itself."""
        if len(self.text) <= LEAD:
            return self.text
        end = next((n for n in range(LEAD, 0, -1) if _border(self.text, n)), len(self.text))
        return self.text[:end]

    @property
    def chinese(self) -> bool:
        return CJK_RUN.search(self.text) is not None


@dataclass(frozen=True, slots=True)
class ParsedQuery:
    """
    All of ``groups`` (each: any of its terms), none of ``excluded``, all of ``tags``, one tag
    of each of ``either_tags``, and none of ``no_tags``.

    ``text`` is the query in plain words, as an embedding model wants it.
    """

    groups: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]
    tags: tuple[str, ...]
    text: str
    either_tags: tuple[tuple[str, ...], ...] = ()
    no_tags: tuple[str, ...] = ()

    @property
    def tagged(self) -> bool:
        """Whether tags narrow the query."""
        return bool(self.tags or self.either_tags or self.no_tags)

    @property
    def only_narrows(self) -> bool:
        """Whether it says which documents to leave out or keep, and nothing to look for."""
        return not self.groups and (self.tagged or bool(self.excluded))

    @property
    def terms(self) -> tuple[Term, ...]:
        """Each once."""
        return tuple(dict.fromkeys(term for group in self.groups for term in group))


@lru_cache(maxsize=16)  # `query` reads the same one in two places
def parse(query: str) -> ParsedQuery:
    """Read a query; never fails."""
    reader = _Reader()
    items = list(_ITEM.finditer(clean(query)))
    for position, item in enumerate(items):
        word, field = item["word"], item["field"]
        phrase = next((p for p in item.group("phrase", "curly", "corner") if p is not None), None)
        negated = bool(item["not"])
        between = 0 < position < len(items) - 1 and reader.has_begun
        if between and word in {"AND", "OR"} and not negated and not field:
            reader.join = reader.join or word == "OR"
            continue
        if word is not None and negated and (word.startswith("-") or _says_nothing(word)):
            word, field, negated = item[0], None, False  # "--force", "->" and "-tag:" are text
        if field == "tag":
            name = (phrase if phrase is not None else word).lstrip("#").strip()
            if name:
                reader.add_tag(name, negated)
                continue
            word, phrase, negated = item[0], None, False
        column: Field | None = "title" if field == "title" else "path" if field == "path" else None
        reader.add_text(word, phrase, column, negated)
    return reader.result()


class _Reader:
    """What was read of a query so far."""

    def __init__(self) -> None:
        self.join = False  # an OR waits for its right side
        self._behind_tag = False
        self._groups: list[dict[Term, None]] = []
        self._alone: set[Term] = set()  # each a group of its own
        self._open: dict[Term, None] = {}  # what an OR adds to
        self._size = 0
        self._excluded: dict[Term, None] = {}
        self._tags: list[dict[str, None]] = []
        self._no_tags: dict[str, None] = {}
        self._plain: list[str] = []
        self._symbols: dict[str, None] = {}

    @property
    def has_begun(self) -> bool:
        """Whether there is something for an AND or OR to stand behind."""
        return bool(self._groups or self._excluded or self._tags or self._no_tags)

    def add_tag(self, name: str, negated: bool) -> None:
        """Tags narrow a query: they are alternatives to each other, never to words."""
        if negated:
            self._no_tags[name] = None
        elif self.join and self._behind_tag:
            self._tags[-1][name] = None
        else:
            self._tags.append({name: None})
        self.join, self._behind_tag = False, not negated

    def add_text(
        self, word: str | None, phrase: str | None, field: Field | None, negated: bool
    ) -> None:
        if phrase is not None:
            terms = [Term(phrase.strip(), quoted=True, field=field)] if phrase.strip() else []
        else:
            assert word is not None
            terms = _words(word, field)
            if not terms:
                self._symbols[word] = None
        join = self.join and not self._behind_tag and not negated
        self._behind_tag = False
        if negated:
            self._excluded.update(dict.fromkeys(terms))
            self.join = False
            return
        if terms or phrase is None:
            self._plain.append(phrase if phrase is not None else word or "")
        for number, term in enumerate(terms):
            if join and self._open and number == 0:
                self._add_alternative(term)
            else:
                self._open = {term: None}
                if term not in self._alone and self._size < MAX_TERMS:
                    self._alone.add(term)
                    self._groups.append(self._open)
                    self._size += 1
            self.join = False

    def _add_alternative(self, term: Term) -> None:
        if self._size >= MAX_TERMS or term in self._open:
            return
        if not self._groups or self._groups[-1] is not self._open:
            self._groups.append(self._open)  # it was asked for alone before: "a a OR b"
            self._size += 1
        elif len(self._open) == 1:
            self._alone.difference_update(self._open)
        self._open[term] = None
        self._size += 1

    def result(self) -> ParsedQuery:
        groups = [tuple(group) for group in self._groups]
        if not groups and self._symbols and not (self._tags or self._no_tags):
            # Nothing but signs: then they are what is looked for, exactly as typed.
            groups = [(Term(sign, quoted=True),) for sign in list(self._symbols)[:MAX_TERMS]]
        alone = dict.fromkeys(name for group in self._tags if len(group) == 1 for name in group)
        return ParsedQuery(
            tuple(groups),
            tuple(self._excluded)[:MAX_TERMS],
            tuple(alone)[:MAX_TERMS],
            " ".join(self._plain).strip(),
            tuple(tuple(group)[:MAX_TERMS] for group in self._tags if len(group) > 1)[:MAX_TERMS],
            tuple(self._no_tags)[:MAX_TERMS],
        )


def _says_nothing(word: str) -> bool:
    """Whether it is made of signs only, or is a field without what to look for in it."""
    return not has_token(word) or (
        word.endswith((":", "：")) and word.rstrip(":：") in {"title", "path", "tag"}
    )


def _words(word: str, field: Field | None) -> list[Term]:
    """The terms in a run of non-blanks: split at signs that are not ASCII, such as ``，``."""
    if word.isascii() and word.isalnum():
        return [Term(word, field=field)]
    prefix = word.endswith(("*", "＊")) and has_token(word)
    pieces = "".join(c if c.isascii() or has_token(c) or _combining(c) else " " for c in word)
    found = [_strip(normalize(piece)) for piece in pieces.split()]
    terms = [Term(piece, field=field) for piece in found if piece]
    if prefix and terms:
        terms[-1] = Term(terms[-1].text, prefix=True, field=field)
    return terms


def _border(text: str, place: int) -> bool:
    """Whether no word of letters or digits is cut in two there."""
    return not (_in_word(text[place - 1]) and _in_word(text[place]))


def _in_word(character: str) -> bool:
    letter = character.isalnum() or has_token(character) or _combining(character)
    return letter and CJK_RUN.match(character) is None


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
