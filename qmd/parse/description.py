"""Finds the description of a document: what its frontmatter says that it is about."""

from __future__ import annotations

from collections.abc import Mapping

#: The names under which sites and vaults keep a description; the first that has a text counts.
NAMES = ("description", "summary", "abstract", "excerpt", "desc")

#: Characters of a description. A longer one is no description, and its rest is found all the same,
#: because full text has the whole frontmatter.
MAX_DESCRIPTION = 4000


def find_description(properties: Mapping[str, object]) -> str:
    """The description in the frontmatter, on one line; empty if there is none."""
    for name in NAMES:
        value = properties.get(name)
        if isinstance(value, str):
            description = " ".join(value.split())[:MAX_DESCRIPTION].rstrip()
            if description:
                return description
    return ""
