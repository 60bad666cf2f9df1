"""
A line of Markdown as a person reads it, for the excerpts of hits and backlinks.

A line alone does not say whether it stands in a block of code, so only those signs are left out
that mean the same nearly everywhere: those around links and pictures, pairs of emphasis, the bars
of tables, and what stands before the words of headings, quotes, tasks and items of lists. Numbers
of items stay.
"""

from __future__ import annotations

import re

_SIGNS = re.compile(r"[\[\]`|]|\*\*|~~|==|__")
_QUOTE = re.compile(r"^\s*(?:>\s?)+(?:\[!\w+\][+-]?\s*)?")
_HEADING = re.compile(r"^#{1,6}\s+(?=\S)")
_TASK = re.compile(r"^(\s*)[-*+] \[([^\]])\] ")
_ITEM = re.compile(r"^\s*[-*+]\s+(?=\S)")
_RULE = re.compile(r"^\s*([-*_])(?:\s*\1){2,}\s*$")
_FENCE = re.compile(r"^\s*(?:`{3,}|~{3,})[\w+#.-]*\s*$")
_ROW = re.compile(r"^\s*\|(.*)\|\s*$")
_DELIMITERS = re.compile(r"^\s*\|[\s|:-]*-[\s|:-]*$")
_BAR = re.compile(r"(?<!\\)\|")
_WIKILINK = re.compile(r"!?\[\[([^\[\]|]{1,300})(?:\|([^\[\]]{1,300}))?\]\]")
_LINK = re.compile(r"!?\[([^\[\]]{0,300})\]\([^()\s]{0,1000}\)")
_PAIRS = re.compile(r"(\*\*|~~|==|`)(?=\S)([^*~=`]{1,500}?)(?<=\S)\1")


def plain_line(line: str) -> str:
    """
    A line without the signs of Markdown; "" for a line of nothing else, as one that draws a rule.

    ``[[Plan#Next|the plan]]`` is "the plan", ``## Next`` is "Next", ``- [x] done`` is "☑ done",
    ``| milk | 2 l |`` is "milk · 2 l". The time grows linearly with the line.
    """
    if _RULE.match(line) or _FENCE.match(line) or _DELIMITERS.match(line):
        return ""
    line = _HEADING.sub("", _QUOTE.sub("", line))
    line = _TASK.sub(lambda task: f"{task[1]}{'☐' if task[2] == ' ' else '☑'} ", line)
    line = _ITEM.sub("", line)
    line = _WIKILINK.sub(lambda link: link[2] or link[1].lstrip("#").replace("#", " > "), line)
    line = _PAIRS.sub(r"\2", _LINK.sub(r"\1", line))
    if row := _ROW.match(line):
        cells = (cell.strip().replace("\\|", "|") for cell in _BAR.split(row[1]))
        return " · ".join(filter(None, cells))
    return line


def has_signs(query: str) -> bool:
    """Whether a query asks for signs that `plain_line` leaves out."""
    return _SIGNS.search(query) is not None
