"""Packages from elsewhere whose ``__init__`` imports more than is used of them."""

from __future__ import annotations

import sys
import threading
from importlib import util


def run_late(name: str) -> None:
    """
    Let the modules of a package from elsewhere be imported without what its ``__init__`` imports.

    That is run when somebody asks the package for a name that it lacks, such as `from name import
    Client`. Nothing happens to a package that is loaded already.
    """
    if name in sys.modules:
        return
    spec = util.find_spec(name)
    if spec is None or spec.loader is None:
        return  # the import says what is wrong
    module = util.module_from_spec(spec)
    run = spec.loader.exec_module
    lock = threading.RLock()  # one thread runs it, and others wait
    done: list[bool] = []

    def __getattr__(attribute: str) -> object:
        with lock:
            if not done:
                done.append(True)
                run(module)
        if attribute in vars(module):
            return vars(module)[attribute]
        raise AttributeError(f"module {name!r} has no attribute {attribute!r}")

    vars(module)["__getattr__"] = __getattr__
    sys.modules[name] = module
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, module)
