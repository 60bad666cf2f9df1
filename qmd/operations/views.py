"""Views: tables of notes by their properties."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

from qmd.errors import (
    AmbiguousNameError,
    CollectionNotFoundError,
    DocumentNotFoundError,
    NotFoundError,
)
from qmd.operations.arguments import InCollection, Limit
from qmd.operations.definition import Replied, operation
from qmd.values.facts import Describe, Shell
from qmd.values.printable import one_line
from qmd.values.views import ViewList

if TYPE_CHECKING:
    from qmd.kb import KnowledgeBase

#: A text that is no name of a note.
_DESCRIBED = re.compile(
    r"\s*((table|list|task|calendar)(\s|$)|(name|query|from|tags|where|columns|sort|group|limit):\s)",
    re.IGNORECASE,
)

FAMILY = {"toolset": "graph", "group": "read"}


def _tables(replied: Replied) -> str:
    listed: ViewList = replied.value
    parts = []
    for each in listed.views:
        heading = [one_line(each.name)] if each.name else []
        empty = [] if each.rows or each.problem else ["No note is in it."]
        parts += [*heading, each.markdown.rstrip("\n"), *empty]
    return "\n\n".join(parts)


def _shows_none(listed: ViewList) -> bool:
    return all(view.problem for view in listed.views)


@operation(
    text=_tables,
    fails=_shows_none,
    command="view",
    examples=(
        "qmd view Books",
        "qmd view 'TABLE rating FROM #book WHERE rating > 3 SORT rating DESC'",
        "qmd view notes/Books.base --json",
    ),
    title="Table of notes",
    zh="按属性列出笔记的表格：笔记中 qmd、dataview、base 代码块所描述的，或 text 所描述的。只读。",
    errors=(
        DocumentNotFoundError,
        AmbiguousNameError,
        NotFoundError,
        CollectionNotFoundError,
    ),
)
def view(
    kb: KnowledgeBase,
    view: Annotated[
        str,
        Describe(
            "A note with views, a path .base, or a view: TABLE rating FROM #book WHERE rating > 3"
            " SORT rating DESC; or YAML with query, from, tags, where, columns, sort, group, limit",
            zh="含有视图的笔记、.base 文件的路径，或视图本身："
            "TABLE rating FROM #book WHERE rating > 3 SORT rating DESC；"
            "或 YAML，其键为 query、from、tags、where、columns、sort、group、limit",
        ),
        Shell("VIEW|-", completes="documents", stdin=True),
    ],
    collection: InCollection = None,
    limit: Limit = 200,
) -> ViewList:
    """
    Show tables of notes by their properties.

    A note describes them in blocks of code: qmd, dataview (TABLE and LIST) or base. They are only
    read.

    If none can be shown, the exit code is 1.
    """
    if _DESCRIBED.match(view):
        return kb.views(text=view, collection=collection, limit=limit)
    return kb.views(view, collection=collection, limit=limit)
