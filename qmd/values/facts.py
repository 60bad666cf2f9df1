"""
Facts about a field that its annotation states beyond the type, once for all faces::

    limit: Annotated[int | None, Range(1, 1000), Describe("Most hits to return")] = 10

From these facts the command line makes its options, and MCP and REST make JSON Schemas and check
arguments. pydantic reads them through the ``__get_pydantic_…`` methods; this module does not import
pydantic. The classes are not dataclasses, because `qmd search` loads them at each start and making
a dataclass takes half a millisecond.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from qmd import libraries

if TYPE_CHECKING:
    from dataclasses import Field

#: A year or a month, a day of the calendar, and what a day may have after it, as patterns of JSON
#: Schema. February has 29 days in years that four divides, but for most of those with two noughts.
_YEAR, _MONTHS = "[1-9][0-9]{3}", "(0[1-9]|1[0-2])"
MONTH = f"{_YEAR}(-{_MONTHS})?"
DAY = (
    f"({_YEAR}-({_MONTHS}-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)"
    "|([1-9][0-9](0[48]|[2468][048]|[13579][26])|([2468][048]|[13579][26])00)-02-29)"
)
_HOUR_AND_MINUTE = "([01][0-9]|2[0-3]):[0-5][0-9]"
TIME_OF_DAY = rf"[T ]{_HOUR_AND_MINUTE}(:[0-5][0-9](\.[0-9]{{1,9}})?)?(Z|[+-]{_HOUR_AND_MINUTE})?"


class Required:
    """What stands for the default of a field that has none."""


#: The largest integer that any face takes; JSON carries it exactly. Larger ones would fail deep
#: inside: SQLite takes 64 bits, floats overflow, and Python refuses to read 4,301 digits.
LARGEST_INTEGER = 2**53 - 1

FactT = TypeVar("FactT")
_Schema = dict[str, Any]  # of pydantic: a core schema, or a JSON Schema


class Describe:
    """
    A description of the field for people: one line without a full stop.

    ``zh``: the same in Chinese, for an argument of an operation (`qmd.operations`).
    """

    def __init__(self, text: str, zh: str = "") -> None:
        self.text = text
        self.zh = zh

    def __get_pydantic_json_schema__(
        self, schema: object, handler: Callable[[object], _Schema]
    ) -> _Schema:
        return {**handler(schema), "description": self.text}


class Obvious:
    """The name and the type say what the field is: a brief listing leaves the description out."""


class Range:
    """The least and the greatest number that the field may have; ``high`` None: no limit."""

    def __init__(self, low: int, high: int | None = None) -> None:
        self.low = low
        self.high = high

    def __str__(self) -> str:
        if self.high is None:
            return f"at least {self.low}"
        return f"between {self.low} and {self.high}"

    def __contains__(self, number: float) -> bool:
        return self.low <= number and (self.high is None or number <= self.high)

    def __get_pydantic_core_schema__(
        self, source: object, handler: Callable[[object], _Schema]
    ) -> _Schema:
        schema = handler(source)
        bounds = {"ge": self.low} if self.high is None else {"ge": self.low, "le": self.high}
        if schema["type"] == "nullable":
            return {**schema, "schema": {**schema["schema"], **bounds}}
        return {**schema, **bounds}


class InSchema:
    """Keywords of JSON Schema, for descriptions alone: errors of the engine say more."""

    def __init__(self, **keywords: object) -> None:
        self.keywords = keywords

    def __get_pydantic_json_schema__(
        self, schema: object, handler: Callable[[object], _Schema]
    ) -> _Schema:
        return {**handler(schema), **self.keywords}


class AsSent:
    """
    The text may be any: half of a surrogate pair, which other texts may not have, and blank, which
    for other optional texts counts as absent.
    """


class Shell:
    """
    How an argument of an operation is spelled in the shell.

    Args:
        metavar: What stands for its value in a help text; "" for its name.
        completes: The function of `qmd.cli.complete` for the Tab key; "" for none.
        help: What the help says of it; "" for its description.
        names: Names of the option, if others than the argument's; its name counts as well.
        by_comma: Several stand in one value of the option.
        default: Its default there, where people read the reply.
        stdin: ``-`` takes the text from stdin.
        positional: It is given by its place; required arguments are so anyway.
        join: It is made of all words of the command line, with this text between them; with a
            space they are those of a query, which may begin with a minus.
    """

    def __init__(
        self,
        metavar: str = "",
        *names: str,
        completes: str = "",
        help: str = "",  # noqa: A002 - as click names it
        by_comma: bool = False,
        default: object = Required,
        join: str = "",
        positional: bool = False,
        stdin: bool = False,
    ) -> None:
        self.metavar = metavar
        self.names = names
        self.completes = completes
        self.help = help
        self.by_comma = by_comma
        self.default = default
        self.join = join
        self.positional = positional
        self.stdin = stdin


class ShellOnly:
    """Only the shell has this argument of an operation."""


class DateOrSpan:
    """The text is a date, a time or a span before now, as `qmd.search.query` reads it."""


class OnProperties:
    """Each text is a condition on a property, as `qmd.values.properties.parse_filter` reads it."""


class Name:
    """The name of the field on the wire, in snake case, if it differs from the field's name."""

    def __init__(self, text: str) -> None:
        self.text = text


class OmitDefault:
    """The field is not sent if it has its default value."""


class NotSent:
    """The field is never sent."""


class Inline:
    """
    The fields of this value are sent among those of the value that holds it.

    ``names``: the fields and properties to send; empty for all.
    """

    def __init__(self, *names: str) -> None:
        self.names = names


