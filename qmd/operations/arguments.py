"""Arguments that several operations have, each described once."""

from __future__ import annotations

from typing import Annotated

from qmd.values.facts import Describe, InSchema, Range, Shell
from qmd.values.graph import MAX_LISTED

File = Annotated[
    str,
    Describe(
        "A name as get takes it (path, note name, #docid)",
        zh="get 所接受的名称（路径、笔记名、#docid）",
    ),
    Shell(completes="documents"),
]
InCollection = Annotated[
    str | None,
    Describe("Only this collection", zh="只查这一个集合"),
    Shell("NAME", "-c", "--collection", completes="collections"),
]
#: In the shell ``--all`` stands for None; servers have no list without a limit.
Limit = Annotated[
    int | None, Range(1, MAX_LISTED), Describe("Most items to list", zh="最多列出多少条")
]
#: A day of the calendar in a schema; of leap years only the first 28 days of February.
DAY = (
    "20[0-9]{2}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)"
    "|(0[13578]|1[02])-31)"
)
#: What `qmd.search.query` reads, but not every spelling of it.
TIME_OR_SPAN = InSchema(
    pattern=r"^(|[0-9]{1,6}(m|h|d|w|mo|y)|today|yesterday"
    r"|20[0-9]{2}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8]))$"
)
