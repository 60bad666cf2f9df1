"""
Load the modules of a package when one is used (PEP 562), so that imports stand at the top; compile
regular expressions likewise. Import what a text names.

    __getattr__ = lazy.load(__name__, attributes={"Store": "qmd.store.store"})

`from qmd import store` then costs one small file, and `store.Store` loads what it needs. A module
of the package needs no word here: type checkers learn of it from an import under `TYPE_CHECKING`.
"""

from __future__ import annotations

import sys

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping
    from typing import Any, AnyStr


def load(
    package: str,
    *,
    attributes: Mapping[str, str] | None = None,
    libraries: Mapping[str, str] | None = None,
) -> Callable[[str], object]:
    """
    The `__getattr__` of `package`: its modules by their names, attributes of the modules named, and
    modules from elsewhere under a name of their own.

    What it lacks raises `AttributeError`, in Python's own words.
    """
    places = {**(attributes or {}), **(libraries or {})}

    def __getattr__(name: str) -> object:
        if name == "__path__":  # of a module that is no package: an import would ask for it again
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place = places.get(name) or f"{package}.{name}"
        try:
            __import__(place)  # importlib does the same, and costs a start two modules
        except ModuleNotFoundError as error:
            if error.name != place:
                raise
            raise AttributeError(f"module {package!r} has no attribute {name!r}") from None
        module = sys.modules[place]
        value = getattr(module, name) if attributes and name in attributes else module
        vars(sys.modules[package])[name] = value  # the next use need not ask here
        return value

    return __getattr__


def imported(place: str) -> Any:
    """What ``module:name`` stands for."""
    module, _, name = place.partition(":")
    __import__(module)
    return getattr(sys.modules[module], name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """
    A regular expression that is compiled when it is first used, which takes a tenth of a
    millisecond and more: for modules that every search loads.
    """
    late: re.Pattern[AnyStr] = _Pattern(text, flags)  # type: ignore[assignment]
    return late


class _Pattern:
    """Has the attributes of a compiled pattern from the first use of one of them on."""

    def __init__(self, text: Any, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("_"):
            raise AttributeError(name)
        from re import compile as compiled

        pattern = compiled(*self._source)
        for each in ("match", "fullmatch", "search", "sub", "findall", "finditer", "split"):
            setattr(self, each, getattr(pattern, each))
        return getattr(pattern, name)
