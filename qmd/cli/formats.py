"""
The output formats, and their rules of quoting.

The format ``cli`` is for people and may change; the others are for programs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from qmd.parse.lines import split_lines
from qmd.records import NamedTuple

FORMATS = ("cli", "json", "csv", "md", "xml", "files")
# Characters that XML 1.0 does not allow, not even as references.
_NOT_XML = "[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]"


def numbered(text: str, first: int = 1, lines: int = 0) -> str:
    """Put ``N: `` before each line, as the MCP tools do; ``lines`` as of `line_starts`."""
    parts = split_lines(text)
    parts += [""] * (lines - len(parts))
    return "".join(f"{number}: {line}\n" for number, line in enumerate(parts, first))


def flat(text: str | None) -> str:
    """Join the lines of a context, which may have paragraphs, to one line."""
    return " · ".join(line.strip() for line in (text or "").splitlines() if line.strip())


class Columns(NamedTuple):
    """
    What the formats for programs, JSON apart, have of the items of a reply.

    Attributes:
        element: The name of the element of one item in XML, and of that of all.
        xml: The attributes of an element, which has the field "text" between its tags.
    """

    files: tuple[str, ...]
    csv: tuple[str, ...]
    xml: tuple[str, ...]
    element: tuple[str, str]


def table(
    items: Iterable[Mapping[str, object]], output: str, columns: Columns, *, whole: bool = True
) -> str:
    """
    The items of a reply, each with its fields by name, as ``files``, ``csv`` or ``xml``.

    ``whole``: with the element around all.
    """
    names: tuple[str, ...] = getattr(columns, output)
    if output != "xml":
        rows = [["" if item[name] is None else item[name] for name in names] for item in items]
        return csv_rows([names, *rows] if output == "csv" else rows)
    element, outer = columns.element
    text = "".join(
        xml_element(element, {name: item[name] for name in names}, str(item["text"]))
        for item in items
    )
    return f"<{outer}>\n{text}</{outer}>\n" if whole else text


def csv_rows(rows: Iterable[Sequence[object]]) -> str:
    """
    Write rows as RFC 4180 says, except that lines end in a newline alone.

    The standard library's writer would then leave a carriage return unquoted, and most readers
    end a record there.
    """
    return "".join(",".join(map(_csv_field, row)) + "\n" for row in rows)


def _csv_field(value: object) -> str:
    text = str(value)
    if re.search('[",\r\n]', text) is None:
        return text
    return '"' + text.replace('"', '""') + '"'


def xml_text(text: str) -> str:
    text = re.sub(_NOT_XML, "\ufffd", text)
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace("\r", "&#13;")  # a parser turns a raw carriage return into a newline


def xml_element(name: str, attributes: dict[str, object | None], text: str) -> str:
    pairs = "".join(
        f' {key}="{_attribute(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{pairs}>{xml_text(text)}</{name}>\n"


def _attribute(value: str) -> str:
    # A parser turns raw tabs and newlines in attributes into blanks.
    value = xml_text(value).replace('"', "&quot;")
    return value.replace("\t", "&#9;").replace("\n", "&#10;")


def md_code(text: str) -> str:
    """A line of text as a code span; the text may hold any backticks."""
    delimiter = _longer_than_any(text, least=1)
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{delimiter}{space}{text}{space}{delimiter}"


def _longer_than_any(text: str, *, least: int) -> str:
    """More backticks than any run of backticks in the text has, and at least ``least``."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    return "`" * max(least, longest + 1)


def md_fenced(text: str) -> str:
    """A code block whose fence is longer than any in the text."""
    fence = _longer_than_any(text, least=3)
    return f"{fence}\n{text if text.endswith(chr(10)) else text + chr(10)}{fence}\n"
