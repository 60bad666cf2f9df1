"""
Turns reStructuredText into Markdown, line by line.

Directives are not executed: code stays code, notes stay text, and what would be included or
generated is a blank line. Tables are shown as they stand.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from qmd.parse.convert import blocks
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date

_DIRECTIVE = re.compile(
    r"\.\.[ \t]+(?:\|[^|]{1,200}\|[ \t]+)?([A-Za-z][\w:+.-]{0,60})[ \t]?::(?:[ \t]+(.*))?$"
)
_OPTION = re.compile(r":[\w -]{1,60}:(?:[ \t].*)?$")
_FIELD = re.compile(r":([A-Za-z][\w -]{0,40}):[ \t]+(.*)")
_ITEM = re.compile(r"([-*+•]|(?:\d{1,9}|#|[A-Za-z])[.)]|\((?:\d{1,9}|[a-z])\))[ \t]+(.*)")
_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1*$")
_SIMPLE_TABLE = re.compile(r"=+(?:[ ]+=+)+$")
_GRID_TABLE = re.compile(r"\+[-=]+(?:\+[-=]+)*\+$")
_INLINE = re.compile(
    r"``((?! )[^`\n]+(?:`[^`\n]+)*(?<! ))``(?!`)"
    r"|(?::[A-Za-z][\w:.+-]{0,60}:)?`([^`<\n]*)(?:<([^<>`\n]*)>)?`_{0,2}"
)
_ROLE = re.compile(r":[A-Za-z][\w:.+-]{0,60}:")
#: Directives whose content is code, or text that is shown as it stands.
_CODE = frozenset(
    (
        *(
            "code-block",
            "code",
            "sourcecode",
            "parsed-literal",
            "testcode",
            "testoutput",
            "doctest",
        ),
        *("prompt", "ipython", "math", "productionlist", "graphviz", "mermaid"),
    )
)
#: Directives whose content is for programs.
_SILENT = frozenset(
    (
        *("toctree", "contents", "include", "literalinclude", "raw", "highlight", "index", "meta"),
        *("currentmodule", "module", "autosummary", "sectnum", "default-role", "role"),
    )
)
_IMAGES = frozenset(("image", "figure"))
_TITLES = {"versionadded": "New in version", "versionchanged": "Changed in version"} | {
    "deprecated": "Deprecated since version"
}


def convert(path: str, data: bytes) -> Converted:
    """
    A file of reStructuredText.

    Raises:
        DecodeError: The bytes are no text.
    """
    return _Restructured(data).converted()


class _Restructured(blocks.LightMarkup):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.levels: dict[tuple[str, bool], int] = {}
        self.in_fields = True  # the fields before the text describe the document

    def read_line(self) -> None:
        line = self.lines[self.at]
        text = line.strip()
        if not text:
            self.blank()
        elif self.heading(line) or self.table(line, text):
            return
        elif text.startswith("..") and (text == ".." or text[2:3].isspace()):
            self.explicit(line, text)
        elif text.startswith(">>> ") and self.is_blank(self.at - 1):
            self.block(blocks.indent_of(line), self.end_of_paragraph(), "pycon", before=0)
        else:
            self.text(line, text)

    def blank(self, lines: int = 1) -> None:
        for _ in range(lines):
            self.written.blank()
        self.at += lines

    def is_blank(self, number: int) -> bool:
        return not 0 <= number < len(self.lines) or not self.lines[number].strip()

    def end_of_paragraph(self) -> int:
        end = self.at
        while not self.is_blank(end):
            end += 1
        return end

    def end_of_content(self, begin: int, indent: int) -> int:
        """The line after those that are blank or stand right of a column."""
        end = at = begin
        while at < len(self.lines):
            if not self.is_blank(at):
                if blocks.indent_of(self.lines[at]) <= indent:
                    break
                end = at + 1
            at += 1
        return end

    def heading(self, line: str) -> bool:
        """A line of text with a line of signs below it, and perhaps one above."""
        above = _ADORNMENT.match(line.rstrip())
        if above is not None and len(line.rstrip()) >= 2:
            title, below = self.line_at(self.at + 1), self.line_at(self.at + 2)
            if title.strip() and below == line.rstrip() and not _ADORNMENT.match(title.strip()):
                self.written.blank()
                self.add_heading(title.strip(), (above[1], True))
                self.written.blank()
                self.at += 3
                return True
            if self.is_blank(self.at - 1) and self.is_blank(self.at + 1) and len(line.rstrip()) > 3:
                self.written.text(0, "* * *")
                self.at += 1
                return True
            return False
        below = self.line_at(self.at + 1)
        signs = _ADORNMENT.match(below)
        if line[0].isspace() or signs is None or below[:1].isspace():
            return False
        if len(below) < max(3, len(line.rstrip()) // 2) or not self.is_blank(self.at - 1):
            return False
        self.add_heading(line.strip(), (signs[1], False))
        self.written.blank()
        self.at += 2
        return True

    def line_at(self, number: int) -> str:
        return self.lines[number].rstrip() if number < len(self.lines) else ""

    def add_heading(self, text: str, kind: tuple[str, bool]) -> None:
        level = self.levels.setdefault(kind, len(self.levels) + 1)
        self.written.heading(level, _INLINE.sub(_shown, text))

    def table(self, line: str, text: str) -> bool:
        if not (_SIMPLE_TABLE.match(text) or _GRID_TABLE.match(text)):
            return False
        is_simple = text[0] == "="
        end = self.end_of_paragraph()
        if is_simple:  # blank lines may stand in it; its third rule ends it, or its second
            rules = [*islice(self.rules(), 3)]
            last = max((number for number in rules if self.is_blank(number + 1)), default=end - 1)
            end = max(end, last + 1) if len(rules) > 1 else end
        self.block(blocks.indent_of(line), end, "", before=0)
        return True

    def rules(self) -> Iterator[int]:
        """The rules of a simple table, which may have blank lines between its rows."""
        for number in range(self.at, min(len(self.lines), self.at + 1000)):
            if _SIMPLE_TABLE.match(self.lines[number].strip()):
                yield number

    def explicit(self, line: str, text: str) -> None:
        """A directive, a target, a footnote or a comment."""
        indent = blocks.indent_of(line)
        match = _DIRECTIVE.match(text)
        if match is not None:
            name = match[1].lower()
            if name.startswith(("c:", "py:", "js:", "cpp:")):
                name = name.rpartition(":")[2]
            self.directive(name, (match[2] or "").strip(), indent)
        elif text.startswith((".. [", ".. |")):
            self.written.paragraph_line(indent, _inline(text[3:]))
            self.at += 1
        elif text == ".." and self.is_blank(self.at + 1):
            self.blank()  # an empty comment, which parts a quote from what stands above
        else:  # a comment, or a target
            self.blank(self.end_of_content(self.at + 1, indent) - self.at)

    def directive(self, name: str, argument: str, indent: int) -> None:
        if name in _SILENT:
            self.blank(self.end_of_content(self.at + 1, indent) - self.at)
        elif name in _CODE:
            end = self.end_of_content(self.at + 1, indent)
            body = self.after_options(self.at + 1)
            while body < end and self.is_blank(body):
                body += 1
            if body < end:
                language = argument if name != "math" else ""
                self.block(indent, end, language, before=body - self.at)
            else:
                self.written.text(indent, blocks.code_span(argument))
                self.at += 1
        else:
            self.written.text(indent, self.begun(name, argument))
            self.at += 1
            self.blank(self.after_options(self.at) - self.at)

    def begun(self, name: str, argument: str) -> str:
        """The line that a directive becomes whose content is text: its title, or its argument."""
        if name in _IMAGES:
            return self.image(argument)
        if name in _TITLES:
            return f"{_TITLES[name]} {_inline(argument)}"
        if argument or name in ("list-table", "table", "only"):
            return _inline(argument)
        return f"{name.replace('-', ' ').capitalize()}:"

    def image(self, argument: str) -> str:
        label = ""
        for line in self.lines[self.at + 1 : self.after_options(self.at + 1)]:
            match = _FIELD.match(line.strip())
            if match is not None and match[1] == "alt":
                label = match[2]
        if ":" in argument[:8] and not label:
            return ""
        written = blocks.link(blocks.inert(label) or "image", argument)
        return f"!{written}" if written.endswith(")") else written

    def after_options(self, begin: int) -> int:
        """The first line after a directive's options."""
        while begin < len(self.lines) and _OPTION.match(self.lines[begin].strip()):
            begin += 1
        return begin

    def block(self, indent: int, end: int, language: str, *, before: int) -> None:
        """
        Lines up to ``end`` as code; the fences take the place of lines without code around it.

        Args:
            before: How many lines from here on hold no code.
        """
        for _ in range(before - 1):
            self.written.blank()
        self.written.begin_code(indent, language, above=not before)
        begin = self.at + before
        columns = min(
            (blocks.indent_of(line) for line in self.lines[begin:end] if line.strip()), default=0
        )
        for line in self.lines[begin:end]:
            self.written.code(blocks.dedented(line, columns))
        self.written.end_code()
        self.at = end
        if self.is_blank(end) and end < len(self.lines):
            self.at = end + 1  # the closing fence took its place

    def text(self, line: str, text: str) -> None:
        indent = blocks.indent_of(line)
        field = _FIELD.match(text)
        self.in_fields = self.in_fields and field is not None
        literal = text.endswith("::")
        if literal:
            text = text[:-1] if text[:-2].strip() else ""
        item = _ITEM.match(text)
        if item is not None and not self.continues():
            number = item[1].strip("().")
            mark = f"{number}." if number.isdecimal() else "1." if number == "#" else "-"
            self.written.item(indent, mark, _inline(item[2]))
        elif field is not None:
            self.field(field[1].lower(), field[2].strip())
            self.written.paragraph_line(indent, f"{blocks.inert(field[1])}: {_inline(field[2])}")
        else:
            self.written.paragraph_line(indent, _inline(text.removeprefix("| ")))
        self.at += 1
        if literal:
            self.literal_block(indent)

    def literal_block(self, indent: int) -> None:
        """The code after a paragraph that ends with two colons."""
        begin = self.at
        while begin < len(self.lines) and self.is_blank(begin):
            begin += 1
        end = self.end_of_content(begin, indent)
        if begin > self.at and end > begin:
            self.block(indent, end, "", before=begin - self.at)

    def continues(self) -> bool:
        """Whether the line above is of the same paragraph, so that no item begins here."""
        if self.is_blank(self.at - 1) or self.at == 0:
            return False
        above = self.lines[self.at - 1]
        return _ITEM.match(above.strip()) is None and blocks.indent_of(above) <= blocks.indent_of(
            self.lines[self.at]
        )

    def field(self, name: str, value: str) -> None:
        if not self.in_fields:
            return
        if name == "date":
            self.date = self.date or read_date(value.strip("$ ").removeprefix("Date:").strip())[0]
        elif name in ("author", "authors", "version", "status", "language") and value:
            self.properties.setdefault(name, value)


def _inline(text: str) -> str:
    return blocks.rewrite_matches(text, _INLINE, _written)


def _written(match: re.Match[str]) -> str:
    code, shown, target = match[1], match[2], match[3]
    if code:
        return blocks.code_span(code)
    role = _ROLE.match(match[0])
    name = role[0].strip(":").rpartition(":")[2] if role else ""
    if target and not role and re.match(r"(?:https?|mailto|ftp):", target):
        return blocks.link(blocks.inert(shown.strip()) or blocks.inert(target), target)
    if target and name == "doc":
        return blocks.link(
            blocks.inert(shown.strip()) or blocks.inert(target), f"{target.lstrip('/')}.rst"
        )
    shown = (shown or target or "").strip()
    is_text = not role or name in ("ref", "doc", "term", "numref", "abbr", "guilabel", "sup", "sub")
    return blocks.inert(shown) if is_text else blocks.code_span(shown.lstrip("~!"))


def _shown(match: re.Match[str]) -> str:
    """What a heading shows of code and references."""
    return match[1] or match[2].strip() or match[3] or ""
