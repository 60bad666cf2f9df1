"""Computes expressions for one note after the other, with a budget of steps."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from enum import IntEnum
from typing import Any, NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import InputError
from qmd.search.views.expressions import Expression
from qmd.values.days import formatted_date
from qmd.values.properties import fold_key, fold_value, number_of
from qmd.values.text import fold

#: Of one view: some seconds at most.
MAX_STEPS = 3_000_000

_MAX_TEXT = 10_000  # characters of a computed text
_MAX_LIST = 2_000
_LOOKED_UP = 500  # steps of a question to the database
_DATE = re.compile(
    r"(\d{4})-(\d\d)(?:-(\d\d))?(?:[T ](\d\d):(\d\d)(?::(\d\d)(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?",
    re.ASCII,
)
_LINK = re.compile(r"\[\[([^\[\]|\n]{1,300})(?:\|([^\[\]\n]{1,300}))?\]\]")
_SPAN = re.compile(r"(-?\d{1,7}(?:\.\d{1,3})?)\s{0,9}([A-Za-z]{1,7})")
_DAYS_OF = {
    **dict.fromkeys(("s", "sec", "second"), 1 / 86_400),
    **dict.fromkeys(("m", "min", "minute"), 1 / 1_440),
    **dict.fromkeys(("h", "hr", "hour"), 1 / 24),
    **dict.fromkeys(("d", "day"), 1.0),
    **dict.fromkeys(("w", "wk", "week"), 7.0),
    **dict.fromkeys(("mo", "month"), 30.0),
    **dict.fromkeys(("y", "yr", "year"), 365.0),
}


class NoteName(NamedTuple):
    """A link to a note by its name or path, and what it shows."""

    target: str
    shown: str = ""

    @property
    def key(self) -> str:
        """What is the same for all links to one note."""
        name = self.target.partition("#")[0].rpartition("/")[2]
        return fold(name.removesuffix(".md"))


class ViewNote(NamedTuple):
    """
    What expressions know of a note.

    Attributes:
        path: In its collection.
        properties: By `fold_key` of their names; values as JSON has them.
        tags: Without ``#``.
        date: Its own date, ISO 8601; None without one.
    """

    id: int
    collection: str
    path: str
    title: str
    modified: datetime
    bytes: int
    date: str | None
    properties: Mapping[str, object]
    tags: Sequence[str]

    @property
    def file(self) -> str:
        return f"{self.collection}/{self.path}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2].rsplit(".", 1)[0]

    @property
    def folder(self) -> str:
        return self.path.rpartition("/")[0]

    @property
    def link(self) -> NoteName:
        return NoteName(self.path.removesuffix(".md"), self.name)


class _File(NamedTuple):
    """The value of ``file``."""

    note: ViewNote


class ViewContext(NamedTuple):
    """
    What expressions know besides a note.

    Attributes:
        this: The note that holds the view.
        linking: Gives the ids of the notes that link to a note.
        links: Gives the targets of the links in a note by its id, as they are written.
        formulas: Expressions by name.
    """

    now: datetime
    this: ViewNote | None
    linking: Callable[[str], frozenset[int]]
    links: Callable[[int], Sequence[str]]
    formulas: Mapping[str, Expression]


class Computer:
    """Computes expressions; all of them together take at most `MAX_STEPS` steps."""

    def __init__(self, context: ViewContext) -> None:
        self._context = context
        self._steps = 0
        self._inside: list[str] = []  # the formulas that are being computed

    def value(self, node: Expression, note: ViewNote) -> Any:
        """
        Raises:
            InputError: A function is not known, or the budget is spent.
        """
        self._steps += 1
        if self._steps > MAX_STEPS:
            raise InputError(
                "This view takes too long.", hint="Name a folder or a tag to begin with."
            )
        return _COMPUTED[node.kind](self, node, note)

    def name(self, node: Expression, note: ViewNote) -> Any:
        name = str(node.value)
        if name == "file":
            return _File(note)
        if name == "this":
            return self._context.this and _File(self._context.this)
        if name == "title":
            return note.properties.get("title") or note.title
        return _read(note.properties.get(fold_key(name)))

    def member(self, node: Expression, note: ViewNote) -> Any:
        first, name = node.parts[0], str(node.value)
        if first.kind == "name":
            match first.value:
                case "note":
                    return _read(note.properties.get(fold_key(name)))
                case "formula":
                    return self._formula(name, note)
                case "rows":  # of a group of Dataview: here each row shows its own
                    return self.name(Expression("name", name), note)
                case "this" if self._context.this is not None and name != "file":
                    return _read(self._context.this.properties.get(fold_key(name)))
                case "this":
                    return self._context.this and _File(self._context.this)
        value = self.value(first, note)
        if isinstance(value, _File):
            if name in ("links", "outlinks"):
                self._steps += _LOOKED_UP
                return [NoteName(each) for each in self._context.links(value.note.id)[:_MAX_LIST]]
            return _member_of_file(value.note, name)
        if isinstance(value, list):
            return (
                float(len(value)) if name == "length" else [_member(each, name) for each in value]
            )
        return _member(value, name)

    def index(self, node: Expression, note: ViewNote) -> Any:
        value, key = (self.value(part, note) for part in node.parts)
        if isinstance(value, list) and isinstance(key, float) and key == int(key):
            return value[int(key)] if 0 <= key < len(value) else None
        if isinstance(value, dict) and isinstance(key, str):
            return _member(value, key)
        if isinstance(value, _File) and isinstance(key, str):
            return _read(value.note.properties.get(fold_key(key)))
        return None

    def unary(self, node: Expression, note: ViewNote) -> Any:
        value = self.value(node.parts[0], note)
        if node.value == "!":
            return not value
        return -value if isinstance(value, (float, timedelta)) else None

    def binary(self, node: Expression, note: ViewNote) -> Any:
        sign, (left, right) = str(node.value), node.parts
        if sign in ("&&", "||"):
            first = self.value(left, note)
            if bool(first) == (sign == "||"):
                return first
            return self.value(right, note)
        values = self.value(left, note), self.value(right, note)
        self._count(values)
        return _combined(sign, *values)

    def call(self, node: Expression, note: ViewNote) -> Any:
        name = str(node.value)
        if name in ("if", "choice"):
            chosen = 1 if self._part(node, 0, note) else 2
            return self._part(node, chosen, note)
        if name == "date" and len(node.parts) == 1 and node.parts[0].kind == "name":
            word = _day(str(node.parts[0].value).lower(), self._context.now)
            if word is not None:
                return word
        if name in ("today", "now"):
            return _day(name, self._context.now)
        return self._applied(name, [self.value(part, note) for part in node.parts])

    def method(self, node: Expression, note: ViewNote) -> Any:
        first, *rest = [self.value(part, note) for part in node.parts]
        name = str(node.value)
        if isinstance(first, _File):
            return self._asked_of(first.note, name, rest)
        if name == "contains" and isinstance(first, list):
            return any(_is_same(each, rest[0]) for each in first) if rest else False
        return self._applied(name, [first, *rest])

    def _applied(self, name: str, values: list[Any]) -> Any:
        function = _FUNCTIONS.get(name)
        if function is None:
            raise InputError(engine_text("A view has no function {name}.", name=name[:60]))
        self._count(values)
        try:
            return function(*values)
        except TypeError:  # it takes more or fewer values, or others
            return None

    def _count(self, values: Sequence[Any]) -> None:
        """Long values take more than one step."""
        self._steps += sum(len(each) for each in values if isinstance(each, list))
        self._steps += sum(len(each) for each in values if isinstance(each, str)) // 100

    def _part(self, node: Expression, number: int, note: ViewNote) -> Any:
        return self.value(node.parts[number], note) if number < len(node.parts) else None

    def _formula(self, name: str, note: ViewNote) -> Any:
        formula = self._context.formulas.get(name)
        if formula is None or name in self._inside:
            return None
        self._inside.append(name)
        try:
            return self.value(formula, note)
        finally:
            self._inside.pop()

    def _has_link(self, note: ViewNote, target: Any) -> bool:
        if isinstance(target, _File):
            target = target.note.link
        text = target.target if isinstance(target, NoteName) else str(target or "")
        self._steps += _LOOKED_UP
        return note.id in self._context.linking(text)

    def _asked_of(self, note: ViewNote, name: str, values: list[Any]) -> Any:
        """What a method of ``file`` gives."""
        first = values[0] if values else None
        match name:
            case "infolder":
                return _is_in(note, str(first or "").strip("/"))
            case "hastag":
                return any(_has_tag(note, str(each)) for each in values)
            case "haslink":
                return self._has_link(note, first)
            case "hasproperty":
                return fold_key(str(first)) in note.properties
            case "aslink":
                return note.link
        return self._applied(name, [note.link, *values])


def _is_in(note: ViewNote, folder: str) -> bool:
    """Whether a note lies in a folder, or is the note of this path."""
    if not folder or note.path.startswith(f"{folder}/"):
        return True
    return note.path.removesuffix(".md") == folder.removesuffix(".md")


def _has_tag(note: ViewNote, tag: str) -> bool:
    """Whether a note has a tag or one below it."""
    name = tag.lstrip("#").lower()
    tags = [each.lower() for each in note.tags]
    return any(each == name or each.startswith(f"{name}/") for each in tags)


_COMPUTED: Mapping[str, Callable[[Computer, Expression, ViewNote], Any]] = {
    "literal": lambda computer, node, note: node.value,
    "link": lambda computer, node, note: _link(f"[[{node.value}]]"),
    "tag": lambda computer, node, note: f"#{node.value}",
    "list": lambda computer, node, note: [computer.value(part, note) for part in node.parts],
    "name": Computer.name,
    "member": Computer.member,
    "index": Computer.index,
    "unary": Computer.unary,
    "binary": Computer.binary,
    "call": Computer.call,
    "method": Computer.method,
}


# --- values --------------------------------------------------------------------------


def _read(value: object) -> Any:
    """A value of a property as expressions have it."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, (int, float)):
        return _number(value)
    if isinstance(value, str):
        return _link(value) or value
    if isinstance(value, (list, tuple)):
        return [_read(each) for each in value[:_MAX_LIST]]
    return value


