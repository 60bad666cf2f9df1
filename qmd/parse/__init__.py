"""
Parses the bytes of a file into a document and its chunks, without input or output.

Its modules that few files need can be used as attributes, and are loaded when they first are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmd import lazy

if TYPE_CHECKING:
    from qmd.parse import dates as dates
    from qmd.parse import formats as formats
    from qmd.parse import frontmatter as frontmatter
    from qmd.parse import lines as lines
    from qmd.parse import plugins as plugins
    from qmd.parse import yaml_values as yaml_values

#: To be raised when the same bytes give another result; stored documents are then parsed anew.
PARSER_VERSION: int = 5

__getattr__ = lazy.load(__name__)
