"""An archive of posts, a folder for each author: listed, read, and searched for literals."""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.files.posts import archive as archive

__getattr__ = lazy.load(__name__)