def _number(value: float) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _link(text: str) -> NoteName | None:
    match = _LINK.fullmatch(text.strip()) if text.lstrip().startswith("[[") else None
    return None if match is None else NoteName(match[1].strip(), (match[2] or "").strip())


def _member(value: Any, name: str) -> Any:
    """A member of a value that is no file; None if it has no such member."""
    if isinstance(value, dict):
        key = fold_key(name)
        return next(
            (_read(each) for each_key, each in value.items() if fold_key(each_key) == key), None
        )
    if isinstance(value, NoteName):
        return _read(value.target) if name in ("path", "target") else None
    if isinstance(value, timedelta):
        unit = _SECONDS.get(name)
        return None if unit is None else value.total_seconds() / unit
    if isinstance(value, str) and name == "length":
        return float(len(value))
    moment = to_date(value)
    if moment is None:
        return None
    if name in ("year", "month", "day", "hour", "minute", "second"):
        return float(getattr(moment, name))
    year, week, weekday = moment.isocalendar()
    named = {"weekyear": year, "week": week, "weekday": weekday}.get(name)
    return None if named is None else float(named)


_SECONDS = {"days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}


def _member_of_file(note: ViewNote, name: str) -> Any:
    member = _FILE_MEMBERS.get(name.lower())
    if member is None:
        raise InputError(engine_text("A view does not know {name}.", name=f"file.{name[:60]}"))
    return member(note)


def _created(note: ViewNote) -> datetime:
    return to_date(note.date) or note.modified


def _day_in_name(note: ViewNote) -> datetime | None:
    match = _DATE.search(note.name)
    return to_date(match[0]) if match else to_date(note.date)


_FILE_MEMBERS: Mapping[str, Callable[[ViewNote], Any]] = {
    "name": lambda note: note.name,
    "basename": lambda note: note.name,
    "link": lambda note: note.link,
    "file": lambda note: note.link,
    "path": lambda note: note.path,
    "folder": lambda note: note.folder,
    "ext": lambda note: note.path.rpartition("/")[2].partition(".")[2],
    "size": lambda note: float(note.bytes),
    "mtime": lambda note: note.modified,
    "mday": lambda note: _midnight(note.modified),
    "ctime": _created,
    "cday": lambda note: _midnight(_created(note)),
    "day": _day_in_name,
    "tags": lambda note: [f"#{tag}" for tag in note.tags],
    "etags": lambda note: [f"#{tag}" for tag in note.tags],
    "aliases": lambda note: _listed(_read(note.properties.get("aliases"))),
    "frontmatter": lambda note: dict(note.properties),
    "properties": lambda note: dict(note.properties),
}


def to_date(value: Any) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime.combine(value, time())
    match = _DATE.fullmatch(value.strip()) if isinstance(value, str) and len(value) < 40 else None
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(each or 0) for each in match.groups())
    try:
        return datetime(year, month, day or 1, hour, minute, second)
    except ValueError:
        return None


