"""Prints the hits of a search in each output format."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from qmd.cli.formats import csv_rows, flat, md_code, md_fenced, numbered, xml_element
from qmd.cli.places import DISPLAY_PATHS, Places
from qmd.cli.terminal import (
    group_headings,
    hanging,
    harmless,
    json_text,
    one_line,
    paint,
    use_color,
    write,
    write_json,
    write_text,
)
from qmd.values.search import rounded, shown_relevance

if TYPE_CHECKING:
    from qmd.values import Hit, SearchReply


#: A hit, and its whole text if that is to be shown.
Pair = tuple["Hit", str | None]

#: The formats that people read. The others are lists of hits, and a notice is no hit.
HAS_NOTICE = ("cli", "md")


def render_hits(
    reply: SearchReply,
    output: str,
    *,
    bodies: Sequence[str] | None,
    line_numbers: bool,
    where: Places = DISPLAY_PATHS,
) -> None:
    """
    Print the hits of a reply. `HAS_NOTICE` has the formats that print its notice above them.

    Args:
        bodies: The whole text of each hit; None to show snippets.
        line_numbers: Number the lines of ``bodies``.
        where: How files are named.
    """
    if bodies is not None and line_numbers:
        bodies = [numbered(body) for body in bodies]
    texts: Sequence[str | None] = bodies if bodies is not None else [None] * len(reply.hits)
    pairs = list(zip(reply.hits, texts, strict=True))
    if output == "json":
        write_json([hit_object(hit, body, where) for hit, body in pairs])
    elif output == "csv":
        write_text(_csv(pairs, where, with_body=bodies is not None))
    elif output == "files":
        write_text(_files(reply.hits, where))
    elif output == "md":
        write_text(
            "\n".join((*_paragraph(reply.notice), *(_markdown(*pair, where) for pair in pairs)))
        )
    elif output == "xml":
        write_text("<results>\n" + "".join(_xml(*pair, where) for pair in pairs) + "</results>\n")
    else:
        _for_people(reply, pairs, where)


def _csv(pairs: Sequence[Pair], where: Places, *, with_body: bool) -> str:
    columns = ["docid", "score", "file", "title", "context", "line", "snippet"]
    rows: list[list[object]] = [[*columns, "body"] if with_body else [*columns]]
    for hit, body in pairs:
        row: list[object] = [hit.docid, f"{hit.score:.4f}", where.name(hit.file), hit.title]
        row += [hit.context or "", hit.line, hit.snippet]
        rows.append([*row, body] if with_body else row)
    return csv_rows(rows)


def _files(hits: Sequence[Hit], where: Places) -> str:
    return csv_rows(
        (hit.docid, f"{rounded(hit.score):.2f}", where.name(hit.file), flat(hit.context))
        for hit in hits
    )


def hit_object(hit: Hit, body: str | None, where: Places = DISPLAY_PATHS) -> dict[str, Any]:
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


def printed_tokens(hit: Hit, output: str, where: Places) -> float:
    """The estimated tokens of a hit as `render_hits` prints it without its whole text."""
    from qmd.values.tokens import estimate_tokens

    if output == "json":
        return estimate_tokens(json_text([hit_object(hit, None, where)]))
    if output == "csv":
        return estimate_tokens(_csv([(hit, None)], where, with_body=False))
    if output == "files":
        return estimate_tokens(_files([hit], where))
    return estimate_tokens(_xml(hit, None, where) if output == "xml" else _for_reading(hit, where))


def _for_reading(hit: Hit, where: Places) -> str:
    """All that `_markdown` and `_for_people` print of a hit, without colours."""
    explained = "" if hit.explain is None else "\n".join(explanation(hit.explain))
    return f"{_markdown(hit, None, where)}{explained}"


def _paragraph(notice: str | None) -> list[str]:
    """The notice as the first block of a page; no block if there is no notice."""
    return [f"{notice}\n"] if notice else []


def _markdown(hit: Hit, body: str | None, where: Places) -> str:
    place = md_code(f"{one_line(where.name(hit.file))}:{hit.line}")
    facts = [place, hit.docid, f"{shown_relevance(hit.relevance)}", flat(hit.context)]
    return (
        f"## {one_line(' '.join(hit.title.split()))}\n\n"
        + " · ".join(filter(None, facts))
        + "\n\n"
        + md_fenced(hit.snippet if body is None else body)
    )


def _xml(hit: Hit, body: str | None, where: Places) -> str:
    attributes: dict[str, object | None] = {
        "docid": hit.docid,
        "file": where.name(hit.file),
        "uri": hit.uri,
        "title": hit.title,
        "score": f"{hit.score:.4f}",
        "context": hit.context,
        "line": hit.line,
        "match": hit.match,
    }
    return xml_element("file", attributes, hit.snippet if body is None else body)


def _for_people(reply: SearchReply, pairs: Sequence[Pair], where: Places) -> None:
    color = use_color(sys.stdout)
    mark: Callable[[str], str] = str
    if color:
        from qmd.search.present.highlight import highlighter

        mark = highlighter(reply.query, lambda text: paint(text, "match", True))
    blocks = _paragraph(reply.notice and paint(hanging(reply.notice, 0), "warning", color))
    headings = group_headings([hit.group for hit, _ in pairs], color)
    for hit, body in pairs:
        blocks += next(headings)
        score = f"{shown_relevance(hit.relevance)}" + (" loosely" if hit.match == "relaxed" else "")
        name = paint(one_line(where.name(hit.file)), "file", color)
        place = where.link(name + paint(f":{hit.line}", "line", color), hit.file, hit.line)
        context = one_line(flat(hit.context))
        lines = [
            hanging(
                f"{paint(one_line(hit.title), 'title', color)}  {paint(score, 'score', color)}", 0
            ),
            f"{place}  {paint(' · '.join(filter(None, (hit.docid, context))), 'dim', color)}",
        ]
        if body is None:
            shown = [line for line in harmless(hit.snippet).split("\n") if not _blank(line)]
            lines += [_snippet_line(line, hit.line, mark, color) for line in shown]
        else:
            lines.append(mark(harmless(body).rstrip("\n")))
        if hit.explain is not None:
            lines += [paint(line, "dim", color) for line in explanation(hit.explain)]
        blocks.append("\n".join(lines) + "\n")
    write("\n".join(blocks))


def _blank(line: str) -> bool:
    """Whether a line of a snippet has nothing, or nothing but its line number."""
    number = line.rstrip().rstrip(":")
    return not number or number.isdigit()


def _snippet_line(line: str, best_line: int, mark: Callable[[str], str], color: bool) -> str:
    number, colon, text = line.partition(": ")
    if not colon or not number.isdigit():
        return f"  {hanging(mark(line), 2)}"
    style = "line" if int(number) == best_line else "dim"
    label = f"  {paint(number, style, color)}{paint(':', 'dim', color)} "
    return label + hanging(mark(text), len(f"  {number}: "))


def explanation(explain: Mapping[str, Any]) -> list[str]:
    """The parts of a score, one on each line."""
    lines = []
    for part in (*explain.get("lists", ()), *explain.get("parts", ())):
        head = " ".join(str(part[key]) for key in ("source", "part", "type") if part.get(key))
        text = f"{head} {one_line(repr(part.get('query', '')))}"
        for key in ("rank", "score", "value", "standardised", "place", "weight", "contribution"):
            if part.get(key) is not None:
                text += f"  {key} {_number(part[key])}"
        lines.append(f"    {text}")
    for key, value in explain.items():
        if key in ("lists", "parts") or value is None:
            continue
        parts = value if isinstance(value, (list, tuple)) else (value,)
        lines.append(f"    {key}: {one_line('; '.join(map(_part, parts)))}")
    return lines


def _part(part: object) -> str:
    if isinstance(part, Mapping):
        return "  ".join(
            f"{key} {_number(value)}" for key, value in part.items() if value is not None
        )
    return _number(part)


def _number(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
