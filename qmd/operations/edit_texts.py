"""What tools and commands say of edits and undos."""

from __future__ import annotations

from collections.abc import Iterator

from qmd.system import clock
from qmd.values import writing
from qmd.values.text import counted, one_line

#: The text for a move shows the diffs of so many notes.
MAX_DIFFS = 20
#: What a tool did to a file, in words.
DONE: dict[writing.FileAction, str] = {
    "create": "created",
    "write": "changed",
    "move": "moved",
    "delete": "deleted",
}


def edited(note: writing.EditedNote) -> str:
    """The text for an edit: what was done, the docid, and the diff."""
    if not note.diff:
        return f"Nothing differs; {one_line(note.file)} ({note.docid}) stays as it is."
    if note.written:
        first = f"Edited {one_line(note.file)}, now {note.docid} (change {note.change})"
    else:
        first = f"Preview, nothing was written: {one_line(note.file)} is {note.docid}"
    return _with_problem(f"{first}\n{note.diff}", note.problem)


def deleted(note: writing.EditedNote) -> str:
    """The text for a deletion."""
    file = one_line(note.file)
    if not note.written:
        docid = note.docid or "no document"
        return f"Preview, nothing was deleted: {file} is {docid}\n{note.diff}"
    text = f"Deleted {file} (change {note.change}; its content is in the history)"
    return _with_problem(text, note.problem)


def moved(note: writing.MovedNote) -> str:
    """The text for a move: the new path, the rewritten notes, and the links without a target."""
    return "\n".join(_moved_lines(note))


def _moved_lines(note: writing.MovedNote) -> Iterator[str]:
    before, after = one_line(note.moved_from), one_line(note.file)
    if note.written:
        now = "" if note.docid is None else f", now {note.docid}"
        yield f"Moved {before} to {after}{now} (change {note.change})"
    else:
        docid = "" if note.docid is None else f" ({note.docid})"
        yield f"Preview, nothing was written: {before}{docid} would move to {after}"
    if note.notes:
        verb = "Rewrote" if note.written else "It would rewrite"
        yield f"{verb} {counted(note.links, 'link')} in {counted(note.notes, 'note')}:"
    for number, rewritten in enumerate(note.rewritten):
        yield f"- {one_line(rewritten.file)}: {counted(rewritten.links, 'link')}"
        if number < MAX_DIFFS and rewritten.diff:
            yield rewritten.diff.rstrip("\n")
    if note.notes > len(note.rewritten):
        yield f"- and {note.notes - len(note.rewritten):,} more"
    if note.unchanged_links:
        yield f"{counted(note.unchanged_links, 'link')} not rewritten, without its target now:"
    for link in note.unchanged:
        line = "" if link.line is None else f":{link.line}: {link.link}"
        yield one_line(f"- {link.file}{line} ({link.reason.rstrip('.')})")
    if note.unchanged_links > len(note.unchanged):
        yield f"- and {note.unchanged_links - len(note.unchanged):,} more"
    if note.problem is not None:
        yield f"Not searchable there: {one_line(note.problem)}"


def undone(reply: writing.UndoReply, *, redo: str, by_number: str) -> str:
    """
    The text for an undo: each file of each change, and why others were left alone.

    Args:
        redo: How the reader takes the undo back.
        by_number: How the reader undoes the change ``{number}``.
    """
    return _with_problem("\n".join(_undone_lines(reply, redo, by_number)), reply.problem)


def _undone_lines(reply: writing.UndoReply, redo: str, by_number: str) -> Iterator[str]:
    for change in reply.undone:
        yield _undone(change)
        if len(change.files) > 1:
            yield from (one_line(f"- {_file(file)}") for file in change.files)
    for refused in reply.refused:
        yield (
            f"Change {refused.change} ({refused.tool}, {_ago(refused.created)}) was not undone:"
            f" {one_line(f'{refused.file}: {refused.reason}')}"
        )
        if refused.diff:
            yield refused.diff.rstrip("\n")
    if reply.earlier is not None:
        is_redo = all(refused.tool == "undo" for refused in reply.refused)
        which = (
            "An earlier undo can be taken back" if is_redo else "An earlier change can be undone"
        )
        yield f"{which}: {by_number.format(number=reply.earlier)}"
    if reply.not_kept:
        yield f"Earlier changes of the session that are not kept any more: {reply.not_kept}"
    if not all(change.is_redo for change in reply.undone):
        yield f"To redo: {redo}"


def _undone(change: writing.UndoneChange) -> str:
    """What a change had done, which is undone now; or what is done again, as an undo is undone."""
    verb, at = ("Redid", "undone ") if change.is_redo else ("Undid", "")
    by = "" if change.is_redo else f", by {change.tool}"
    return f"{verb}: {_done(change)}, {at}{_ago(change.created)}{by} (change {change.change})"


def _done(change: writing.UndoneChange) -> str:
    """What was undone or is done again, in words: of several files, the first is named."""
    if change.first is None:
        return "a change that left all files as they were"
    action, file = change.first
    names = [file.file]
    if action == "move" and file.moved_from is not None:
        names = [file.moved_from, file.file] if change.is_redo else [file.file, file.moved_from]
    more = len(change.files) - 1
    also = f" and {counted(more, 'more file')}" if more else ""
    return f"{DONE[action]} {' to '.join(map(one_line, names))}{also}"


def _ago(created: str) -> str:
    """How long ago a time in ISO 8601 was; of one more than a month ago, the local date."""
    moment = clock.parse(created)
    seconds = (clock.parse(clock.now()) - moment).total_seconds()
    if seconds > 31 * 86_400:
        return f"on {moment.astimezone():%Y-%m-%d}"
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(int(seconds // length), unit)} ago"
    return "just now"


def _file(file: writing.UndoneFile) -> str:
    if file.moved_from is not None:
        return f"{file.moved_from} moved back to {file.file}"
    if file.action == "unchanged":
        return f"{file.file}: as it was before"
    return f"{file.file} {file.action}"


def _with_problem(text: str, problem: str | None) -> str:
    return text if problem is None else f"{text}\nNot searchable yet: {one_line(problem)}"