def to_span(value: Any) -> timedelta | None:
    if isinstance(value, timedelta):
        return value
    if not isinstance(value, str) or len(value) > 100:
        return None
    days = 0.0
    has_unit = False
    for number, unit in _SPAN.findall(value):
        of_unit = _DAYS_OF.get("mo" if unit == "M" else unit.lower()) or _DAYS_OF.get(
            unit.lower().rstrip("s")
        )
        if of_unit is None:
            return None
        days, has_unit = days + float(number) * of_unit, True
    return timedelta(days=days) if has_unit else None


def _day(word: str, now: datetime) -> datetime | None:
    today = _midnight(now)
    week = today - timedelta(days=today.weekday())
    month, year = today.replace(day=1), today.replace(month=1, day=1)
    next_month = (month + timedelta(days=31)).replace(day=1)
    return {
        "now": now,
        "today": today,
        "tomorrow": today + timedelta(days=1),
        "yesterday": today - timedelta(days=1),
        "sow": week,
        "eow": week + timedelta(days=6),
        "som": month,
        "eom": next_month - timedelta(days=1),
        "soy": year,
        "eoy": today.replace(month=12, day=31),
    }.get(word)


def _midnight(moment: datetime) -> datetime:
    return datetime.combine(moment.date(), time())


def _is_same(left: Any, right: Any) -> bool:
    """Whether two values are equal: links by their note, tags with and without ``#``."""
    if isinstance(left, (NoteName, _File)) or isinstance(right, (NoteName, _File)):
        keys = _key_of(left), _key_of(right)
        return None not in keys and keys[0] == keys[1]
    if isinstance(left, datetime) or isinstance(right, datetime):
        return None not in (left, right) and to_date(left) == to_date(right)
    if isinstance(left, str) and isinstance(right, str):
        return left.removeprefix("#") == right.removeprefix("#")
    left, right = _as_number(left, right), _as_number(right, left)
    return type(left) is type(right) and bool(left == right)


