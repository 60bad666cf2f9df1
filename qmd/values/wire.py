"""
The wire form of values, the same on every face: `to_wire` makes it and `from_wire` reads it.

The wire form of a dataclass is a JSON object with its fields in order; the facts in their
annotations (`qmd.values.facts`) say how each is sent. A mapping is sent unchanged.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import is_dataclass, replace
from functools import lru_cache
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Union, get_args, get_origin, overload

from qmd.records import NamedTuple
from qmd.values.facts import (
    Inline,
    NotSent,
    OmitDefault,
    Singular,
    field_facts,
    sent_fields,
    without_none,
)
from qmd.values.text import estimate_tokens, fitting_items

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

ValueT = TypeVar("ValueT")

#: Types that are sent unchanged. They are looked up first: a reply may hold 100,000 numbers.
_SCALARS = frozenset({str, int, float, bool, NoneType})
ItemT = TypeVar("ItemT")
ReplyT = TypeVar("ReplyT", bound="DataclassInstance")
#: The tokens of what stands around the lists: titles, counts, and what is left out.
_FRAME_TOKENS = 100


@overload
def to_wire(value: DataclassInstance, rename: Callable[[str], str] = ...) -> dict[str, object]: ...
@overload
def to_wire(
    value: Sequence[DataclassInstance], rename: Callable[[str], str] = ...
) -> list[object]: ...
@overload
def to_wire(value: object, rename: Callable[[str], str] = ...) -> object: ...
def to_wire(value: object, rename: Callable[[str], str] = str) -> object:
    """
    The wire form of a value, as `json.dumps` takes it.

    Args:
        rename: Called with a name in snake case; returns the name to send.
    """
    if type(value) in _SCALARS:
        return value
    if isinstance(value, (list, tuple)):
        return [item if type(item) in _SCALARS else to_wire(item, rename) for item in value]
    return _fields_to_wire(value, (), rename) if is_dataclass(value) else value


def _fields_to_wire(
    value: Any, names: tuple[str, ...], rename: Callable[[str], str]
) -> dict[str, Any]:
    sent: dict[str, Any] = {}
    value_type: Any = type(value)
    for field in _sent_as(value_type, names, rename):
        part = getattr(value, field.name)
        if field.inline is not None:
            sent.update(_fields_to_wire(part, field.inline.names, rename))
        elif field.is_singular and len(part) > 1:
            sent[rename(field.name)] = list(part)
        elif field.is_singular:
            sent[field.sent_name] = part[0] if part else None
        elif not (field.omits_default and part == field.default):
            sent[field.sent_name] = part if type(part) in _SCALARS else to_wire(part, rename)
    return sent


class _SentField(NamedTuple):
    """A field of a dataclass that is sent, with all that a reply of many values asks of it."""

    name: str
    sent_name: str
    inline: Inline | None
    is_singular: bool
    omits_default: bool
    default: object


@lru_cache(512)
def _sent_as(
    value_type: Any, names: tuple[str, ...], rename: Callable[[str], str]
) -> tuple[_SentField, ...]:
    """The fields of a dataclass that are sent, each with the name to send."""
    return tuple(
        _SentField(
            field.name,
            rename(field.wire_name),
            field.get(Inline),
            field.has(Singular),
            field.has(OmitDefault),
            field.default,
        )
        for field in sent_fields(value_type, names)
    )


def from_wire(value_type: type[ValueT], sent: object, **local: object) -> ValueT:
    """
    Make a value from its wire form in snake case. Unknown names are ignored.

    Args:
        value_type: The dataclass.
        sent: The wire form, as `json.loads` returns it.
        local: The values of fields that are never sent.

    Raises:
        ValueError: A field is missing or has another type.
    """
    if not isinstance(sent, Mapping):
        raise ValueError(  # noqa: TRY004 - what was sent is wrong, not the call
            f"{value_type.__name__} is sent as an object, not as {sent!r}"
        )
    values = dict(local)
    for field in field_facts(value_type):
        if field.has(Inline):
            values[field.name] = from_wire(field.hint, sent)
        elif field.has(NotSent):
            continue
        elif field.has(Singular):
            item, items = sent.get(field.wire_name), sent.get(field.name) or []
            values[field.name] = _read(field.hint, items if item is None else [item, *items])
        elif field.wire_name in sent:
            values[field.name] = _read(field.hint, sent[field.wire_name])
        elif field.is_required:
            raise ValueError(f"{value_type.__name__} lacks {field.wire_name}")
    return value_type(**values)


def _read(hint: Any, sent: object) -> object:
    """A part of a value, of the type ``hint``, from its wire form. Raises ValueError."""
    origin = get_origin(hint)
    if is_dataclass(hint):
        assert isinstance(hint, type)
        return from_wire(hint, sent)
    if origin in (Union, UnionType):
        is_none = sent is None and NoneType in get_args(hint)
        return None if is_none else _read(without_none(hint), sent)
    if origin is tuple and isinstance(sent, (list, tuple)):
        return tuple(_read(get_args(hint)[0], item) for item in sent)
    if hint is float and isinstance(sent, int):
        return float(sent)
    if not _fits(hint, sent):
        raise ValueError(f"{sent!r} is not {hint}")
    return sent


def _fits(hint: Any, sent: object) -> bool:
    if get_origin(hint) is Literal:
        return sent in get_args(hint)
    return hint is Any or isinstance(sent, get_origin(hint) or hint)


class ListBudget:
    """
    The room that an answer of lists has left.

    An item is counted as its JSON object, which is longer than its line of text.
    """

    def __init__(
        self, max_tokens: int | None, *, as_object: Callable[[object], object] = to_wire
    ) -> None:
        """
        Args:
            max_tokens: The estimated tokens of the whole answer; None for no bound.
            as_object: Gives the JSON object of an item.
        """
        self._tokens = math.inf if max_tokens is None else max_tokens - _FRAME_TOKENS
        self._as_object = as_object

    def take(self, items: Sequence[ItemT], *, share: float = 1) -> tuple[ItemT, ...]:
        """
        The first items, as many as fit.

        ``share``: the part of the room that these items may use; the rest is for other lists.
        """
        if self._tokens == math.inf:
            return tuple(items)
        room = share * self._tokens
        fitting, left = fitting_items(items, lambda item: estimate_tokens(self._json(item)), room)
        self._tokens -= room - left
        return tuple(fitting)

    def fit(self, value: ReplyT, name: str, *, share: float = 1) -> ReplyT:
        """
        The value with what `take` leaves of its field of this name.

        The items left out are added to the field ``left_out``, if the value has one.
        """
        items = getattr(value, name)
        taken = self.take(items, share=share)
        fields: dict[str, Any] = {name: taken}
        if hasattr(value, "left_out"):
            fields["left_out"] = value.left_out + len(items) - len(taken)
        return replace(value, **fields)

    def _json(self, item: object) -> str:
        # With spaces, as many clients show it to their model; compact JSON has fewer tokens.
        return json.dumps(self._as_object(item), ensure_ascii=False) + ", "
