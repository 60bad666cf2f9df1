"""Reports the state of an installation and of a database; restores and rescues a database."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.health import doctor as doctor
    from qmd.health import restore as restore
    from qmd.health import status as status

__getattr__ = lazy.load(__name__)
