"""
Describes a change that a tool is about to write, in lines that a person can judge.

The lines hold exactly what will be written; control characters and invisible characters are shown
as escapes.
"""

from __future__ import annotations

from qmd.errors import DecodeError
from qmd.files.edits.diff import diff_lines, single_lines, split_lines
from qmd.parse.decode import decode
from qmd.values.printable import exact, one_line
from qmd.values.proposed import (
    Proposed,
    ProposedDeletion,
    ProposedFields,
    ProposedMove,
    ProposedText,
)

_LINES, _LINE_CHARS = 120, 2_000  # shown at first


def heading(proposed: Proposed) -> str:
    """One line, safe for a terminal, that names the tool, the change and the file."""
    action = "change the metadata of"
    if isinstance(proposed, ProposedText):
        size = f"{len(proposed.after):,} bytes"
        if proposed.before is None:
            action = f"make a new file of {size}:"
        else:
            action = f"change {len(proposed.before):,} bytes to {size} in"
    elif isinstance(proposed, ProposedDeletion):
        action = f"delete, with its {len(proposed.before):,} bytes,"
    elif isinstance(proposed, ProposedMove):
        action = "move"
    return f"{proposed.tool} would {action} {exact(one_line(str(proposed.path)))}"


def described(proposed: Proposed) -> list[str]:
    """The whole change, safe for a terminal: a unified diff, or the fields of a photo."""
    if isinstance(proposed, ProposedFields):
        return [
            one_line(exact(line))
            for field in proposed.after
            for line in (
                f"@ {field}",
                *(f"- {value}" for value in proposed.before.get(field, ())),
                *(f"+ {value}" for value in proposed.after[field]),
            )
        ]
    if isinstance(proposed, ProposedMove):
        return [exact(one_line(f"to {proposed.target}"))]
    if isinstance(proposed, ProposedDeletion):
        deleted = split_lines(_text(proposed.before))
        return [exact(line) for line in single_lines(f"-{line}" for line in deleted)]
    after = _text(proposed.after)
    if proposed.before is None:
        return [exact(line) for line in single_lines(f"+{line}" for line in split_lines(after))]
    before = _text(proposed.before)
    if before == after:
        return ["(It holds these words already.)"]
    return list(map(exact, diff_lines(before, after)))


def shortened(lines: list[str]) -> tuple[list[str], str]:
    """The beginning of a description, and a phrase that says how much is left out."""
    shown = [line[:_LINE_CHARS] for line in lines[:_LINES]]
    more_lines = len(lines) - len(shown)
    more_chars = sum(map(len, lines)) - sum(map(len, shown))
    if not more_lines and not more_chars:
        return shown, ""
    left_out = f"{more_chars:,} more characters"
    if more_lines:
        left_out = f"{more_lines:,} more lines ({more_chars:,} characters)"
    return [*shown, f"… {left_out}"], left_out


def _text(data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        pass
    try:
        return decode(data).text
    except DecodeError:
        return f"({len(data):,} bytes that are no text)"
