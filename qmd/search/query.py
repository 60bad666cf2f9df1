"""
Parses the query language: a string into terms, exclusions, tags, conditions and dates.

It has words, ``"phrases"``, ``-negation``, ``OR``, ``prefix*``, the fields ``title:``,
``description:``, ``path:`` and ``tag:``, and conditions on properties, such as ``status:draft`` and
``rating:>4`` (`qmd.values.properties`). The signs may also be those of a Chinese keyboard or a word
processor: ``“phrases”``, ``「phrases」``, ``－negation``, ``title：``, ``prefix＊``.

Every string is a valid query. All else is text to search for: an unclosed quote, a ``-`` or ``OR``
on its own, brackets, ``AND`` inside a sentence, ``http://x`` as long as no document has a property
``http``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from qmd import lazy, parse, values
from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.parse.segment import cjk_runs, clean, has_token, is_cjk, normalize, without_breaks
from qmd.records import NamedTuple
from qmd.system import clock

if TYPE_CHECKING:
    from qmd.values.properties import PropertyCondition


# --- dates and spans of time as people write them ---------------------------------------
# Such as ``7d``, ``昨天`` and ``2026-11``. A period stands for its beginning: ``2026-11`` for 1
# November, ``last week`` for its Monday. Days begin in the local time zone.

#: What is shown where a text is neither a date nor a span.
_HINT = "Write 2026-11-20, 2026-11, yesterday, 7d or 2026-11-20T18:00+08:00."
# These are texts of patterns, compiled when the first date comes: few searches have one.
_ISO = r"\d{4}(-\d\d(-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?)?)?"
_HOURS = {
    hours: rf"(?:(?:last|past) |最近|过去)?(\d{{1,6}}) ?(?:{names})(?: ago|以?前)?"
    for hours, names in (
        (1 / 60, "m|min|minutes?|分钟"),
        (1, "h|hours?|个?小时"),
        (24, "d|days?|天"),
        (7 * 24, "w|weeks?|周|个?星期"),
        (30 * 24, "mo|months?|个月"),
        (365 * 24, "y|years?|年"),
    )
}
_DAYS_AGO = {"today": 0, "今天": 0, "yesterday": 1, "昨天": 1, "前天": 2}
_PERIODS = {
    name: (unit, back)
    for unit, back, names in (
        ("week", 0, "this week|本周|这周"),
        ("week", 1, "last week|上周"),
        ("month", 0, "this month|本月|这个月"),
        ("month", 1, "last month|上月|上个月"),
        ("year", 0, "this year|今年"),
        ("year", 1, "last year|去年"),
    )
    for name in names.split("|")
}


def filter_date(text: str, now: datetime | None = None) -> str:
    """
    The day (``2026-11-20``) or the time that a filter compares documents with.

    Args:
        text: A date, a time, or a span before ``now``; one of days or more means a whole day.
        now: With a time zone; None for the current time.

    Returns:
        A time of day has an offset: the local one if none was written.

    Raises:
        InputError: The text is neither a date nor a span.
    """
    now = now or datetime.now().astimezone()
    before = span(text)
    if before is None:
        return _date_or_time(text, now)
    try:
        start = now - before
    except OverflowError:
        return str(date.min)
    if before >= timedelta(days=1):
        return str(start.date())
    return start.astimezone(timezone.utc).isoformat(timespec="seconds")


def moment(text: str, now: datetime) -> str:
    """
    The time that ``text`` means, as the database stores times.

    Args:
        text: A date, a time (local without an offset), or a span, which is exact.
        now: With a time zone.

    Returns:
        "" for a time before all that the database can store.

    Raises:
        InputError: The text is neither a date nor a span.
    """
    before = span(text)
    try:
        start = now - before if before is not None else clock.parse(_date_or_time(text, now))
        utc = start.astimezone(timezone.utc).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return ""
    return utc.replace("+00:00", "Z")


def span(text: str) -> timedelta | None:
    """The length of a span such as ``7d``, ``2 weeks`` or ``3天``; None if the text is none."""
    text = text.strip().lower()
    for hours, pattern in _HOURS.items():
        if match := re.fullmatch(pattern, text, re.ASCII):
            return timedelta(hours=int(match[1]) * hours)
    return None


def _date_or_time(text: str, now: datetime) -> str:
    """Raises InputError."""
    text = text.strip()
    if re.fullmatch(_ISO, text):
        full = text + "-01-01"[len(text) - 4 :] if len(text) < 10 else text
        try:
            clock.parse(full)
        except ValueError:
            raise _unreadable(text, "{} is not a day of the calendar") from None
        return _with_offset(full)
    today, name = now.astimezone().date(), text.lower()
    if name in _DAYS_AGO:
        return str(today - timedelta(days=_DAYS_AGO[name]))
    if name in _PERIODS:
        return str(_beginning(*_PERIODS[name], today))
    written, reason = parse.dates.read_date(text)
    if written is None:
        raise _unreadable(text, reason)
    return _with_offset(written)


def _with_offset(written: str) -> str:
    """A date as it is, and a time with the local offset unless it has one."""
    if len(written) == len("2026-11-20"):
        return written
    time = clock.parse(written)
    try:
        return written if time.tzinfo is not None else time.astimezone().isoformat()
    except (OverflowError, OSError, ValueError):  # the first and last days that Python knows
        return written


def _beginning(unit: str, back: int, today: date) -> date:
    """The first day of the present week, month or year, or of the one ``back`` before."""
    if unit == "week":
        return today - timedelta(days=today.weekday() + 7 * back)
    first = today.replace(day=1)
    if unit == "month":
        return (first - timedelta(days=1)).replace(day=1) if back else first
    return date(today.year - back, 1, 1)


def _unreadable(text: str, reason: str) -> InputError:
    shown = text if len(text) <= 60 else f"{text[:60]}…"
    return InputError(engine_text(reason.replace("{}", "{date}"), date=repr(shown)), hint=_HINT)


# --- terms ------------------------------------------------------------------------------

Field = Literal["title", "description", "path"]
#: What most words of a text are: words of letters, or pairs of Chinese characters.
Script = Literal["alphabet", "characters"]

#: Full text searches for at most this many characters of a literal; the whole literal is then
#: checked in the texts of the hits. A phrase of 50,000 words would take FTS5 a minute.
LEAD = 64

_WORD_PART = lazy.pattern(r"[^\W_]+")
#: Names that differ from another word by a sign alone: "C++", "C#", ".NET". Behind Chinese only
#: the last one counts: "周报.md" is a file.
_SIGNED_NAME = lazy.pattern(
    r"(?<![A-Za-z0-9])[A-Za-z](?:\+\+|#)|(?<![\w.])\.[A-Za-z][A-Za-z0-9]*"
    r"|(?<=[\u3040-\u9fff])\.[Nn][Ee][Tt](?![A-Za-z0-9])"
)
#: The signs of such a name as a Chinese keyboard writes them.
_WIDE_SIGNS = lazy.pattern(r"(?<=[A-Za-zＡ-Ｚａ-ｚ])(?:＋＋|＃)")


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
    if not word.isascii():
        word = _WIDE_SIGNS.sub(lambda match: normalize(match[0]), without_breaks(word))
    spaced = "".join(character if _belongs_to_term(character) else " " for character in word)
    pieces = [_strip(normalize(piece)) for piece in spaced.split()]
    terms = [Term(piece, field=field) for piece in pieces if piece]
    if is_prefix and terms:
        terms[-1] = Term(terms[-1].text, prefix=True, field=field)
    return terms


def loose_parts(term: Term) -> list[str]:
    """
    Split a term for loose matching into words and pairs of Chinese characters.

    A single Chinese character between other words says little, so it is left out. A name such as
    ``C++`` is a word with its signs.
    """
    if term.text.isascii() and term.text.isalnum():
        return [term.text]
    text = normalize(term.text)
    names = _SIGNED_NAME.findall(text)
    others = _SIGNED_NAME.sub(" ", text) if names else text
    return list(dict.fromkeys([*names, *_plain_parts(others, term.text)]))


def _plain_parts(text: str, whole: str) -> list[str]:
    """The words and pairs of a text without their signs; a single character if it is the whole."""
    if text.isascii() and text.isalnum():
        return [text]
    parts: dict[str, None] = {}
    for run in _WORD_PART.findall(text):
        position = 0
        for match in cjk_runs(run):
            parts[run[position : match.start()]] = None
            characters = match[0]
            for start in range(len(characters) - 1):
                parts[characters[start : start + 2]] = None
            if len(characters) == 1 and characters == whole:
                parts[characters] = None
            position = match.end()
        parts[run[position:]] = None
    return [part for part in parts if part]


def text_parts(text: str) -> list[str]:
    """
    The words and pairs of Chinese characters of a text; see `loose_parts`.

    A text about ``C++`` holds the word "C", too.
    """
    parts: list[str] = []
    for word in text.split():
        if not word.isalnum():
            parts += _SIGNED_NAME.findall(normalize(word))
        parts += _plain_parts(normalize(word), word)
    return parts


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
    """Remove the signs around a piece, except those of names such as ``C++`` and ``.NET``."""
    start, end = 0, len(piece)
    while start < end and not has_token(piece[start]):
        start += 1
    while end > start and not has_token(piece[end - 1]):
        end -= 1
    if piece[end : end + 2] == "++":
        end += 2
    elif piece[end : end + 1] == "#" and _SIGNED_NAME.match(piece, end - 1):
        end += 1
    if start and _SIGNED_NAME.match(piece, start - 1):
        start -= 1
    return piece[start:end]


if TYPE_CHECKING:
    #: What narrows a query: a tag, or a condition on a property.
    Narrowing: TypeAlias = str | PropertyCondition

# --- the whole query --------------------------------------------------------------------

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
def parse_string(query: str, keys: frozenset[str] = frozenset()) -> ParsedQuery:
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
    for match in values.properties.POSSIBLE_KEY.finditer(clean(query)):
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
    match = values.properties.CONDITION.match(text, start)
    condition = None if match is None else values.properties.read_condition(match)
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
        self._is_after_narrowing = False
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
        elif self._or_is_open and self._is_after_narrowing:
            self._narrowings[-1][narrowing] = None
        else:
            self._narrowings.append({narrowing: None})
        self._or_is_open, self._is_after_narrowing = False, not negated

    def add_text(self, item: _Item) -> None:
        terms = item.terms()
        if item.phrase is None and not terms:
            self._symbols[item.plain] = None
        is_alternative = self._or_is_open and not self._is_after_narrowing
        self._is_after_narrowing = False
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
