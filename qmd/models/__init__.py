"""
Chooses, opens, guards and lists the models of a knowledge base.

Its modules can be used as attributes, and are loaded when they first are: those that open models
take a twentieth of a second, which a search by words must not pay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.models import catalogue as catalogue
    from qmd.models import guard as guard

__getattr__ = lazy.load(__name__)
