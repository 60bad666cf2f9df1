"""
What qmd does, each operation declared once: `definition` says what is derived from a declaration.

A family is a module of this package. It is imported when one of its operations is used, so that
`qmd search` loads none.
"""

from __future__ import annotations

from importlib import import_module

from qmd.operations.definition import Joined, Operation

__all__ = ["FAMILIES", "Joined", "Operation", "every_operation", "joined_of", "operations_of"]

FAMILIES = ("graph",)
"""The modules with operations, in the order of the references."""


def operations_of(family: str) -> list[Operation]:
    """The operations that a module of this package declares, in their order."""
    members = vars(import_module(f"{__name__}.{family}")).values()
    return [each for each in members if isinstance(each, Operation)]


def joined_of(family: str) -> list[Joined]:
    """The tools of a family that stand for several of its operations."""
    members = vars(import_module(f"{__name__}.{family}")).values()
    return [each for each in members if isinstance(each, Joined)]


def every_operation() -> list[Operation]:
    return [each for family in FAMILIES for each in operations_of(family)]
