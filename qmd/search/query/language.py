"""
Parse the query language.

It has words, ``"phrases"``, ``-negation``, ``OR``, ``prefix*``, the fields ``title:``,
``description:``, ``path:`` and ``tag:``, and conditions on properties, such as ``status:draft`` and
``rating:>4`` (`qmd.values.conditions`). The signs may also be those of a Chinese keyboard or a word
processor: ``“phrases”``, ``「phrases」``, ``－negation``, ``title：``, ``prefix＊``.

Every string is a valid query. All else is text to search for: an unclosed quote, a ``-`` or ``OR``
on its own, brackets, ``AND`` inside a sentence, ``http://x`` as long as no document has a property
``http``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias, get_args

from qmd import lazy, values
from qmd.parse.segment import clean, has_token
from qmd.records import NamedTuple
from qmd.search.query.terms import Field, Term, split_terms

if TYPE_CHECKING:
    from qmd.values.conditions import PropertyCondition

    #: What narrows a query: a tag, or a condition on a property.
    Narrowing: TypeAlias = str | PropertyCondition

#: The most terms, negations, tags and conditions of a query; further ones are ignored. A query with
#: more is a pasted text.
MAX_TERMS = 64

#: An embedding model gets at most this many characters of a question. They are more than 512
#: tokens, the length at which most models cut; a whole pasted page would take half a minute.
MAX_QUESTION = 2000

_ITEM = lazy.pattern(
    r"""(?P<not>[-－])?
        (?:(?P<field>title|description|path|tag)[:：])?
        (?:(?:"(?P<phrase>[^"]*)" | [“”„＂](?P<curly>[^“”„＂]*)[“”＂] | 「(?P<corner>[^「」]*)」)
           (?=\s|$)
         | (?P<word>\S+))""",
    re.VERBOSE,
)

#: A query without these is words between blanks.
_MARKS = frozenset('-－:："“”„＂「」')
_FIELDS: dict[str | None, Field] = {name: name for name in get_args(Field)}


class ParsedQuery(NamedTuple):
    """
    The conditions that a document must meet, all of them.

    Attributes:
        groups: The document has at least one term of each group.
        excluded: It has none of these terms.
        tags: It has all these tags.
        text: The query in plain words, for an embedding model.
        either: It meets at least one tag or condition of each of these groups.
        none_of: It meets none of these tags and conditions.
    """

    groups: tuple[tuple[Term, ...], ...]
    excluded: tuple[Term, ...]
    tags: tuple[str, ...]
    text: str
    either: tuple[tuple[Narrowing, ...], ...] = ()
    none_of: tuple[Narrowing, ...] = ()

    @property
    def narrowed(self) -> bool:
        """Whether tags or conditions narrow the query."""
        return bool(self.tags or self.either or self.none_of)

    @property
    def only_narrows(self) -> bool:
        """Whether the query has nothing to find, only tags, conditions and what to exclude."""
        return not self.groups and (self.narrowed or bool(self.excluded))

    @property
    def property_keys(self) -> frozenset[str]:
        """The keys of the properties that the query asks for."""
        return frozenset(
            each.key for group in self.either for each in group if not isinstance(each, str)
        )

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of all groups, without duplicates."""
        return tuple(dict.fromkeys(term for group in self.groups for term in group))


@lru_cache(maxsize=16)  # `query` parses the same string in two places
def parse(query: str, keys: frozenset[str] = frozenset()) -> ParsedQuery:
    """
    Parse a query; never fails.

    Args:
        keys: The properties that documents have, of those in `possible_keys`. Other words with a
            colon are text.
    """
    builder = _QueryBuilder()
    items = list(_items(clean(query), keys))
    last = len(items) - 1
    for position, item in enumerate(items):
        if item.is_operator and 0 < position < last and builder.has_content:
            builder.add_operator(item)
        elif item.narrowing:
            builder.add_narrowing(item.narrowing, item.negated)
        else:
            builder.add_text(item)
    return builder.result()


def possible_keys(query: str) -> frozenset[str]:
    """The keys of what may be conditions on properties; at most `MAX_TERMS`."""
    if ":" not in query and "：" not in query:
        return frozenset()
    keys: set[str] = set()
    for match in values.conditions.POSSIBLE_KEY.finditer(clean(query)):
        keys.add(values.properties.fold_key(match[1]))
        if len(keys) == MAX_TERMS:
            break
    return frozenset(keys - {*_FIELDS, "tag", ""})


def _items(text: str, keys: frozenset[str]) -> Iterator[_Item]:
    if _MARKS.isdisjoint(text):
        yield from map(_Item, text.split())
        return
    position = 0
    while (match := _ITEM.search(text, position)) is not None:
        item = _read_condition(text, match.start(), keys) if keys else None
        if item is None:
            position = match.end()
            yield _read_item(match)
        else:
            position = item[1]
            yield item[0]


