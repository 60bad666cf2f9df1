"""
Documents of which the query is a name. They lead the hits of `search` and `query`.

A person who types the exact name of a note wants this note, however often others mention the name.
The names are looked up in indexes, by `qmd.values.names`: in any letter case and Unicode form.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmd import lazy
from qmd.search.query.language import ParsedQuery
from qmd.store.sql.documents import NAME_KINDS, NameKind

if TYPE_CHECKING:
    from qmd.store import Reader, Selection

#: At most this many documents lead: hundreds may share a title such as "Notes", and then the name
#: does not tell which is meant.
MOST_LEADING = 10
#: At most this many documents of a name are looked at.
MOST_NAMED = 1000
#: No name of a file is longer, and a longer title is no name that people type.
MAX_NAME = 300

_WIKILINK = lazy.pattern(r"!?\[\[([^\[\]|#^]+)(?:[|#^][^\[\]]*)?\]\]")
_NOTE_FILE = lazy.pattern(r"(.*\S)\.(?:md|markdown)", re.IGNORECASE | re.DOTALL)


def written_name(text: str) -> str | None:
    """
    The name in a query that is a link or a file name: ``[[MOC|shown]]`` and ``MOC.md`` → ``MOC``.

    None for any other query.
    """
    text = text.strip()
    if len(text) > MAX_NAME:
        return None
    link = _WIKILINK.fullmatch(text) if "[[" in text else None
    name = link[1].strip() if link else text
    file = _NOTE_FILE.fullmatch(name) if "." in name else None
    name = file[1] if file else name
    return None if name == text else name


def find_named(
    reader: Reader, texts: Sequence[str], query: ParsedQuery, selection: Selection
) -> dict[int, NameKind]:
    """
    Document id → which of its names one of the texts is.

    Nothing for a query of alternatives, prefixes, or fields other than the title.

    Args:
        query: The query that the texts are of.
        selection: The documents that may be hits.
    """
    if any(len(group) > 1 for group in query.groups) or query.only_narrows:
        return {}
    if any(term.field not in (None, "title") or term.prefix for term in query.terms):
        return {}
    named: dict[int, NameKind] = {}
    for name in dict.fromkeys(" ".join(text.split()) for text in texts):
        if 0 < len(name) <= MAX_NAME:
            for kind in NAME_KINDS:
                for document_id in reader.documents.named(kind, name, selection, MOST_NAMED):
                    named.setdefault(document_id, kind)
    return named
