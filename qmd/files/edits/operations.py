"""
Edits of a note's text: replace a passage or a section, insert, append, prepend.

All functions are pure, keep every character outside of what they change, and give the new text the
line ends of the note. They raise `EditError` if the note has no such place, or more than one.
"""

from __future__ import annotations

import re

from qmd.errors import EditError
from qmd.files.edits.merge import kept_lines
from qmd.files.edits.text_file import LINE_END, UniformText, line_end, with_line_ends
from qmd.parse import frontmatter
from qmd.parse.sections import Section, heading_path, outline_of, section

#: The most occurrences of a text that are counted.
MAX_COUNTED = 100
_MAX_LINES_NAMED = 10
_BLANK_LINES = re.compile(r"(?:[ \t]*(?:\r\n|\r|\n))*")
_LIST_LINE = re.compile(r"[ \t]*(?:[-*+]|\d{1,9}[.)])[ \t]|[ \t]*[|>]")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+([^\r\n]*)")


def replace_once(text: str, old: str, new: str) -> str:
    """Replace the only occurrence of ``old``; all line ends count as equal."""
    part = with_line_ends(old, "\n")
    if not part:
        raise EditError("The text to replace is empty.", hint="Use append or insert_after to add.")
    uniform = UniformText(text)
    positions = _positions(uniform.text, part)
    if not positions:
        raise _no_occurrence(uniform.text, part)
    if len(positions) > 1:
        lines = [uniform.text.count("\n", 0, position) + 1 for position in positions]
        at_least = "at least " if len(positions) == MAX_COUNTED else ""
        raise EditError(
            f"The text to replace occurs {at_least}{len(positions)} times, at {in_words(lines)}.",
            hint="Give more of the text around it, so that it occurs once.",
        )
    start = uniform.original_position(positions[0])
    end = uniform.original_position(positions[0] + len(part))
    return text[:start] + with_line_ends(new, line_end(text)) + text[end:]


def replace_all(text: str, new: str) -> str:
    """
    Replace the whole text. ``new`` has ``\\n`` at the end of each line, whatever the note has.

    Lines that stay keep their line ends; the others get those that most lines have.
    """
    if new == with_line_ends(text, "\n"):
        return text
    end = line_end(text)
    if text.count(end) == len(LINE_END.findall(text)):
        return with_line_ends(new, end)
    ends = LINE_END.findall(text)
    kept = {line: number for number, line in kept_lines(with_line_ends(text, "\n"), new)}
    *lines, last = new.split("\n")
    ended = [
        line + (ends[kept[number]] if number in kept else end) for number, line in enumerate(lines)
    ]
    replaced = "".join([*ended, last])
    # CR before an empty line that ends with LF would be one line end, CR LF.
    is_whole = with_line_ends(replaced, "\n") == new
    return replaced if is_whole else with_line_ends(new, end)


def replace_section(text: str, heading: str, content: str) -> str:
    """
    Replace what stands below a heading, up to the next heading of its level or a higher one.

    The heading and the blank lines around the content stay. If ``content`` begins with the heading
    itself, that line is left out.
    """
    place = find_section(text, heading)
    end = line_end(text)
    start, stop = _trimmed(text, place.body_char, place.end_char)
    content = with_line_ends(_without_heading(content, place), end)
    if content.strip():
        content = content.rstrip("\r\n")
    separated = text[:start]
    if separated and not separated.endswith(("\n", "\r")):  # the heading is the last line
        separated += end
    rest = text[stop:]
    return separated + content + _line_end_before(rest, content, end) + rest


def insert_before(text: str, heading: str, content: str) -> str:
    """Insert lines above a heading, with a blank line between."""
    at = find_section(text, heading).start_char
    return _inserted(text, at, content)


def insert_after(text: str, heading: str, content: str) -> str:
    """Insert lines directly below a heading, behind the blank lines that follow it."""
    place = find_section(text, heading)
    at, _ = _trimmed(text, place.body_char, place.end_char)
    return _inserted(text, at, content)


def append(text: str, content: str, heading: str | None = None) -> str:
    """Add lines at the end of the note, or of the section below a heading."""
    if heading is None:
        return _inserted(text, len(text), content)
    place = find_section(text, heading)
    _, at = _trimmed(text, place.body_char, place.end_char)
    return _inserted(text, at, content)


def prepend(text: str, content: str) -> str:
    """Insert lines at the beginning of the note, below its frontmatter."""
    start = frontmatter.split(text).body_start
    if start:
        start += len(_blank_lines(text, start))
    return _inserted(text, start, content)


