"""
Dataclasses and named tuples that cost a start next to nothing: what they are made with is made when
it is first needed.

`dataclasses` imports `inspect`, which takes 7 ms, and each class takes half a millisecond: a sixth
of a search. So modules that every search loads have `dataclass`, `field` and `replace` from here.
To type checkers, to `dataclasses` itself and to pydantic such a class is a dataclass like any
other. It takes no fields from a base class, and its ``__init__`` calls no ``__post_init__``.

`typing.NamedTuple` compiles a constructor for each class, and each of its annotations: a twelfth of
a search for fifty classes. That of this module leaves the annotations as they are written.

To make a named tuple of a tuple takes less than half of the time that its constructor takes, which
counts where there are many: `of_tuples`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from qmd import libraries

__all__ = ["KW_ONLY", "NamedTuple", "dataclass", "field", "of_tuples", "replace"]

T = TypeVar("T")


def of_tuples(cls: type[T]) -> Callable[[tuple[Any, ...]], T]:
    """What makes a value of this class of named tuples of the tuple of all its fields."""
    return partial(tuple.__new__, cls)  # type: ignore[type-var]


if TYPE_CHECKING:
    from dataclasses import KW_ONLY, dataclass, field, replace
    from typing import NamedTuple
else:
    from collections import _tuplegetter

    class KW_ONLY:
        """The type of ``_``; the fields after it are given by name."""

    class _Field:
        def __init__(self, options):
            self.options = options

    def field(**options):
        """As `dataclasses.field`, with default, default_factory, init, repr and compare."""
        return _Field(options)

    def dataclass(*, frozen=False, slots=False, kw_only=False):
        """As `dataclasses.dataclass`, with these options."""
        return lambda cls: _Layout(cls, frozen=frozen, slots=slots, kw_only=kw_only).made

    def replace(value, /, **changes):
        """As `dataclasses.replace`, for the values of any dataclass."""
        layout = getattr(type(value), "_layout", None)
        if layout is None:
            return libraries.dataclasses.replace(value, **changes)
        kept = {name: getattr(value, name) for name in layout.given if name not in changes}
        return type(value)(**kept, **changes)

    class _Constructor:
        """``__new__`` of a named tuple, which puts a function into its place when it is needed."""

        def __init__(self, fields, defaults):
            self.fields = fields
            self.defaults = defaults

        def __get__(self, value, owner):
            scope = {"new": tuple.__new__}
            scope |= {f"default_{name}": each for name, each in self.defaults.items()}
            head = ", ".join(
                f"{name}=default_{name}" if name in self.defaults else name for name in self.fields
            )
            values = "".join(f"{name}, " for name in self.fields)
            # All parts are names of a class, which Python has checked.
            exec(f"def __new__(_cls, {head}): return new(_cls, ({values}))", scope)  # noqa: S102
            method = scope["__new__"]
            method.__module__ = self.made.__module__
            method.__qualname__ = f"{self.made.__qualname__}.__new__"
            method.__annotations__ = self.made.__annotations__
            self.made.__new__ = staticmethod(method)
            return method

    class _TupleType(type):
        """The type of `NamedTuple` alone: the classes that it makes have the usual one."""

        def __new__(cls, name, bases, contents):
            if not bases:
                return super().__new__(cls, name, bases, contents)
            fields = tuple(contents["__annotations__"])
            defaults = {field: contents[field] for field in fields if field in contents}
            constructor = _Constructor(fields, defaults)
            contents |= {field: _tuplegetter(place, None) for place, field in enumerate(fields)}
            contents |= {"_fields": fields, "_field_defaults": defaults, "__match_args__": fields}
            contents = {**_TUPLE_METHODS, **contents, "__slots__": (), "__new__": constructor}
            constructor.made = type(name, (tuple,), contents)
            return constructor.made

    class NamedTuple(metaclass=_TupleType):
        """As `typing.NamedTuple`; the annotations stay texts."""

    def _make(cls, values):
        value = tuple.__new__(cls, values)
        if len(value) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(value)}")
        return value

    def _replace(self, /, **changes):
        value = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise ValueError(f"Got unexpected field names: {list(changes)!r}")
        return value

    def _as_dict(self):
        return dict(zip(self._fields, self, strict=True))

    def _plain(self):
        return tuple(self)

    def _tuple_repr(self):
        shown = (f"{name}={value!r}" for name, value in zip(self._fields, self, strict=True))
        return f"{type(self).__name__}({', '.join(shown)})"

    _TUPLE_METHODS = {
        "_make": classmethod(_make),
        "_replace": _replace,
        "_asdict": _as_dict,
        "__repr__": _tuple_repr,
        "__getnewargs__": _plain,
    }

    class _Layout:
        """
        The fields of one class, and how its methods are made of them.

        Attributes:
            made: The class.
            names: Its fields.
            given: Those that are given when a value is made.
            shown: Those of its representation.
            compared: Those by which values are equal.
        """

        def __init__(self, cls, *, frozen, slots, kw_only):
            self.options = {"frozen": frozen, "slots": slots, "kw_only": kw_only}
            self.written = {
                name: value
                for name, value in vars(cls).items()
                if name not in ("__dict__", "__weakref__")
            }
            self.hints = cls.__annotations__
            self.by_name = _by_name(self.hints, kw_only)
            self.names = tuple(self.by_name)
            self.defined = {
                name: value.options if isinstance(value, _Field) else {"default": value}
                for name, value in self.written.items()
                if name in self.by_name
            }
            self.given = self._with("init")
            self.shown = self._with("repr")
            self.compared = self._with("compare")
            self.made = type(cls)(cls.__name__, cls.__bases__, self._contents())

        def _with(self, option):
            return tuple(
                name for name in self.names if self.defined.get(name, {}).get(option, True)
            )

        def _contents(self):
            contents = {"__repr__": _repr, "__eq__": _eq}
            if self.options["frozen"]:
                contents |= {"__hash__": _hash, "__setattr__": _refuse, "__delattr__": _refuse}
            else:
                contents["__hash__"] = None
            if self.options["slots"]:
                contents |= {"__slots__": self.names}
                contents |= {"__getstate__": _state, "__setstate__": _set_state}
            else:
                defaults = {name: each for name, each in self.defined.items() if "default" in each}
                contents |= {name: each["default"] for name, each in defaults.items()}
            contents |= {
                name: value for name, value in self.written.items() if name not in self.defined
            }
            contents["__match_args__"] = tuple(n for n in self.given if not self.by_name[n])
            contents["_layout"] = self
            for name in ("__init__", "__dataclass_fields__", "__dataclass_params__"):
                contents[name] = _Later(self, name)
            return contents

        def init(self):
            """The method ``__init__``."""
            scope = {"put": object.__setattr__, "NOT_GIVEN": _NOT_GIVEN}
            by_place, by_name, lines = [], [], []
            frozen = self.options["frozen"]
            form = " put(self, {name!r}, {value})" if frozen else " self.{name} = {value}"
            for name in self.names:
                here = self.defined.get(name, {})
                value, default = name, ""
                if "default_factory" in here:
                    scope[f"make_{name}"] = here["default_factory"]
                    value = f"make_{name}() if {name} is NOT_GIVEN else {name}"
                    default = "=NOT_GIVEN"
                elif "default" in here:
                    scope[f"default_{name}"] = here["default"]
                    default = f"=default_{name}"
                if name in self.given:
                    (by_name if self.by_name[name] else by_place).append(name + default)
                    lines.append(form.format(name=name, value=value))
            if by_name:
                by_name.insert(0, "*")
            head = ", ".join(["self", *by_place, *by_name])
            # All parts are names of a class, which Python has checked.
            exec("\n".join([f"def __init__({head}):", *lines]), scope)  # noqa: S102
            method = scope["__init__"]
            method.__module__ = self.made.__module__
            method.__qualname__ = f"{self.made.__qualname__}.__init__"
            method.__annotations__ = {name: self.hints[name] for name in self.given}
            return method

        def twin(self):
            """The class as `dataclasses` makes it, to take from it what that says of fields."""
            written = {
                name: libraries.dataclasses.field(**value.options)
                if isinstance(value, _Field)
                else value
                for name, value in self.written.items()
            }
            written["__annotations__"] = {
                name: libraries.dataclasses.KW_ONLY if _ends_places(hint) else hint
                for name, hint in self.hints.items()
            }
            twin = type(self.made)(self.made.__name__, self.made.__bases__, written)
            return libraries.dataclasses.dataclass(**self.options)(twin)

    class _Later:
        """An attribute of a class that is made when it is first looked up."""

        def __init__(self, layout, name):
            self.layout = layout
            self.name = name

        def __get__(self, value, owner):
            layout = self.layout
            if self.name == "__init__":
                layout.made.__init__ = layout.init()
            else:
                twin = layout.twin()
                for name in ("__dataclass_fields__", "__dataclass_params__"):
                    setattr(layout.made, name, getattr(twin, name))
            return getattr(owner if value is None else value, self.name)

    class _NotGiven:
        def __repr__(self):
            return "<factory>"

    _NOT_GIVEN = _NotGiven()

    def _ends_places(hint):
        return hint is KW_ONLY or (isinstance(hint, str) and hint.endswith("KW_ONLY"))

    def _by_name(hints, kw_only):
        """Field → whether it is given by its name alone."""
        names = {}
        for name, hint in hints.items():
            origin = getattr(hint, "__origin__", hint)
            if _ends_places(hint):
                kw_only = True
            elif origin is not ClassVar and not str(origin).startswith("ClassVar"):
                names[name] = kw_only
        return names

    def _repr(self):
        shown = (f"{name}={getattr(self, name)!r}" for name in self._layout.shown)
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def _eq(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in self._layout.compared)

    def _hash(self):
        return hash(tuple(getattr(self, name) for name in self._layout.compared))

    def _refuse(self, name, *_):
        raise libraries.dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def _state(self):
        return [getattr(self, name, _NOT_GIVEN) for name in self._layout.names]

    def _set_state(self, state):
        for name, value in zip(self._layout.names, state, strict=True):
            if value is not _NOT_GIVEN:
                object.__setattr__(self, name, value)
