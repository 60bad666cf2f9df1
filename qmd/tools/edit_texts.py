"""What the tools of the toolset ``edit`` and their commands say of edits and undos."""

from __future__ import annotations

from collections.abc import Iterator

from qmd.values.edits import EditedNote, UndoneFile, UndoReply
from qmd.values.moves import MovedNote
from qmd.values.printable import one_line

#: The text for a move shows the diffs of so many notes.
MAX_DIFFS = 20


def edited(note: EditedNote, *, preview: bool) -> str:
    """The text for an edit: what was done, the docid, and the diff."""
    if not note.diff:
        return f"Nothing differs; {one_line(note.file)} ({note.docid}) stays as it is."
    if preview:
        first = f"Preview, nothing was written: {one_line(note.file)} is {note.docid}"
    else:
        first = f"Edited {one_line(note.file)}, now {note.docid} (change {note.change})"
    return _with_problem(f"{first}\n{note.diff}", note.problem)


def deleted(note: EditedNote) -> str:
    """The text for a deletion."""
    file = one_line(note.file)
    if not note.written:
        return f"Preview, nothing was deleted: {file} is {note.docid}\n{note.diff}"
    text = f"Deleted {file} (change {note.change}; its content is in the history)"
    return _with_problem(text, note.problem)


def moved(note: MovedNote) -> str:
    """The text for a move: the new path, the rewritten notes, and the links without a target."""
    return "\n".join(_moved_lines(note))


def _moved_lines(note: MovedNote) -> Iterator[str]:
    before, after = one_line(note.moved_from), one_line(note.file)
    if note.written:
        yield f"Moved {before} to {after}, now {note.docid} (change {note.change})"
    else:
        docid = "" if note.docid is None else f" ({note.docid})"
        yield f"Preview, nothing was written: {before}{docid} would move to {after}"
    if note.notes:
        verb = "Rewrote" if note.written else "It would rewrite"
        yield f"{verb} {_count(note.links, 'link')} in {_count(note.notes, 'note')}:"
    for number, rewritten in enumerate(note.rewritten):
        yield f"- {one_line(rewritten.file)}: {_count(rewritten.links, 'link')}"
        if number < MAX_DIFFS and rewritten.diff:
            yield rewritten.diff.rstrip("\n")
    if note.notes > len(note.rewritten):
        yield f"- and {note.notes - len(note.rewritten):,} more"
    if note.unchanged_links:
        yield f"{_count(note.unchanged_links, 'link')} not rewritten, without its target now:"
    for link in note.unchanged:
        line = "" if link.line is None else f":{link.line}: {link.link}"
        yield one_line(f"- {link.file}{line} ({link.reason.rstrip('.')})")
    if note.unchanged_links > len(note.unchanged):
        yield f"- and {note.unchanged_links - len(note.unchanged):,} more"
    if note.problem is not None:
        yield f"Not searchable there: {one_line(note.problem)}"


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def undone(reply: UndoReply) -> str:
    """The text for an undo: each file of each change, and why others were left alone."""
    return _with_problem("\n".join(_undone_lines(reply)), reply.problem)


def _undone_lines(reply: UndoReply) -> Iterator[str]:
    for change in reply.undone:
        yield f"Undid change {change.change} ({change.tool}, {change.created[:19]}Z):"
        yield from (one_line(f"- {_file(file)}") for file in change.files)
    for refused in reply.refused:
        yield (
            f"Change {refused.change} ({refused.tool}, {refused.created[:19]}Z) was not undone:"
            f" {one_line(f'{refused.file}: {refused.reason}')}"
        )
        if refused.diff:
            yield refused.diff.rstrip("\n")
    if reply.not_kept:
        yield f"Earlier changes of the session that are not kept any more: {reply.not_kept}"
    if reply.change is not None:
        yield f"This undo is change {reply.change}."


def _file(file: UndoneFile) -> str:
    if file.moved_from is not None:
        return f"{file.moved_from} moved back to {file.file}"
    if file.action == "unchanged":
        return f"{file.file}: as it was before"
    return f"{file.file} {file.action}"


def _with_problem(text: str, problem: str | None) -> str:
    return text if problem is None else f"{text}\nNot searchable yet: {one_line(problem)}"
