"""
Chooses, opens, guards and lists the models of a knowledge base.

Its modules can be used as attributes, and are loaded when they first are: those that open models
take a twentieth of a second, which a search by words must not pay.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

    from qmd.models import embedders, guard, remembered

__all__ = ["embedders", "guard", "remembered"]


def __getattr__(name: str) -> ModuleType:
    if name in __all__:
        return import_module(f"qmd.models.{name}")
    raise AttributeError(f"module 'qmd.models' has no attribute {name!r}")
