"""
Load the modules of a package when one is used (PEP 562), so that imports stand at the top.

    __getattr__ = lazy.load(__name__, modules=("guard",), attributes={"Store": "qmd.store.store"})

`from qmd import store` then costs one small file, and `store.Store` loads what it needs.
"""

from __future__ import annotations

import sys

# As typing has it, whose import would take longer than all else that is done here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping


def load(
    package: str,
    *,
    modules: Collection[str] = (),
    attributes: Mapping[str, str] | None = None,
    libraries: Mapping[str, str] | None = None,
) -> Callable[[str], object]:
    """
    The `__getattr__` of `package`: its `modules` by name, attributes of the modules named, and
    modules from elsewhere under a name of their own.

    An attribute that it lacks raises `AttributeError`, in Python's own words.
    """
    whole = {name: f"{package}.{name}" for name in modules} | dict(libraries or {})
    places = attributes or {}

    def __getattr__(name: str) -> object:
        place = whole.get(name) or places.get(name)
        if place is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        __import__(place)  # importlib does the same, and costs a start two modules
        module = sys.modules[place]
        value = module if name in whole else getattr(module, name)
        vars(sys.modules[package])[name] = value  # the next use need not ask here
        return value

    return __getattr__
