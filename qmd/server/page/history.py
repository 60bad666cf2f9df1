"""The earlier contents of a file, at ``/history/COLLECTION/PATH``, and restoring one of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from itertools import groupby, zip_longest
from typing import Literal, NamedTuple

from qmd.engine_text import engine_text
from qmd.errors import DecodeError, NotFoundError, QmdError
from qmd.files.edits.diff import MAX_LINE_CHARACTERS, diff_lines
from qmd.kb import KnowledgeBase
from qmd.parse.decode import decode
from qmd.server.page.links import note_address
from qmd.server.page.views import PageView, Shown, Visit
from qmd.system import clock
from qmd.values import Revision

#: Bytes of a content that is compared; of a longer one no difference is shown.
MAX_COMPARED = 2_000_000


def _history(visit: Visit) -> Shown:
    """The revisions of a file, and the difference that one of them makes."""
    kb, name = visit.kb, visit.file
    with_now = visit.query("with") == "now"
    revisions = kb.revisions.history(name)
    present = _present(kb, name)
    if not revisions and present is None:
        kb.open_file(name).close()  # raises if there is none
    with_content = [each for each in revisions if each.kind == "content"]
    shown_day = visit.query("day")
    chosen, last = _chosen(visit, revisions, with_content)
    diff, with_others = None, False
    if chosen is not None and last is not None and chosen.kind == "content":
        before = _text(kb, name, chosen)
        after = present
        if not with_now:
            left = _left_by(kb, name, last, with_content, present)
            if left is not None:
                after = left
            else:
                at = with_content.index(last)
                after = _text(kb, name, with_content[at - 1]) if at else present
                with_others = last.hash_after is not None  # which early versions did not keep
        if before is not None:
            diff = diff_rows(before, after or "")
    values = {
        "file": name,
        "exists": present is not None,
        "days": [(date, list(each)) for date, each in groupby(revisions, _day_of)],
        "shown_day": shown_day,
        "chosen": chosen,
        "diff": diff,
        "with_now": with_now,
        "with_others": with_others,
        "read_only": not visit.site.may_write_in(name.partition("/")[0]),
    }
    return Shown("history.html", values)


def _chosen(
    visit: Visit, revisions: Sequence[Revision], with_content: Sequence[Revision]
) -> tuple[Revision | None, Revision | None]:
    """The first and the last of the changes that are shown as one; they may be the same."""
    written, shown_day = visit.query("revision"), visit.query("day")
    if shown_day:
        of_day = [each for each in with_content if _day_of(each) == shown_day]
        if not of_day:
            raise NotFoundError(
                engine_text("No change of {name} on {day} is kept.", name=visit.file, day=shown_day)
            )
        return of_day[-1], of_day[0]
    chosen = next(iter(with_content), None)
    if written:
        number = visit.number(written)
        chosen = None if number is None else visit.kb.revisions.before(revisions, number)
        if chosen is None:
            raise NotFoundError(
                engine_text(
                    "No change {number} of {name} is kept.", number=written[:20], name=visit.file
                )
            )
    return chosen, chosen


def _restore(visit: Visit) -> str:
    number = visit.number(visit["revision"])
    if number is None:
        raise NotFoundError("The form names no revision.")
    restored = visit.kb.revisions.restore(visit.file, number)
    visit.notify(visit.text("history.restored"), restored.problem)
    return note_address(visit.file)


def _day_of(revision: Revision) -> str:
    """The day of a change in the server's time zone, ``2026-11-20``."""
    return clock.local(revision.created).strftime("%Y-%m-%d")


VIEWS = (PageView("/history/{file:file}", _history, _restore, "writer"),)


def _present(kb: KnowledgeBase, name: str) -> str | None:
    """The text of the document with just this name; None if there is none, or it is too long."""
    try:
        read = kb.get(name)
    except QmdError:
        return None
    is_it = read.document.file == name and len(read.text) <= MAX_COMPARED
    return read.text if is_it else None


def _text(kb: KnowledgeBase, name: str, revision: Revision) -> str | None:
    """The text of a revision; None if it is not text, or too long."""
    if revision.bytes > MAX_COMPARED:
        return None
    try:
        return decode(kb.revisions.content(name, revision.number)).text
    except (DecodeError, NotFoundError):
        return None


