"""
Documents of which the query is a name. They lead the hits of `search` and `query`.

A person who types the exact name of a note wants this note, however often others mention the name.
The names are looked up in indexes, by `qmd.values.names`: in any letter case and Unicode form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

from qmd.search.candidates import Candidate
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

_WIKILINK = re.compile(r"!?\[\[([^\[\]|#^]+)(?:[|#^][^\[\]]*)?\]\]")
_NOTE_FILE = re.compile(r"(.*\S)\.(?:md|markdown)", re.IGNORECASE | re.DOTALL)


def written_name(text: str) -> str | None:
    """
    The name in a query that is a link or a file name: ``[[MOC|shown]]`` and ``MOC.md`` → ``MOC``.

    None for any other query.
    """
    text = text.strip()
    if len(text) > MAX_NAME:
        return None
    link = _WIKILINK.fullmatch(text)
    name = link[1].strip() if link else text
    file = _NOTE_FILE.fullmatch(name)
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


def lead_by_name(
    candidates: Sequence[Candidate], named: Mapping[int, NameKind], *, with_explanation: bool
) -> list[Candidate]:
    """
    Put the named documents first: by the name of the file, by an alias, by the title.

    Documents of the same kind keep their order, and so do the others. A blend that is less than one
    behind it is raised to it, so that candidates stay sorted by their blends.

    Args:
        candidates: Best first.
    """
    if not named:
        return list(candidates)
    leading = [each for each in candidates if each.document_id in named]
    leading.sort(key=lambda each: NAME_KINDS.index(named[each.document_id]))
    leading = leading[:MOST_LEADING]
    leading_ids = {each.document_id for each in leading}
    ordered = leading + [each for each in candidates if each.document_id not in leading_ids]
    blends = list(accumulate((each.blend for each in reversed(ordered)), max))[::-1]
    return [
        _raised(each, blend, named[each.document_id] if position < len(leading) else None)
        if with_explanation
        else each._replace(blend=blend)
        for position, (each, blend) in enumerate(zip(ordered, blends, strict=True))
    ]


def _raised(candidate: Candidate, blend: float, kind: NameKind | None) -> Candidate:
    """The candidate with another blend; its explanation tells the name and its own blend."""
    if kind is None:
        return candidate._replace(blend=blend)
    by_name = {"name": {"is": kind, "blend": candidate.blend}}
    return candidate._replace(blend=blend, explanation={**by_name, **(candidate.explanation or {})})
