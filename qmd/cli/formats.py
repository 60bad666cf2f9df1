"""
Says how an output names documents: by formats and their quoting, by full paths and links.

The format ``cli`` is for people and may change; the others are for programs.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO
from urllib.parse import quote

from qmd import system
from qmd.cli.session import session
from qmd.cli.terminal import fitting_path, one_line
from qmd.parse.lines import split_lines
from qmd.records import NamedTuple

if TYPE_CHECKING:
    from qmd.values import Collection


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


class Places:
    """How an output names documents: by their display paths, or by their paths on the disk."""

    def __init__(
        self,
        roots: Mapping[str, str] | None = None,
        *,
        full_path: bool = False,
        links: bool = False,
        editor: str | None = None,
    ) -> None:
        """
        Args:
            roots: Collection → its directory; not needed for display paths without links.
            links: Whether names are links that open the document.
            editor: The setting of this name.
        """
        self._roots = roots or {}
        self._full_path = full_path
        self._links = links
        self._editor = editor

    def name(self, file: str) -> str:
        """The name to print for a display path, ``collection/path``."""
        path = self.path(file) if self._full_path else None
        return file if path is None else str(path)

    def fitting_name(self, file: str, used: int = 0) -> str:
        """
        The name in one line for the end of a line of which ``used`` columns are taken.

        On a terminal a display path loses folders at its beginning that have no room.
        """
        name = one_line(self.name(file))
        return name if self._full_path else fitting_path(name, used)

    def path(self, file: str) -> Path | None:
        """The path on the disk; None if the collection is unknown."""
        collection, _, path = file.partition("/")
        root = self._roots.get(collection)
        return None if root is None else Path(root, path)

    def link(self, text: str, file: str, line: int = 1, anchor: str | None = None) -> str:
        """
        Make a text, which is already safe for a terminal, a link that opens a document.

        Args:
            anchor: ``page=12``, if the file is opened by its viewer and not by an editor.
        """
        path = self.path(file) if self._links else None
        if path is None:
            return text
        if anchor is None:
            target = system.editors.editor_link(self._editor, path, line)
        else:
            target = f"{path.as_uri()}#{quote(anchor, safe='=')}"
        return f"\x1b]8;;{target}\x1b\\{text}\x1b]8;;\x1b\\"


DISPLAY_PATHS = Places()


def places(collections: Callable[[], Iterable[Collection]], *, full_path: bool) -> Places:
    """
    The places of an output to stdout.

    ``collections``: reads all collections; not called if the output needs no paths.
    """
    links = use_links(sys.stdout)
    if not (links or full_path):
        return Places()
    roots = {collection.name: collection.path for collection in collections()}
    return Places(roots, full_path=full_path, links=links, editor=session().settings.editor)


def use_links(stream: TextIO) -> bool:
    """Whether a stream shows links (OSC 8): a terminal, unless a variable says otherwise."""
    forced = os.environ.get("FORCE_HYPERLINK")
    if forced:
        return forced not in ("0", "false")
    if os.environ.get("NO_COLOR") or not stream.isatty():
        return False
    return os.environ.get("TERM") not in ("dumb", "linux")
