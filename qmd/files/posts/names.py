"""What the name of a post's file says."""

from __future__ import annotations

import re

from qmd.ingest import scan
from qmd.values import Post

SUFFIX = ".md"

# Digits are checked, for a title may have "_" where a timestamp has it.
_DATED = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2})_(?:[0-9]{2}_[0-9]{2}_[0-9]{2}_)?(.*)", re.DOTALL)


_LINE_ENDS = re.compile("[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")


def printable(path: str) -> str:
    """
    A path or name on one line, so that no file name can add a line to a list of posts: a line end
    becomes ``\\n`` and the like. `PostArchive.read` accepts this form as well.
    """
    return _LINE_ENDS.sub(lambda end: ascii(end[0])[1:-1], scan.printable(path))


def post_at(path: str) -> Post:
    """``author/album/YYYY-MM-DD[_HH_MM_SS]_title.md``; another name is a title as a whole."""
    path = printable(path)
    stem = path.rpartition("/")[2].removesuffix(SUFFIX)
    dated = _DATED.fullmatch(stem)
    if dated is None:
        return Post(path, None, stem)
    day, title = dated.groups()
    return Post(path, day, title)