def _left_by(
    kb: KnowledgeBase,
    name: str,
    revision: Revision,
    with_content: Sequence[Revision],
    present: str | None,
) -> str | None:
    """The text that a change left; None if it is not kept, as another program changed it."""
    if revision.hash_after == "":
        return ""
    kept = next((each for each in with_content if each.hash == revision.hash_after), None)
    if kept is not None:
        return _text(kb, name, kept)
    if present is not None and _sha256(present.encode(errors="replace")) == revision.hash_after:
        return present
    # The file of a text that is not UTF-8, or begins with a mark, has another hash than the text.
    try:
        with kb.open_file(name) as opened:
            content = opened.read(MAX_COMPARED)
        return decode(content).text if _sha256(content) == revision.hash_after else None
    except (QmdError, OSError):
        return None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# --- two texts beside each other ------------------------------------------------------


#: Rows that are shown of one difference.
MAX_ROWS = 600

_MAX_COMPARISONS = 20_000  # words of a line times those of the other
_LEAST_ALIKE = 0.4  # below, two lines are shown as two lines
_WORD = re.compile(r"[A-Za-z0-9\u00c0-\u024f]+|\s+|.", re.DOTALL)
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")


class Piece(NamedTuple):
    """A piece of a line; ``is_changed`` if the other line has something else there."""

    text: str
    is_changed: bool = False


class DiffRow(NamedTuple):
    """
    A row: a line that was removed, added or is the same, or where the next lines stand.

    ``line`` is its number in the text that has it; 0 for a remark.
    """

    kind: Literal["removed", "added", "same", "place"]
    line: int
    pieces: tuple[Piece, ...]


class ShownDiff(NamedTuple):
    """``left_out``: rows that are not shown. ``added`` and ``removed`` count lines."""

    rows: list[DiffRow]
    added: int
    removed: int
    left_out: int


def diff_rows(before: str, after: str) -> ShownDiff:
    """The difference of two texts; line ends are compared as ``\\n``."""
    lines = diff_lines(before.replace("\r\n", "\n"), after.replace("\r\n", "\n"))
    return ShownDiff(
        list(_rows(lines[:MAX_ROWS])),
        sum(line.startswith("+") for line in lines),
        sum(line.startswith("-") for line in lines),
        max(0, len(lines) - MAX_ROWS),
    )


def _rows(lines: Sequence[str]) -> Iterator[DiffRow]:
    old = new = 0
    removed: list[str] = []
    added: list[str] = []
    for line in [*lines, ""]:
        sign, text = line[:1], line[1:]
        if sign == "-":
            removed.append(text)
            continue
        if sign == "+":
            added.append(text)
            continue
        yield from _changed(removed, added, old, new)
        old, new = old + len(removed), new + len(added)
        removed, added = [], []
        hunk = _HUNK.match(line)
        if hunk:
            old, new = int(hunk[1]), int(hunk[2])
            yield DiffRow("place", new or old, ())
        elif sign == "\\":
            yield DiffRow("place", 0, (Piece(text.strip()),))
        elif line:
            yield DiffRow("same", new, (Piece(_cut(text)),))
            old, new = old + 1, new + 1


def _changed(removed: Sequence[str], added: Sequence[str], old: int, new: int) -> Iterator[DiffRow]:
    """The removed lines, then those in their place, with the words marked that differ."""
    pairs = [_pieces(a, b) for a, b in zip_longest(removed, added)]
    for at in range(len(removed)):
        yield DiffRow("removed", old + at, pairs[at][0])
    for at in range(len(added)):
        yield DiffRow("added", new + at, pairs[at][1])


def _pieces(a: str | None, b: str | None) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    whole = (Piece(_cut(a or "")),), (Piece(_cut(b or "")),)
    if a is None or b is None or max(len(a), len(b)) > MAX_LINE_CHARACTERS:
        return whole
    old, new = _WORD.findall(a), _WORD.findall(b)
    if len(old) * len(new) > _MAX_COMPARISONS:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < _LEAST_ALIKE:
        return whole
    left, right = [], []
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        is_changed = kind != "equal"
        left.append(Piece("".join(old[a0:a1]), is_changed))
        right.append(Piece("".join(new[b0:b1]), is_changed))
    return tuple(each for each in left if each.text), tuple(each for each in right if each.text)


def _cut(line: str) -> str:
    return line if len(line) <= MAX_LINE_CHARACTERS else f"{line[:MAX_LINE_CHARACTERS]}…"
