"""Views: tables of notes by their properties, which blocks of code in notes describe."""

from __future__ import annotations

from typing import Annotated

from qmd.records import dataclass
from qmd.values.facts import Describe, OmitDefault, Range
from qmd.values.printable import one_line


@dataclass(frozen=True, slots=True)
class ViewRow:
    """
    A note of a view.

    Attributes:
        cells: One Markdown text for each column; "" for a value that the note lacks.
        group: What its group has in common, as Markdown; "" without groups.
    """

    file: Annotated[str, Describe("collection/path; get takes it")]
    cells: Annotated[tuple[str, ...], Describe("Markdown, one for each column")]
    group: Annotated[str, OmitDefault()] = ""


@dataclass(frozen=True, slots=True)
class View:
    """
    A table of notes.

    Attributes:
        line: Of the note that has its block; None if it comes from elsewhere.
        total: How many notes it has without a limit.
        problem: Why there is no table; "" if there is one.
    """

    name: str
    columns: tuple[str, ...] = ()
    rows: tuple[ViewRow, ...] = ()
    total: Annotated[int, Range(0), Describe("Notes without a limit")] = 0
    line: Annotated[int | None, Describe("Of its block in the note"), OmitDefault()] = None
    problem: Annotated[str, Describe("Why there is no table"), OmitDefault()] = ""

    @property
    def markdown(self) -> str:
        """The table, or one for each group, or the problem."""
        if self.problem:
            return f"> [!warning] {self.problem}\n"
        parts: list[str] = []
        group = None
        for row in self.rows:
            if group != row.group or not parts:
                group = row.group
                parts += [f"\n**{group}**\n"] if group else [""] if parts else []
                parts += [_line(self.columns), _line(["---"] * len(self.columns))]
            parts.append(_line(row.cells))
        if not self.rows:
            parts += [_line(self.columns), _line(["---"] * len(self.columns))]
        if self.total > len(self.rows):
            parts.append(f"\n… {self.total - len(self.rows):,} more")
        return "\n".join(parts).lstrip("\n") + "\n"


@dataclass(frozen=True, slots=True)
class ViewList:
    """The views of a note, in the order of its text."""

    views: tuple[View, ...]


def _line(cells: tuple[str, ...] | list[str]) -> str:
    escaped = (one_line(cell).replace("\\|", "|").replace("|", "\\|") for cell in cells)
    return f"| {' | '.join(escaped)} |"
