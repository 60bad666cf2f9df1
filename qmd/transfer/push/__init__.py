"""Sends the folders of this machine to the server of a team."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.transfer.push import folder as folder
    from qmd.transfer.push import remote as remote

__getattr__ = lazy.load(__name__)
