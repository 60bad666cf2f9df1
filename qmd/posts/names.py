"""What the name of a post's file says."""

from __future__ import annotations

import re

from qmd.ingest.scan import printable
from qmd.model import Post

SUFFIX = ".md"

# Digits are checked, for a title may have "_" where a timestamp has it.
_DATED = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})_(?:[0-9]{2}_[0-9]{2}_[0-9]{2}_)?(.*)", re.DOTALL)


def post_at(path: str) -> Post:
    """``author/album/YYYY-MM-DD[_HH_MM_SS]_title.md``; another name is a title as a whole."""
    path = printable(path)
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    dated = _DATED.fullmatch(stem)
    if dated is None:
        return Post(path, None, stem)
    day, title = dated.groups()
    return Post(path, day, title)
