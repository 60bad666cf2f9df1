"""Tasks: the list items of notes that are to be done."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, NamedTuple

from qmd.records import dataclass
from qmd.values.facts import Describe, OmitDefault, Range
from qmd.values.search import DocumentInfo

TaskStatus = Literal["open", "doing", "done", "cancelled"]
#: The words for a priority, the highest first.
PRIORITIES = ("highest", "high", "medium", "low", "lowest")


class Task(NamedTuple):
    """
    A task of a document.

    Attributes:
        line: From 1.
        text: What is to be done, on one line, without the dates and the priority.
        tags: Its own and those of the frontmatter, without ``#``, in lower case.
        priority: 1 is the highest, 5 the lowest; None without one.
        due, scheduled, start, finished: Days, in ISO 8601; None if the task does not say.
    """

    line: int
    status: TaskStatus
    text: str
    tags: tuple[str, ...] = ()
    priority: int | None = None
    due: str | None = None
    scheduled: str | None = None
    start: str | None = None
    finished: str | None = None


@dataclass(frozen=True, slots=True)
class ListedTask:
    """A task with its note."""

    SENT: ClassVar[tuple[str, ...]] = (
        *("file", "line", "text", "status", "due", "priority", "scheduled", "start", "finished"),
        *("tags", "title", "docid"),
    )

    document: DocumentInfo
    line: Annotated[int, Range(1)]
    text: str
    status: Annotated[TaskStatus, Describe("open, doing, done or cancelled")]
    due: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    priority: Annotated[str | None, Describe("highest to lowest"), OmitDefault()] = None
    scheduled: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    start: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    finished: Annotated[str | None, Describe("A day"), OmitDefault()] = None
    tags: Annotated[tuple[str, ...], Describe("Without #"), OmitDefault()] = ()

    @property
    def file(self) -> Annotated[str, Describe("collection/path; get takes it")]:
        return self.document.file

    @property
    def title(self) -> str:
        return self.document.title

    @property
    def docid(self) -> str:
        return self.document.docid


@dataclass(frozen=True, slots=True)
class TaskList:
    """The tasks of all notes: by the day when they are due, then by priority and file."""

    tasks: tuple[ListedTask, ...]
    total: Annotated[int, Range(0), Describe("How many there are in all")]