def _key_of(value: Any) -> str | None:
    """`NoteName.key` of a link, of a file, or of a text that is a name; None of anything else."""
    if isinstance(value, _File):
        value = value.note.link
    if isinstance(value, str):
        value = NoteName(value)
    return value.key if isinstance(value, NoteName) else None


def _as_number(value: Any, other: Any) -> Any:
    """A text beside a number: the number that it is, as in searches."""
    if isinstance(value, str) and isinstance(other, float):
        number = number_of(fold_value(value))
        return value if number is None else number
    return value


def _combined(sign: str, left: Any, right: Any) -> Any:
    if sign in ("=", "=="):
        return _is_same(left, right)
    if sign == "!=":
        return not _is_same(left, right)
    if sign in ("<", "<=", ">", ">="):
        if left is None or right is None:
            return False
        first, second = _pair(_as_number(left, right), _as_number(right, left))
        kinds = {first[0], second[0]}
        if Kind.NUMBER in kinds and kinds & {Kind.TEXT, Kind.NOTHING}:
            return False
        return {
            "<": first < second,
            "<=": first <= second,
            ">": first > second,
            ">=": first >= second,
        }[sign]
    return _calculated(sign, left, right)


def _calculated(sign: str, left: Any, right: Any) -> Any:
    try:
        if isinstance(left, float) and isinstance(right, float):
            return _number(_ARITHMETIC[sign](left, right))
        if isinstance(left, timedelta):
            return _calculated_span(sign, left, right)
        moment = to_date(left)
        if moment is not None and sign in "+-":
            return _calculated_date(sign, moment, right)
    except (ZeroDivisionError, OverflowError):
        return None
    if sign != "+":
        return None
    if isinstance(left, list) or isinstance(right, list):
        return (_listed(left) + _listed(right))[:_MAX_LIST]
    is_text = isinstance(left, str) or isinstance(right, str)
    return (text_of(left) + text_of(right))[:_MAX_TEXT] if is_text else None