class Singular:
    """
    The field is a tuple, and one item is sent under this name.

    Several are sent as a list under the name of the field.
    """

    def __init__(self, name: str) -> None:
        self.name = name


class Unlisted:
    """
    Clients may send the field, but the listing of a tool leaves it out, because models read that.

    Programs written for other servers use such names.
    """


class ForCommands:
    """
    An option of these commands only.

    ``ignored``: others take it in the shell, where it has no effect, so that a script may give the
    same options to all.
    """

    def __init__(self, *names: str, ignored: bool = False) -> None:
        self.names = names
        self.ignored = ignored


class DefaultFor:
    """The default that the field has for one command, where it differs from that of the others."""

    def __init__(self, command: str, default: object) -> None:
        self.command = command
        self.default = default


class FieldFacts:
    """
    A field or property of a dataclass with its facts.

    Attributes:
        hint: The type without the facts.
        wire_name: The name on the wire, in snake case.
        default: The default; `Required` if the field has none.
    """

    def __init__(self, name: str, hint: object, default: object = Required) -> None:
        self.name = name
        self.hint, self.facts = _parts(hint)
        # Making a reply looks up some 700 facts, so both are computed once.
        self._by_class = {kind: fact for fact in self.facts for kind in type(fact).__mro__}
        singular, renamed = self.get(Singular), self.get(Name)
        if singular is not None:
            self.wire_name = singular.name
        else:
            self.wire_name = self.name if renamed is None else renamed.text
        self.default = default

    def for_command(self, command: str) -> FieldFacts:
        """The field with the default that it has for a command."""
        other = self.get(DefaultFor)
        if other is None or other.command != command:
            return self
        changed = object.__new__(FieldFacts)  # the module copy would be one more to load
        vars(changed).update(vars(self), default=other.default)
        return changed

    @property
    def is_required(self) -> bool:
        return self.default is Required

    @property
    def description(self) -> str | None:
        describe = self.get(Describe)
        return None if describe is None else describe.text

    def get(self, kind: type[FactT]) -> FactT | None:
        """The fact of this class; None if the annotation has none."""
        fact = self._by_class.get(kind)
        return fact if isinstance(fact, kind) else None

    def has(self, kind: type[object]) -> bool:
        """Whether the annotation has a fact of this class."""
        return kind in self._by_class


def field_facts(value_type: type) -> tuple[FieldFacts, ...]:
    """The fields of a dataclass with their facts, in order."""
    return _field_facts(value_type)


@cache
def _field_facts(value_type: Any) -> tuple[FieldFacts, ...]:
    members = libraries.dataclasses.fields(value_type)
    hints = {field.name: field.type for field in members}
    if any(isinstance(hint, str) for hint in hints.values()):
        hints = get_type_hints(value_type, include_extras=True)
    return tuple(FieldFacts(field.name, hints[field.name], _default(field)) for field in members)


def _default(field: Field[Any]) -> Any:
    missing = libraries.dataclasses.MISSING
    if field.default_factory is not missing:
        return field.default_factory()
    return Required if field.default is missing else field.default


def ranges(value_type: type) -> Mapping[str, Range]:
    """
    The fields of a dataclass that have a range, in order.

    Unlike `field_facts` it loads nothing: every search checks its request so. Its module evaluates
    its annotations for it, without ``from __future__ import annotations``.
    """
    hints = value_type.__annotations__
    assert not any(isinstance(hint, str) for hint in hints.values()), value_type
    return {
        name: fact
        for name, hint in hints.items()
        for fact in getattr(hint, "__metadata__", ())
        if isinstance(fact, Range)
    }


def sent_fields(value_type: type, names: tuple[str, ...] = ()) -> tuple[FieldFacts, ...]:
    """
    The fields and properties of a dataclass that are sent, in order.

    They are those of ``names``; without names those that the class lists as ``SENT``; without such
    a list all fields that are not `NotSent`.
    """
    return _sent_fields(value_type, names)


@cache
def _sent_fields(value_type: Any, names: tuple[str, ...]) -> tuple[FieldFacts, ...]:
    by_name = {field.name: field for field in field_facts(value_type)}
    listed = names or getattr(value_type, "SENT", ())
    if not listed:
        return tuple(field for field in by_name.values() if not field.has(NotSent))
    return tuple(by_name.get(name) or _property_facts(value_type, name) for name in listed)


def _property_facts(value_type: type, name: str) -> FieldFacts:
    getter = getattr(value_type, name).fget
    return FieldFacts(name, get_type_hints(getter, include_extras=True)["return"])


def wire_fields(value_type: type, names: tuple[str, ...] = ()) -> Iterator[FieldFacts]:
    """As `sent_fields`; an `Inline` field is replaced by the fields of its value."""
    for field in sent_fields(value_type, names):
        inline = field.get(Inline)
        if inline is None:
            yield field
        else:
            yield from wire_fields(field.hint, inline.names)


def without_none(hint: object) -> object:
    """``X`` for the type ``X | None``; any other type unchanged."""
    if get_origin(hint) not in (Union, UnionType):
        return hint
    return Union[tuple(option for option in get_args(hint) if option is not NoneType)]  # noqa: UP007


def _parts(hint: object) -> tuple[Any, tuple[object, ...]]:
    """A type hint without its outermost ``Annotated``, and the facts of that."""
    if get_origin(hint) is Annotated:
        return get_args(hint)[0], get_args(hint)[1:]
    return hint, ()