def _read_condition(text: str, start: int, keys: frozenset[str]) -> tuple[_Item, int] | None:
    """The condition that begins here, and where it ends; None if there is none."""
    match = values.conditions.CONDITION.match(text, start)
    condition = None if match is None else values.conditions.read_condition(match)
    if match is None or condition is None or condition.key not in keys:
        return None
    return _Item(narrowing=condition, negated=bool(match[1])), match.end()


class _Item(NamedTuple):
    """A word (a run of non-blanks), a phrase, or a tag or condition, with its sign and field."""

    word: str | None = None
    phrase: str | None = None
    field: Field | None = None
    narrowing: Narrowing = ""
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
    phrase = next(
        (text for text in match.group("phrase", "curly", "corner") if text is not None), None
    )
    if field == "tag":
        name = (phrase if phrase is not None else word).lstrip("#").strip()
        return _Item(narrowing=name, negated=negated) if name else _Item(match[0])
    return _Item(word, phrase, _FIELDS.get(field), negated=negated)


def _has_no_content(word: str) -> bool:
    """Whether the word consists of signs only, or is a field without a value."""
    return not has_token(word) or (
        word.endswith((":", "：")) and word.rstrip(":：") in {*_FIELDS, "tag"}
    )


class _QueryBuilder:
    """Builds a `ParsedQuery` from one item after another."""

    def __init__(self) -> None:
        self._or_is_open = False  # an OR still lacks its right side
        self._is_behind_narrowing = False
        self._groups: list[dict[Term, None]] = []
        self._single_terms: set[Term] = set()  # those in groups of one term
        self._last_group: dict[Term, None] = {}  # the left side of an OR
        self._term_count = 0
        self._excluded: dict[Term, None] = {}
        self._narrowings: list[dict[Narrowing, None]] = []
        self._excluded_narrowings: dict[Narrowing, None] = {}
        self._plain: list[str] = []
        self._symbols: dict[str, None] = {}

    @property
    def has_content(self) -> bool:
        """Whether an AND or OR would have a left side."""
        return bool(self._groups or self._excluded or self._narrowings or self._excluded_narrowings)

    def add_operator(self, item: _Item) -> None:
        self._or_is_open = self._or_is_open or item.word == "OR"

    def add_narrowing(self, narrowing: Narrowing, negated: bool) -> None:
        """
        Add a tag or condition.

        With OR it is an alternative to the tag or condition before it, never to words.
        """
        if negated:
            self._excluded_narrowings[narrowing] = None
        elif self._or_is_open and self._is_behind_narrowing:
            self._narrowings[-1][narrowing] = None
        else:
            self._narrowings.append({narrowing: None})
        self._or_is_open, self._is_behind_narrowing = False, not negated

    def add_text(self, item: _Item) -> None:
        terms = item.terms()
        if item.phrase is None and not terms:
            self._symbols[item.plain] = None
        is_alternative = self._or_is_open and not self._is_behind_narrowing
        self._is_behind_narrowing = False
        if item.negated:
            self._excluded.update(dict.fromkeys(terms))
            self._or_is_open = False
            return
        if terms or item.phrase is None:
            self._plain.append(item.plain)
        for position, term in enumerate(terms):
            if position == 0 and is_alternative and self._last_group:
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
            self._groups.append(self._last_group)  # its term is a group already: "a a OR b"
            self._term_count += 1
        elif len(self._last_group) == 1:
            self._single_terms.difference_update(self._last_group)
        self._last_group[term] = None
        self._term_count += 1

    def result(self) -> ParsedQuery:
        groups = [tuple(group) for group in self._groups]
        if not groups and self._symbols and not (self._narrowings or self._excluded_narrowings):
            # The query has signs only, so these signs are what to find.
            groups = [(Term(sign, quoted=True),) for sign in list(self._symbols)[:MAX_TERMS]]
        tags: dict[str, None] = {}
        either: list[tuple[Narrowing, ...]] = []
        for group in self._narrowings:
            first, *others = group
            if others or not isinstance(first, str):
                either.append(tuple(group)[:MAX_TERMS])
            else:
                tags[first] = None
        return ParsedQuery(
            tuple(groups),
            tuple(self._excluded)[:MAX_TERMS],
            tuple(tags)[:MAX_TERMS],
            " ".join(self._plain).strip(),
            tuple(dict.fromkeys(either))[:MAX_TERMS],
            tuple(self._excluded_narrowings)[:MAX_TERMS],
        )
