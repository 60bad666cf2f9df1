"""
The query language: words, ``"phrases"``, ``-negation``, ``OR``, ``prefix*``, and the fields
``title:``, ``path:``, ``tag:``. The signs may be those of a Chinese keyboard or a word
processor: ``“phrases”``, ``「phrases」``, ``－negation``, ``title：``, ``prefix＊``.

Every string is a valid query. What is not one of these is text to be found: an unclosed
quote, a lonely ``-`` or ``OR``, brackets, ``AND`` inside a sentence.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from qmd.parse.segment import clean, has_token
from qmd.search.query.terms import Field, Term, split_terms

#: More terms than this are a pasted text: full text leaves the rest out, and of more negations
#: and tags the rest.
MAX_TERMS = 64

#: At most this many characters of a question go to an embedding model: more than 512 tokens,
#: which is where most models cut, and where all of a pasted page would take half a minute.
MAX_QUESTION = 2000

_ITEM = re.compile(
    r"""(?P<not>[-－])?
        (?:(?P<field>title|path|tag)[:：])?
        (?:(?:"(?P<phrase>[^"]*)" | [“”„＂](?P<curly>[^“”„＂]*)[“”＂] | 「(?P<corner>[^「」]*)」)
           (?=\s|$)
         | (?P<word>\S+))""",
    re.VERBOSE,
)


_FIELDS: dict[str | None, Field] = {"title": "title", "path": "path"}


class ParsedQuery(NamedTuple):
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


@lru_cache(maxsize=16)  # `query` parses the same string in two places
def parse(query: str) -> ParsedQuery:
    """Parse a query; never fails."""
    builder = _QueryBuilder()
    items = [_read_item(match) for match in _ITEM.finditer(clean(query))]
    last = len(items) - 1
    for position, item in enumerate(items):
        if item.is_operator and 0 < position < last and builder.has_content:
            builder.add_operator(item)
        elif item.tag:
            builder.add_tag(item.tag, item.negated)
        else:
            builder.add_text(item)
    return builder.result()


class _Item(NamedTuple):
    """One run of non-blanks or one phrase, with its sign and field: a word or a phrase."""

    word: str | None = None
    phrase: str | None = None
    field: Field | None = None
    tag: str = ""
    negated: bool = False

    @property
    def is_operator(self) -> bool:
        return self.word in {"AND", "OR"} and not self.negated and self.field is None

    @property
    def plain(self) -> str:
        return self.phrase if self.phrase is not None else self.word or ""

    def terms(self) -> list[Term]:
        if self.phrase is None:
            return split_terms(self.word or "", self.field)
        text = self.phrase.strip()
        return [Term(text, quoted=True, field=self.field)] if text else []


def _read_item(match: re.Match[str]) -> _Item:
    word, field = match["word"], match["field"]
    negated = bool(match["not"])
    if word is not None and negated and (word.startswith("-") or _has_no_content(word)):
        return _Item(match[0])  # "--force", "->" and "-tag:" are text
    phrase = next((p for p in match.group("phrase", "curly", "corner") if p is not None), None)
    if field == "tag":
        name = (phrase if phrase is not None else word).lstrip("#").strip()
        return _Item(tag=name, negated=negated) if name else _Item(match[0])
    return _Item(word, phrase, _FIELDS.get(field), negated=negated)


def _has_no_content(word: str) -> bool:
    """Whether it consists of signs only, or is a field without what to look for in it."""
    return not has_token(word) or (
        word.endswith((":", "：")) and word.rstrip(":：") in {"title", "path", "tag"}
    )


class _QueryBuilder:
    """The parts of a query that are read so far."""

    def __init__(self) -> None:
        self._or_is_open = False  # an OR waits for its right side
        self._is_behind_tag = False
        self._groups: list[dict[Term, None]] = []
        self._single_terms: set[Term] = set()  # each a group of one
        self._last_group: dict[Term, None] = {}  # the left side of an OR
        self._term_count = 0
        self._excluded: dict[Term, None] = {}
        self._tags: list[dict[str, None]] = []
        self._excluded_tags: dict[str, None] = {}
        self._plain: list[str] = []
        self._symbols: dict[str, None] = {}

    @property
    def has_content(self) -> bool:
        """Whether there is something for an AND or OR to stand behind."""
        return bool(self._groups or self._excluded or self._tags or self._excluded_tags)

    def add_operator(self, item: _Item) -> None:
        self._or_is_open = self._or_is_open or item.word == "OR"

    def add_tag(self, name: str, negated: bool) -> None:
        """Tags narrow a query: they are alternatives to each other, never to words."""
        if negated:
            self._excluded_tags[name] = None
        elif self._or_is_open and self._is_behind_tag:
            self._tags[-1][name] = None
        else:
            self._tags.append({name: None})
        self._or_is_open, self._is_behind_tag = False, not negated

    def add_text(self, item: _Item) -> None:
        terms = item.terms()
        if item.phrase is None and not terms:
            self._symbols[item.plain] = None
        is_alternative = self._or_is_open and not self._is_behind_tag
        self._is_behind_tag = False
        if item.negated:
            self._excluded.update(dict.fromkeys(terms))
            self._or_is_open = False
            return
        if terms or item.phrase is None:
            self._plain.append(item.plain)
        for number, term in enumerate(terms):
            if number == 0 and is_alternative and self._last_group:
                self._add_alternative(term)
            else:
                self._add_group(term)
        if terms:
            self._or_is_open = False

    def _add_group(self, term: Term) -> None:
        self._last_group = {term: None}
        if term not in self._single_terms and self._term_count < MAX_TERMS:
            self._single_terms.add(term)
            self._groups.append(self._last_group)
            self._term_count += 1

    def _add_alternative(self, term: Term) -> None:
        if self._term_count >= MAX_TERMS or term in self._last_group:
            return
        if not self._groups or self._groups[-1] is not self._last_group:
            self._groups.append(self._last_group)  # it stands alone before: "a a OR b"
            self._term_count += 1
        elif len(self._last_group) == 1:
            self._single_terms.difference_update(self._last_group)
        self._last_group[term] = None
        self._term_count += 1

    def result(self) -> ParsedQuery:
        groups = [tuple(group) for group in self._groups]
        if not groups and self._symbols and not (self._tags or self._excluded_tags):
            # Nothing but signs: then the query asks for exactly these signs.
            groups = [(Term(sign, quoted=True),) for sign in list(self._symbols)[:MAX_TERMS]]
        required_tags = dict.fromkeys(tag for tags in self._tags if len(tags) == 1 for tag in tags)
        either_tags = [tuple(tags)[:MAX_TERMS] for tags in self._tags if len(tags) > 1]
        return ParsedQuery(
            tuple(groups),
            tuple(self._excluded)[:MAX_TERMS],
            tuple(required_tags)[:MAX_TERMS],
            " ".join(self._plain).strip(),
            tuple(either_tags[:MAX_TERMS]),
            tuple(self._excluded_tags)[:MAX_TERMS],
        )