def _calculated_span(sign: str, left: timedelta, right: Any) -> timedelta | None:
    if isinstance(right, float) and sign in "*/":
        return left * right if sign == "*" else left / right
    span = to_span(right)
    if span is None or sign not in "+-":
        return None
    return left + span if sign == "+" else left - span


def _calculated_date(sign: str, moment: datetime, right: Any) -> Any:
    """A date and a span are a date, two dates a span; a text after a date is joined to it."""
    span = to_span(right)
    if span is not None:
        return moment + span if sign == "+" else moment - span
    other = to_date(right)
    if other is not None and sign == "-":
        return moment - other
    return f"{text_of(moment)}{text_of(right)}" if sign == "+" and isinstance(right, str) else None


_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "%": lambda left, right: math.fmod(left, right) if right else math.nan,
}


class Kind(IntEnum):
    """The kinds of values, in the order in which they are sorted."""

    NUMBER = 0
    SPAN = 1
    DATE = 2
    TEXT = 3
    NOTHING = 4


def _pair(left: Any, right: Any) -> tuple[tuple[int, Any], tuple[int, Any]]:
    """Two values in a form in which they can be compared."""
    if isinstance(left, datetime) or isinstance(right, datetime):
        dates = to_date(left), to_date(right)
        if None not in dates:
            return (Kind.DATE, dates[0]), (Kind.DATE, dates[1])
    if isinstance(left, timedelta) or isinstance(right, timedelta):
        spans = to_span(left), to_span(right)
        if None not in spans:
            return (Kind.SPAN, spans[0]), (Kind.SPAN, spans[1])
    return order_of(left), order_of(right)


