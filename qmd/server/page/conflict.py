"""Shows two edits of one note beside each other, and reads what the person chose."""

from __future__ import annotations

from dataclasses import dataclass

from qmd.files.edits.merge import Choice, Part, PartKind
from qmd.server.page.browser import Form

_CONTEXT_LINES = 3
_MAX_CHOICES = 10_000


@dataclass(frozen=True, slots=True)
class ShownPart:
    """
    A part as the page shows it; texts are lists of lines.

    Attributes:
        number: That of a conflict, from 0.
        left_out: How many lines between ``base`` and ``mine`` are not shown, if all are the same.
    """

    kind: PartKind
    base: list[str]
    mine: list[str]
    theirs: list[str]
    number: int = 0
    left_out: int = 0


def shown_parts(parts: list[Part]) -> list[ShownPart]:
    """What the page shows: of lines that are the same only those next to a change."""
    shown: list[ShownPart] = []
    number = 0
    for at, part in enumerate(parts):
        base, mine, theirs = (
            text.removesuffix("\n").split("\n") if text else []
            for text in (part.base, part.mine, part.theirs)
        )
        if part.kind == "same":
            head = base[:_CONTEXT_LINES] if at else []
            tail = base[-_CONTEXT_LINES:] if at < len(parts) - 1 else []
            if len(head) + len(tail) >= len(base):
                shown.append(ShownPart("same", base, [], []))
            else:
                left_out = len(base) - len(head) - len(tail)
                shown.append(ShownPart("same", head, tail, [], left_out=left_out))
        else:
            shown.append(ShownPart(part.kind, base, mine, theirs, number))
        number += part.kind == "conflict"
    return shown


def choices_in(form: Form) -> dict[int, Choice]:
    """What the person chose for each conflict; "mine" for those without a choice."""
    choices: dict[int, Choice] = {}
    for number in range(_MAX_CHOICES):
        chosen = form.get(f"choice-{number}")
        if not chosen:
            break
        choices[number] = "theirs" if chosen == "theirs" else "both" if chosen == "both" else "mine"
    return choices
