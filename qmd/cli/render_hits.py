"""Prints the hits of a search in each output format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from qmd.cli import formats, terminal
from qmd.values import Hit, SearchReply
from qmd.values.search import rounded, shown_relevance

#: A hit, and its whole text if that is to be shown.
Pair = tuple["Hit", str | None]

#: What `qmd.search.present.splitter` gives.
Split = Callable[[str], list[tuple[str, bool]]]

#: The formats that people read. The others are lists of hits, and a notice is no hit.
HAS_NOTICE = ("cli", "md")


def render_hits(
    reply: SearchReply,
    output: str,
    *,
    bodies: Sequence[str] | None,
    line_numbers: bool,
    where: formats.Places = formats.DISPLAY_PATHS,
) -> None:
    """
    Print the hits of a reply. `HAS_NOTICE` has the formats that print its notice above them.

    Args:
        bodies: The whole text of each hit; None to show snippets.
        line_numbers: Number the lines of ``bodies``.
        where: How files are named.
    """
    if bodies is not None and line_numbers:
        bodies = [formats.numbered(body) for body in bodies]
    texts: Sequence[str | None] = bodies if bodies is not None else [None] * len(reply.hits)
    pairs = list(zip(reply.hits, texts, strict=True))
    if output == "json":
        terminal.write_json([hit_object(hit, body, where) for hit, body in pairs])
    elif output == "md":
        blocks = (_markdown(*pair, where) for pair in pairs)
        terminal.write_text("\n".join((*_paragraph(reply.notice), *blocks)))
    elif output == "cli":
        _for_people(reply, pairs, where)
    else:
        columns = _COLUMNS if bodies is None else _COLUMNS_WITH_BODY
        terminal.write_text(
            formats.table((_fields(*pair, where) for pair in pairs), output, columns)
        )


_COLUMNS = formats.Columns(
    files=("docid", "rounded_score", "file", "flat_context"),
    csv=("docid", "score", "file", "title", "context", "line", "snippet"),
    xml=("docid", "file", "uri", "title", "score", "context", "line", "match"),
    element=("file", "results"),
)
_COLUMNS_WITH_BODY = _COLUMNS._replace(csv=(*_COLUMNS.csv, "body"))


def _fields(hit: Hit, body: str | None, where: formats.Places) -> dict[str, object]:
    """The fields of a hit for `_COLUMNS`."""
    return {
        "docid": hit.docid,
        "score": f"{hit.score:.4f}",
        "rounded_score": f"{rounded(hit.score):.2f}",
        "file": where.name(hit.file),
        "uri": hit.uri,
        "title": hit.title,
        "context": hit.context,
        "flat_context": formats.flat(hit.context),
        "line": hit.line,
        "match": hit.match,
        "snippet": hit.snippet,
        "body": body,
        "text": hit.snippet if body is None else body,
    }


def hit_object(
    hit: Hit, body: str | None, where: formats.Places = formats.DISPLAY_PATHS
) -> dict[str, Any]:
    """The JSON object of one hit; the keys and their order are a contract."""
    from qmd.values.wire import to_wire

    fields = {"docid": hit.docid, "file": hit.file, "uri": hit.uri, **to_wire(hit)}
    fields["file"] = where.name(hit.file)
    explain = fields.pop("explain", None)
    fields |= {"collection": hit.collection, "path": hit.path}
    if explain is not None:
        fields["explain"] = explain
    if body is not None:
        fields["body"] = body
    return fields


def printed_tokens(hit: Hit, output: str, where: formats.Places) -> float:
    """The estimated tokens of a hit as `render_hits` prints it without its whole text."""
    from qmd.values.text import estimate_tokens

    if output == "json":
        return estimate_tokens(terminal.json_text([hit_object(hit, None, where)]))
    if output in ("cli", "md"):
        return estimate_tokens(_for_reading(hit, where))
    return estimate_tokens(
        formats.table([_fields(hit, None, where)], output, _COLUMNS, whole=False)
    )


def _for_reading(hit: Hit, where: formats.Places) -> str:
    """All that `_markdown` and `_for_people` print of a hit, without colours."""
    explained = "" if hit.explain is None else "\n".join(explanation(hit.explain))
    return f"{_markdown(hit, None, where)}{explained}"


def _paragraph(notice: str | None) -> list[str]:
    """The notice as the first block of a page; no block if there is no notice."""
    return [f"{notice}\n"] if notice else []


def _markdown(hit: Hit, body: str | None, where: formats.Places) -> str:
    place = formats.md_code(f"{terminal.one_line(where.name(hit.file))}:{hit.line}")
    facts = [
        place,
        hit.place,
        hit.docid,
        f"{shown_relevance(hit.relevance)}",
        formats.flat(hit.context),
    ]
    return (
        f"## {terminal.one_line(' '.join(hit.title.split()))}\n\n"
        + " · ".join(filter(None, facts))
        + "\n\n"
        + formats.md_fenced(hit.snippet if body is None else body)
    )


def _for_people(reply: SearchReply, pairs: Sequence[Pair], where: formats.Places) -> None:
    """
    Print hits for a person.

    On a terminal all of them fit its height, so that the best can be seen without scrolling: the
    more there are, the fewer lines each has. Whole texts and explanations are never shortened.
    """
    split: Split = lambda text: [(text, False)]  # noqa: E731 - nothing is marked
    room = None
    groups = [hit.group for hit, _ in pairs]
    notice = _paragraph(
        reply.notice and terminal.paint(terminal.hanging(reply.notice, 0), "warning")
    )
    if not any(body is not None or hit.explain is not None for hit, body in pairs):
        room = _lines_of_each(notice, groups)
    if terminal.use_color(sys.stdout) or room is not None:
        from qmd.search.present import splitter

        split = splitter(reply.query)
    look = _Look(where, split)
    headings = terminal.group_headings(groups)
    is_dense = room is not None and room < _LINES_WITH_GAP
    blocks = notice
    for hit, body in pairs:
        heading = "".join(next(headings))
        if room is None:
            lines = look.whole(hit, body)
        elif room < _LINES_IN_FULL:
            lines = look.compact(hit, has_snippet=room > 1)
        else:
            lines = look.fitted(hit, room - 1)
        blocks.append(heading + "\n".join(lines) + "\n")
    terminal.write(("" if is_dense else "\n").join(blocks))


#: The lines that a hit needs for an empty line after it, and for its file on a line of its own.
_LINES_WITH_GAP, _LINES_IN_FULL = 3, 4


def _lines_of_each(notice: Sequence[str], groups: Sequence[str | None]) -> int | None:
    """How many lines of a terminal each hit may take; None if there is no limit."""
    height = terminal.rows()
    if height is None or not groups:
        return None
    taken = 1 + sum(block.count("\n") + 1 for block in notice)  # the prompt comes below
    if any(group is not None for group in groups):
        taken += 2 * len(set(groups))
    return max(1, (height - taken) // len(groups))


class _Look:
    """
    How a hit looks on a terminal.

    Args:
        split: Splits a text into parts, and says of each whether to mark it.
    """

    def __init__(self, where: formats.Places, split: Split) -> None:
        self._where = where
        self._split = split

    def whole(self, hit: Hit, body: str | None) -> list[str]:
        """All there is of a hit."""
        title = f"{self._title(hit.title)}  {self._score(hit)}"
        shown = terminal.one_line(self._where.name(hit.file))
        lines = [
            terminal.hanging(title, 0),
            f"{self._place(hit, shown)}  {self._dim(_facts(hit))}",
        ]
        if body is None:
            lines += [self._numbered(line, hit.line) for line in _lines(hit.snippet)]
        else:
            lines.append(self._marked(terminal.harmless(body).rstrip("\n")))
        if hit.explain is not None:
            lines += [self._dim(line) for line in explanation(hit.explain)]
        return lines

    def fitted(self, hit: Hit, room: int) -> list[str]:
        """A hit in at most ``room`` lines, three or more."""
        title = terminal.fitting(
            terminal.one_line(hit.title), terminal.columns(score_text(hit)) + 2
        )
        name = self._where.fitting_name(hit.file, terminal.columns(_line_or_place(hit)))
        facts = terminal.fitting(_facts(hit), terminal.columns(f"{name}{_line_or_place(hit)}") + 2)
        place = f"{self._place(hit, name)}  {self._dim(facts)}".rstrip()
        lines = [f"{self._title(title)}  {self._score(hit)}", place]
        snippet = _lines(hit.snippet)
        best = next((n for n, line in enumerate(snippet) if _number_of(line) == hit.line), 0)
        # If not all lines have room, those from the best one on are shown.
        for line in [*snippet[best:], *snippet[:best]] if len(snippet) > room - 2 else snippet:
            left = room - len(lines)
            if left > 0:
                lines += self._numbered(self._around_match(line, left), hit.line).split("\n")[:left]
        return lines

    def compact(self, hit: Hit, *, has_snippet: bool) -> list[str]:
        """A hit in two lines, or in one."""
        used = terminal.columns(score_text(hit)) + terminal.columns(_line_or_place(hit)) + 2
        name = self._where.fitting_name(hit.file, used)
        if (
            terminal.fitting(name, used) != name
        ):  # `qmd get` takes the docid, but no part of a file's name
            room = used + len(hit.docid) + 2
            name = f"{hit.docid}  {terminal.fitting(name.removeprefix('…/'), room)}"
        title = terminal.fitting(terminal.one_line(hit.title), used + terminal.columns(name) + 2)
        parts = (self._score(hit), self._title(title), self._place(hit, name))
        lines = ["  ".join(filter(None, parts))]
        snippet = _lines(hit.snippet) if has_snippet else []
        if snippet:
            best = next((line for line in snippet if _number_of(line) == hit.line), snippet[0])
            lines += self._numbered(self._around_match(best, 1), hit.line).split("\n")[:1]
        return lines

    def _title(self, title: str) -> str:
        return terminal.paint(terminal.one_line(title), "title")

    def _score(self, hit: Hit) -> str:
        return terminal.paint(score_text(hit), "score")

    def _dim(self, text: str) -> str:
        return terminal.paint(text, "dim")

    def _place(self, hit: Hit, name: str) -> str:
        name = terminal.paint(name, "file")
        line = terminal.paint(_line_or_place(hit), "line")
        return self._where.link(name + line, hit.file, hit.line, hit.anchor)

    def _marked(self, text: str) -> str:
        return "".join(
            terminal.paint(part, "match") if is_match else part
            for part, is_match in self._split(text)
        )

    def _numbered(self, line: str, best_line: int) -> str:
        """A line of a snippet with its number in colour."""
        number = _number_of(line)
        if number is None:
            return f"  {terminal.hanging(self._marked(line), 2)}"
        style = "line" if number == best_line else "dim"
        label = f"  {terminal.paint(str(number), style)}{self._dim(':')} "
        text = line.partition(": ")[2]
        return label + terminal.hanging(self._marked(text), len(f"  {number}: "))

    def _around_match(self, line: str, room: int) -> str:
        """A line of a snippet, of which ``room`` lines of the terminal show the first match."""
        number = _number_of(line)
        label = "" if number is None else f"{number}: "
        text = line.removeprefix(label)
        before, is_match = "", False
        for part, is_match in self._split(text):
            if is_match:
                break
            before += part
        used = len(label) + 2
        if is_match and terminal.fitting(before, used, lines=room) != before:
            # Some words before the match are kept.
            start = before.rfind(" ", 0, max(0, len(before) - _WORDS_BEFORE)) + 1
            text = "…" + text[start or max(0, len(before) - _WORDS_BEFORE) :]
        return label + terminal.fitting(text, used, lines=room)


_WORDS_BEFORE = 20  # characters in front of a match that a shortened line keeps


def score_text(hit: Hit) -> str:
    """What stands for the score of a hit."""
    return shown_relevance(hit.relevance) + (" loosely" if hit.match == "relaxed" else "")


def _facts(hit: Hit) -> str:
    return " · ".join(filter(None, (hit.docid, terminal.one_line(formats.flat(hit.context)))))


def _line_or_place(hit: Hit) -> str:
    """What stands after the file: the page of a PDF, which its viewers know, else the line."""
    return f":{hit.line}" if hit.place is None else f" {terminal.one_line(hit.place)}"


def _lines(snippet: str) -> list[str]:
    return [line for line in terminal.harmless(snippet).split("\n") if not _blank(line)]


def _number_of(line: str) -> int | None:
    """The number in front of a line of a snippet."""
    number, colon, _ = line.partition(": ")
    return int(number) if colon and number.isdigit() else None


def _blank(line: str) -> bool:
    """Whether a line of a snippet has nothing, or nothing but its line number."""
    number = line.rstrip().rstrip(":")
    return not number or number.isdigit()


def explanation(explain: Mapping[str, Any]) -> list[str]:
    """The parts of a score, one on each line."""
    lines = []
    for part in (*explain.get("lists", ()), *explain.get("parts", ())):
        head = " ".join(str(part[key]) for key in ("source", "part", "type") if part.get(key))
        text = f"{head} {terminal.one_line(repr(part.get('query', '')))}"
        for key in ("rank", "score", "value", "standardised", "place", "weight", "contribution"):
            if part.get(key) is not None:
                text += f"  {key} {_number(part[key])}"
        lines.append(f"    {text}")
    for key, value in explain.items():
        if key in ("lists", "parts") or value is None:
            continue
        parts = value if isinstance(value, (list, tuple)) else (value,)
        lines.append(f"    {key}: {terminal.one_line('; '.join(map(_part, parts)))}")
    return lines


def _part(part: object) -> str:
    if isinstance(part, Mapping):
        return "  ".join(
            f"{key} {_number(value)}" for key, value in part.items() if value is not None
        )
    return _number(part)


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
