"""Dataclasses and named tuples that are made later are like those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Annotated, Any, ClassVar, NamedTuple, get_type_hints

import pytest
from pydantic import TypeAdapter

from qmd import records


@records.dataclass(frozen=True, slots=True)
class Late:
    """A value."""

    KIND: ClassVar[str] = "kind"

    first: int
    _: records.KW_ONLY
    second: Annotated[str, "fact"] = "two"
    third: list[int] = records.field(default_factory=list, compare=False)
    fourth: int = records.field(default=4, repr=False)

    @property
    def sum(self) -> int:
        return self.first + self.fourth


@dataclasses.dataclass(frozen=True, slots=True)
class Early:
    """A value."""

    KIND: ClassVar[str] = "kind"

    first: int
    _: dataclasses.KW_ONLY
    second: Annotated[str, "fact"] = "two"
    third: list[int] = dataclasses.field(default_factory=list, compare=False)
    fourth: int = dataclasses.field(default=4, repr=False)

    @property
    def sum(self) -> int:
        return self.first + self.fourth


@records.dataclass()
class Changing:
    name: str
    later: int = records.field(init=False)
    counts: dict[str, int] = records.field(default_factory=dict)


class LateTuple(records.NamedTuple):
    """A tuple."""

    first: int
    second: Annotated[str, "fact"] = "two"

    @property
    def twice(self) -> int:
        return 2 * self.first


class EarlyTuple(NamedTuple):
    """A tuple."""

    first: int
    second: Annotated[str, "fact"] = "two"

    @property
    def twice(self) -> int:
        return 2 * self.first


LIKE: list[Callable[[Any], object]] = [
    lambda cls: repr(cls(1, second="x")).partition("(")[2],
    lambda cls: cls(1) == cls(1, third=[2]),
    lambda cls: cls(1) == cls(1, fourth=5),
    lambda cls: cls(1) == 1,
    lambda cls: hash(cls(1)) == hash(cls(1, third=[2])),
    lambda cls: cls(1).third is cls(1).third,
    lambda cls: cls(first=3).sum,
    lambda cls: cls.KIND,
    lambda cls: cls.__match_args__,
    lambda cls: cls.__slots__,
    lambda cls: cls.__doc__,
    lambda cls: str(inspect.signature(cls)).partition(" -> ")[0],
    lambda cls: [(each.name, each.type, each.kw_only) for each in dataclasses.fields(cls)],
    lambda cls: dataclasses.asdict(cls(1)),
    lambda cls: dataclasses.replace(cls(1), second="x").second,
    lambda cls: records.replace(cls(1, fourth=9), second="x").fourth,
    lambda cls: pickle.loads(pickle.dumps(cls(1, third=[7]))).third,
    lambda cls: copy.deepcopy(cls(1, third=[7])).third,
    lambda cls: TypeAdapter(cls).validate_python({"first": "1"}).first,
    lambda cls: {**TypeAdapter(cls).json_schema(), "title": ""},
]


@pytest.mark.parametrize("ask", LIKE)
def test_it_is_like_the_standard_librarys(ask: Callable[[Any], object]) -> None:
    assert ask(Late) == ask(Early)


@pytest.mark.parametrize("cls", [Late, Early])
def test_what_is_wrong_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        cls()
    with pytest.raises(TypeError, match="takes 2 positional arguments but 3 were given"):
        cls(1, "two")
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field 'first'"):
        cls(1).first = 2


LIKE_TUPLES: list[Callable[[Any], object]] = [
    lambda cls: repr(cls(1, second="x")).partition("(")[2],
    lambda cls: (cls(1) == cls(1), cls(1) == (1, "two"), hash(cls(1))),
    lambda cls: tuple(cls(1)),
    lambda cls: (cls(3).first, cls(first=3).second, cls(3).twice),
    lambda cls: (cls.__match_args__, cls.__slots__, cls.__doc__, cls.__bases__, type(cls)),
    lambda cls: (cls._fields, cls._field_defaults, get_type_hints(cls)),
    lambda cls: [(p.name, p.default) for p in inspect.signature(cls).parameters.values()],
    lambda cls: cls._make([1, "x"])._asdict(),
    lambda cls: tuple(cls(1)._replace(second="x")),
    lambda cls: cls(1)._replace(second="x").__class__ is cls,
    lambda cls: pickle.loads(pickle.dumps(cls(1))).__class__ is cls,
    lambda cls: copy.deepcopy(cls(1, "x")).second,
    lambda cls: TypeAdapter(cls).validate_python({"first": "1"}).first,
    lambda cls: {**TypeAdapter(cls).json_schema(), "title": ""},
    lambda cls: hasattr(cls(1), "__dict__"),
]


@pytest.mark.parametrize("ask", LIKE_TUPLES)
def test_a_tuple_is_like_the_standard_librarys(ask: Callable[[Any], object]) -> None:
    assert ask(LateTuple) == ask(EarlyTuple)


@pytest.mark.parametrize("cls", [LateTuple, EarlyTuple])
def test_what_is_wrong_for_a_tuple_is_refused(cls: Any) -> None:
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'first'"):
        cls()
    with pytest.raises(TypeError, match="takes from 2 to 3 positional arguments but 4 were given"):
        cls(1, "two", "three")
    with pytest.raises(TypeError, match="Expected 2 arguments, got 1"):
        cls._make([1])
    with pytest.raises((TypeError, ValueError), match=r"Got unexpected field names: \['third'\]"):
        cls(1)._replace(third=3)
    with pytest.raises(AttributeError):
        cls(1).first = 2


def test_a_value_may_change() -> None:
    value = Changing("a")
    value.later = 3
    assert (value.name, value.later, value.counts) == ("a", 3, {})
    assert Changing("a").counts is not value.counts
    assert Changing.__hash__ is None  # type: ignore[comparison-overlap]
    with pytest.raises(TypeError, match="unhashable"):
        hash(value)


def test_a_named_tuple_is_made_of_a_tuple() -> None:
    class Place(records.NamedTuple):
        path: str
        line: int = 1

    place = records.of_tuples(Place)(("a.md", 3))
    assert type(place) is Place
    assert place == Place("a.md", 3)
    assert place._replace(line=4).line == 4


@pytest.mark.cold
def test_making_a_class_and_a_value_loads_nothing() -> None:
    code = (
        "import sys\n"
        "from qmd.values.search import SearchRequest\n"
        "from qmd.records import replace\n"
        "assert replace(SearchRequest('a'), limit=3).limit == 3\n"
        "print([name for name in ('dataclasses', 'inspect') if name in sys.modules])"
    )
    # Coverage, where it is measured, loads both.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("COVERAGE_")}
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == "[]\n"
