"""Arguments that several operations have, each described once."""

from __future__ import annotations

from typing import Annotated

from qmd.values.facts import DAY, MONTH, TIME_OF_DAY, Describe, InSchema, Range, Shell
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
#: What `qmd.search.query` reads, but not every spelling of it.
TIME_OR_SPAN = InSchema(
    pattern=rf"^(|[0-9]{{1,6}}(m|h|d|w|mo|y)|today|yesterday|{MONTH}|{DAY}({TIME_OF_DAY})?)$"
)
