"""The ids of headings and blocks, to which links lead."""

from __future__ import annotations

import re

_NO_SLUG = re.compile(r"[^\w\- ]")


def heading_id(text: str) -> str:
    """The id of the first heading with this text."""
    return f"h-{_NO_SLUG.sub('', text.casefold()).strip().replace(' ', '-')}"


def link_id(anchor: str) -> str:
    """The id that a link leads to by what stands behind its ``#``: a heading, or ``^block``."""
    last = anchor.rpartition("#")[2]
    return f"b-{last[1:]}" if last.startswith("^") else heading_id(last)