def order_of(value: Any) -> tuple[int, Any]:
    """What values are sorted by: numbers before times, dates and texts; nothing comes last."""
    if isinstance(value, (bool, float)):
        return Kind.NUMBER, float(value)
    if isinstance(value, timedelta):
        return Kind.SPAN, value
    moment = to_date(value)
    if moment is not None:
        return Kind.DATE, moment
    text = text_of(value).casefold()
    return Kind.TEXT if text else Kind.NOTHING, text


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def text_of(value: Any) -> str:
    """A value as Markdown."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case float():
            return f"{value:.0f}" if value == int(value) else f"{round(value, 10):g}"
        case datetime():
            return f"{value:%Y-%m-%d}" if value == _midnight(value) else f"{value:%Y-%m-%d %H:%M}"
        case timedelta():
            return _shown_span(value)
        case NoteName():
            return f"[[{value.target}|{value.shown}]]" if value.shown else f"[[{value.target}]]"
        case _File():
            return text_of(value.note.link)
        case list():
            return _joined(value, ", ")
        case dict():
            parts = (f"{key}: {text_of(_read(each))}" for key, each in list(value.items())[:50])
            return ", ".join(parts)[:_MAX_TEXT]
    return str(value)[:_MAX_TEXT]


def _joined(values: Sequence[Any], sign: str) -> str:
    """The values as one text, of which no more is made than a cell may hold."""
    parts: list[str] = []
    room = _MAX_TEXT
    for value in values:
        if room <= 0:
            break
        if text := text_of(value):
            parts.append(text)
            room -= len(text) + len(sign)
    return sign.join(parts)[:_MAX_TEXT]


def _shown_span(value: timedelta) -> str:
    hours, minutes = divmod(abs(value).seconds // 60, 60)
    parts = [(abs(value).days, "day"), (hours, "hour"), (minutes, "minute")]
    words = [f"{count} {name}{'' if count == 1 else 's'}" for count, name in parts if count]
    return ("-" if value < timedelta() else "") + (", ".join(words) or "0 days")


# --- functions -----------------------------------------------------------------------


def _contains(whole: Any, part: Any) -> bool:
    """As Dataview: a part of a text, or of any element of a list."""
    if isinstance(whole, list):
        return any(_contains(each, part) for each in whole)
    if isinstance(whole, dict):
        return isinstance(part, str) and fold_key(part) in map(fold_key, whole)
    if isinstance(whole, str) and isinstance(part, str):
        return part in whole
    if isinstance(whole, NoteName) and isinstance(part, str):
        return part in whole.target or part in whole.shown
    return _is_same(whole, part)


def _lower(value: Any) -> Any:
    return [_lower(each) for each in value] if isinstance(value, list) else text_of(value).lower()


def _numbers(values: Sequence[Any]) -> list[float]:
    flat = [each for value in values for each in _listed(value)]
    return [float(each) for each in flat if isinstance(each, float)]


def _extreme(choose: Callable[..., Any]) -> Callable[..., Any]:
    def chosen(*values: Any) -> Any:
        flat = [each for value in values for each in _listed(value) if each is not None]
        return choose(flat, key=order_of) if flat else None

    return chosen


def _unique(value: Any) -> list[Any]:
    unique: dict[str, Any] = {}
    for each in _listed(value):
        unique.setdefault(text_of(each), each)
    return list(unique.values())


def _to_number(value: Any) -> float | None:
    if isinstance(value, (float, bool)):
        return float(value)
    match = re.search(r"-?\d{1,15}(?:\.\d{1,15})?", value) if isinstance(value, str) else None
    return float(match[0]) if match else None


def _formatted(value: Any, pattern: Any = "yyyy-MM-dd") -> str | None:
    """A date by a pattern of Dataview (yyyy-MM-dd) or of Bases (YYYY-MM-DD)."""
    moment = to_date(value)
    if moment is None:
        return None
    text = text_of(pattern)[:200]
    if "y" in text:  # of Dataview
        for written, meant in (("y", "Y"), ("d", "D"), ("EEEE", "dddd"), ("EEE", "ddd")):
            text = text.replace(written, meant)
    return formatted_date(text, moment)


def _rounded(value: Any, digits: Any = 0.0) -> Any:
    if not isinstance(value, float):
        return None
    return float(round(value, max(0, min(15, int(digits)))))


_FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "contains": _contains,
    "icontains": lambda whole, part: _contains(_lower(whole), _lower(part)),
    "econtains": lambda whole, part: any(_is_same(each, part) for each in _listed(whole)),
    "containsany": lambda whole, *parts: any(
        _contains(whole, each) for part in parts for each in _listed(part)
    ),
    "containsall": lambda whole, *parts: all(
        _contains(whole, each) for part in parts for each in _listed(part)
    ),
    "isempty": lambda value: value in (None, "", []),
    "istruthy": bool,
    "length": lambda value: float(len(value)) if isinstance(value, (list, str, dict)) else 0.0,
    "lower": _lower,
    "upper": lambda value: text_of(value).upper(),
    "title": lambda value: text_of(value).title(),
    "trim": lambda value: text_of(value).strip(),
    "startswith": lambda value, part: text_of(value).startswith(text_of(part)),
    "endswith": lambda value, part: text_of(value).endswith(text_of(part)),
    "replace": lambda value, old, new: text_of(value).replace(
        text_of(old) or "\0", text_of(new)[:100]
    )[:_MAX_TEXT],
    "split": lambda value, sign: list(text_of(value).split(text_of(sign) or None))[:_MAX_LIST],
    "join": lambda value, sign=", ": _joined(_listed(value), text_of(sign)),
    "default": lambda value, other: other if value is None else value,
    "string": text_of,
    "tostring": text_of,
    "number": _to_number,
    "list": _listed,
    "array": _listed,
    "unique": _unique,
    "sort": lambda value: sorted(_listed(value), key=order_of),
    "reverse": lambda value: _listed(value)[::-1],
    "flat": lambda value: [each for one in _listed(value) for each in _listed(one)][:_MAX_LIST],
    "first": lambda value: next(iter(_listed(value)), None),
    "nonnull": lambda value: [each for each in _listed(value) if each is not None],
    "sum": lambda *values: _number(sum(_numbers(values))),
    "average": lambda *values: (
        _number(sum(numbers) / len(numbers)) if (numbers := _numbers(values)) else None
    ),
    "min": _extreme(min),
    "max": _extreme(max),
    "round": _rounded,
    "tofixed": _rounded,
    "floor": lambda value: float(math.floor(value)),
    "ceil": lambda value: float(math.ceil(value)),
    "abs": lambda value: abs(value) if isinstance(value, (float, timedelta)) else None,
    "date": to_date,
    "dur": to_span,
    "dateformat": _formatted,
    "format": _formatted,
    "striptime": lambda value: None if (day := to_date(value)) is None else _midnight(day),
    "link": lambda target, text="": (
        target
        if isinstance(target, NoteName) and not text
        else NoteName(
            target.target if isinstance(target, NoteName) else text_of(target),
            text_of(text),
        )
    ),
}