def find_section(text: str, heading: str) -> Section:
    """The only section of this heading (``Heading`` or ``Heading#Sub``). Raises EditError."""
    names = heading_path(heading)
    place = section(text, names)
    if place is None:
        headings = ["#".join(each.path) for each in outline_of(text)[:20]]
        listed = "; ".join(headings) if headings else "none"
        raise EditError(f"The note has no heading {heading!r}.", hint=f"Its headings: {listed}")
    if place.others:
        lines = sorted((place.start_line, *place.others))
        raise EditError(
            f"The note has the heading {heading!r} {len(lines)} times, at {in_words(lines)}.",
            hint="Name the headings above it as well (Heading#Sub), or replace a text instead.",
        )
    return place


def in_words(lines: list[int]) -> str:
    """``line 3``, ``lines 3, 7 and 9``, or the first of many."""
    if len(lines) == 1:
        return f"line {lines[0]}"
    if len(lines) > _MAX_LINES_NAMED:
        return f"lines {', '.join(map(str, lines[:_MAX_LINES_NAMED]))} and more"
    return f"lines {', '.join(map(str, lines[:-1]))} and {lines[-1]}"


# --- replacing ---------------------------------------------------------------------------


def _positions(text: str, part: str) -> list[int]:
    """Where a part occurs, overlaps included; at most `MAX_COUNTED` positions."""
    positions: list[int] = []
    at = text.find(part)
    while at >= 0 and len(positions) < MAX_COUNTED:
        positions.append(at)
        at = text.find(part, at + 1)
    return positions


def _no_occurrence(text: str, part: str) -> EditError:
    first = next((line.strip() for line in part.split("\n") if line.strip()), "")
    similar = [
        number
        for number, line in enumerate(text.split("\n"), start=1)
        if first and line.strip() == first
    ]
    hint = "Read the note again; blanks and letter case must be the same."
    if similar:
        hint = (
            f"Its first line stands alone at {in_words(similar)}; compare blanks and what follows."
        )
    return EditError("The text to replace does not occur in the note.", hint=hint)


# --- inserting ---------------------------------------------------------------------------


def _inserted(text: str, at: int, content: str) -> str:
    """
    Insert whole lines at the beginning of a line or at the end of the text.

    A blank line is put between them and a text that would run on, but not between list items.
    """
    end = line_end(text)
    content = with_line_ends(content, end)
    before, behind = text[:at], text[at:]
    if before and not before.endswith(("\n", "\r")):
        before += end
    if behind and not content.endswith(("\n", "\r")):
        content += end
    if not behind and text.endswith(("\n", "\r")) and not content.endswith(("\n", "\r")):
        content += end
    above = "" if _runs_apart(_last_line(before), _first_line(content)) else end
    below = "" if _runs_apart(_last_line(content), _first_line(behind)) else end
    return before + above + content + below + behind


def _runs_apart(upper: str, lower: str) -> bool:
    """Whether two lines stay what they are without a blank line between them."""
    if not upper.strip() or not lower.strip():
        return True
    if _HEADING.match(upper):
        return True
    return bool(_LIST_LINE.match(upper) and _LIST_LINE.match(lower))


def _last_line(text: str) -> str:
    lines = text[-2000:].splitlines()
    return lines[-1] if lines else ""


def _first_line(text: str) -> str:
    lines = text[:2000].splitlines()
    return lines[0] if lines else ""


def _trimmed(text: str, start: int, end: int) -> tuple[int, int]:
    """A span of whole lines without the blank lines at both its ends; both stay in the span."""
    first = min(end, start + len(_blank_lines(text, start)))
    body = text[first:end]
    kept = body.rstrip()
    if not kept:
        return first, first
    match = re.compile(r"[ \t]*(?:\r\n|\r|\n)?").match(body, len(kept))
    assert match is not None  # it matches the empty text
    return first, first + match.end()


def _blank_lines(text: str, start: int) -> str:
    match = _BLANK_LINES.match(text, start)
    assert match is not None  # it matches the empty text
    return match[0]


def _without_heading(content: str, place: Section) -> str:
    """The content without a first line that repeats the heading of the section."""
    match = _HEADING.match(content)
    if match is None or len(match[1]) != place.heading.level:
        return content
    if match[2].strip().rstrip("#").strip() != place.heading.text:
        return content
    return content[match.end() :].lstrip("\r\n")


def _line_end_before(rest: str, content: str, end: str) -> str:
    """What follows a replaced content: a line end, unless nothing stands there."""
    if not content:
        return ""
    if content.endswith(("\n", "\r")):
        return ""
    return end
