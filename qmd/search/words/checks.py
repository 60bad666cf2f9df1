"""
Check literals and exclusions in the raw text of a document.

The index holds no signs, spacing or word endings, so it matches more than such terms ask for. Text
and literal are both normalized (NFKC, no letter case), and any run of blanks equals any other. A
literal matches only where the index has the start of a word: ``als*`` is not in ``tutorials``. A
sign behind a backslash of Markdown stands for itself, too: ``snake\\_case`` is ``snake_case``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache, lru_cache
from itertools import starmap
from typing import TYPE_CHECKING

from qmd import lazy
from qmd.parse.segment import SIGNS, fold, is_cjk, normalize
from qmd.records import NamedTuple
from qmd.search.query.language import ParsedQuery
from qmd.search.query.terms import Field, Term
from qmd.search.words.expressions import any_distinct, excluded_expressions, expression, needs_check

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

#: Before a text is folded, it is searched for this many leading characters of a literal.
QUICK = 64

_ESCAPED = lazy.pattern(r"\\([!-/:-@\[-`{-~])")


class RawCheck(NamedTuple):
    """
    A condition on the raw text of a document: it must hold one of the patterns.

    Attributes:
        patterns: Pairs of the field to look in (None: title and text) and the pattern.
        indexed_ids: The documents that pass without a look at their text, because the index is
            sure of them. If ``negated``: the only documents that can hold a pattern.
        negated: The document must hold none of the patterns instead.
    """

    patterns: tuple[tuple[Field | None, Pattern], ...]
    indexed_ids: frozenset[int] = frozenset()
    negated: bool = False


class Exclusions(NamedTuple):
    """The documents that a query excludes: by the index, and by checks of the raw text."""

    indexed_ids: frozenset[int]
    checks: tuple[RawCheck, ...]

    def admit(self, reader: Reader, document_id: int) -> bool:
        """Whether a document holds nothing that the query excludes."""
        return document_id not in self.indexed_ids and passes(reader, document_id, self.checks)


def exclusions(reader: Reader, query: ParsedQuery) -> Exclusions | None:
    """Look up what a query excludes; None if it excludes nothing."""
    if not query.excluded:
        return None
    indexed_ids = frozenset(excluded_ids(reader, query))
    return Exclusions(indexed_ids, tuple(_negated_checks(reader, query)))


def excluded_ids(reader: Reader, query: ParsedQuery) -> list[int]:
    """The ids of the documents that hold an excluded term, for terms that need no check."""
    phrases = list(excluded_expressions(query.excluded))
    return reader.full_text.matching_ids(any_distinct(phrases)) if phrases else []


def raw_checks(reader: Reader, query: ParsedQuery) -> list[RawCheck]:
    """The checks that a document must pass to be an exact hit."""
    checks = []
    for group in query.groups:
        unsure = [term for term in group if needs_check(term) or expression(term) is None]
        if unsure:
            sure = [term for term in group if term not in unsure]
            checks.append(RawCheck(_patterns(unsure), _indexed_ids(reader, sure)))
    return checks + _negated_checks(reader, query)


def _indexed_ids(reader: Reader, terms: Sequence[Term]) -> frozenset[int]:
    """The ids of the documents that hold one of the terms according to the index."""
    expressions = [e for e in map(expression, terms) if e is not None]
    matching = reader.full_text.matching_ids(any_distinct(expressions)) if expressions else ()
    return frozenset(matching)


def _negated_checks(reader: Reader, query: ParsedQuery) -> list[RawCheck]:
    checks = []
    for term in query.excluded:
        if needs_check(term):
            match = expression(term)
            holding = (
                reader.full_text.matching_ids(match)
                if match
                else reader.documents.latest_ids(reader.all_documents)
            )
            checks.append(RawCheck(_patterns([term]), frozenset(holding), negated=True))
    return checks


def _patterns(terms: Sequence[Term]) -> tuple[tuple[Field | None, Pattern], ...]:
    patterns = [(term.field, pattern(term.text)) for term in terms]
    patterns += [  # a plain word may also be in the path
        ("path", pattern(term.text))
        for term in terms
        if term.prefix and not (term.field or term.literal or term.chinese)
    ]
    return tuple(patterns)


def passes(reader: Reader, document_id: int, checks: Sequence[RawCheck]) -> bool:
    """Whether a document passes all checks. Each field of the document is read at most once."""
    if not checks:
        return True

    @cache
    def read(field: Field | None) -> str:
        return reader.documents.searched_text(document_id, field)

    @cache
    def as_written(field: Field | None) -> RawText:
        return raw_text(read(field))

    @cache
    def as_shown(field: Field | None) -> RawText | None:
        shown = _without_escapes(read(field))
        return None if shown is None else raw_text(shown)

    def is_held(field: Field | None, pattern: Pattern) -> bool:
        if holds(as_written(field), pattern):
            return True
        shown = as_shown(field)
        return shown is not None and holds(shown, pattern)

    def passes_one(check: RawCheck) -> bool:
        if (document_id in check.indexed_ids) is not check.negated:
            return True
        return any(starmap(is_held, check.patterns)) is not check.negated

    return all(map(passes_one, checks))


def _without_escapes(raw: str) -> str | None:
    """The text without the backslashes before signs; None if it has none."""
    return _ESCAPED.sub(r"\1", raw) if "\\" in raw and _ESCAPED.search(raw) else None


class RawText(NamedTuple):
    """
    A text in two forms of equal length: ``folded``, and ``capitals`` with its letter case.

    The character at a position of one form is the character at that position of the other.
    """

    folded: str
    capitals: str


class Pattern(NamedTuple):
    """An expression to search a folded text for; if ``word``, a match must begin a word."""

    expression: re.Pattern[str] | str
    word: bool


def raw_text(raw: str) -> RawText:
    """Prepare a text for `holds`."""
    normal = normalize(raw)
    folded = normal.casefold()
    if len(folded) != len(normal):
        normal = "".join(
            character if len(character.casefold()) == 1 else character.casefold()
            for character in normal
        )
    return RawText(folded, normal)


def pattern(literal: str) -> Pattern:
    """Compile a literal for `holds`."""
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
    """Whether a word begins at ``position``; each part of a CamelCase name is a word, too."""
    if position == 0 or not _in_word(text.folded[position - 1]):
        return True
    previous, first, following = (
        text.capitals[position - 1],
        *text.capitals[position : position + 2].ljust(2),
    )
    return first.isupper() and (not previous.isupper() or following.islower())


def _in_word(character: str) -> bool:
    # The index has each CJK character as a word, and each sign as a blank.
    return character.isalnum() and not (is_cjk(character) or SIGNS.match(character))


def scan_documents(
    reader: Reader, literals: Sequence[Sequence[str]], selection: Selection
) -> Iterator[int]:
    """
    Read all texts, and yield in order the ids of documents that hold one literal of each group.

    This is for literals that the index does not hold: those without any letter or digit, such
    as ``->``.

    Args:
        literals: Groups of alternatives.
    """
    quick_checks = [re.compile("|".join(map(_unfolded, group))) for group in literals]
    patterns = [[pattern(literal) for literal in group] for group in literals]

    def is_held(raw: str) -> bool:
        # Folding takes many times longer than this search: only texts that pass it are folded.
        return all(check.search(raw) for check in quick_checks) and _holds_each_group(raw, patterns)

    for document_id, raw in reader.documents.names_and_texts(selection):
        shown = _without_escapes(raw)
        if is_held(raw) or (shown is not None and is_held(shown)):
            yield document_id


def _holds_each_group(raw: str, groups: Sequence[Sequence[Pattern]]) -> bool:
    """Whether a text holds one pattern of each group."""
    text = raw_text(raw)
    return all(any(holds(text, pattern) for pattern in group) for group in groups)


def _unfolded(literal: str) -> str:
    """
    A regular expression that matches every raw text whose folded form has the literal.

    It matches some other texts too, so the texts it lets through are still to be checked.
    """
    single_origins, expanding_origins = _origins()
    literal = fold(literal)[:QUICK]
    words = [
        "".join(
            f"[{re.escape(character + single_origins.get(character, ''))}]" for character in word
        )
        for word in literal.split()
    ]
    expanding = "".join(
        dict.fromkeys("".join(expanding_origins.get(character, "") for character in literal))
    )
    return r"\s+".join(words) + (f"|[{re.escape(expanding)}]" if expanding else "")


@lru_cache(maxsize=1)
def _origins() -> tuple[dict[str, str], dict[str, str]]:
    """
    Map each folded character to the characters that it may come from.

    The first result has the characters that fold to this character alone. The second has
    those that fold to several characters, this one among them (``.`` → ``…``). Only the basic
    plane is considered: the other planes have no signs that fold.
    """
    single: dict[str, str] = {}
    expanding: dict[str, str] = {}
    for code_point in (*range(0x80, 0xD800), *range(0xF900, 0x10000)):
        character = chr(code_point)
        folded = fold(character)
        if len(folded) == 1:
            if folded != character:
                single[folded] = single.get(folded, "") + character
        else:
            for part in dict.fromkeys(folded):
                expanding[part] = expanding.get(part, "") + character
    return single, expanding
