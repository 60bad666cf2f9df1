"""
Turns Org files into Markdown, line by line; the tags of its headings are those of the document.

Nothing is run, included or evaluated. Source: Org Syntax (orgmode.org/worg/org-syntax.html).
"""

from __future__ import annotations

import re

from qmd.parse.convert import blocks
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date

_HEADING = re.compile(r"(\*+)[ \t]+(.*)")
_PRIORITY = re.compile(r"\[#[A-Za-z0-9]\][ \t]*")
_TAGS = re.compile(r":(?:[\w@#%]{1,100}:)+")
_KEYWORD = re.compile(r"#\+([A-Za-z_]{1,40})(?:\[[^\]]{0,200}\])?:[ \t]*(.*)")
_BLOCK = re.compile(r"#\+begin_([a-z]{1,40})(?:[ \t]+(\S{0,80}))?", re.IGNORECASE)
_PROPERTY = re.compile(r":([\w-]{1,80})\+?:(?:[ \t]+(.*))?")
_ITEM = re.compile(r"([-+]|\*(?=[ \t])|(?:\d{1,9}|[A-Za-z])[.)])[ \t]+(?:\[@\d{1,9}\][ \t]*)?(.*)")
_RULE_OF_TABLE = re.compile(r"\|[-+]+\|?")
_INLINE = re.compile(
    r"\[\[([^\[\]]{1,2000})\](?:\[([^\[\]]{1,1000})\])?\]"
    r"|(?<![\w=~])([=~])(?=\S)([^\n]{0,200}?\S)\3(?!\w)"
)
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_QUOTED = re.compile(r'"([^"]{1,300})"|(\S{1,300})')
#: Blocks whose lines are shown as they stand.
_CODE = frozenset(("src", "example", "export", "verse"))
_FILE_PROPERTIES = {"author": "author", "description": "description", "language": "language"}


def convert(path: str, data: bytes) -> Converted:
    """
    An Org file.

    Raises:
        DecodeError: The bytes are no text.
    """
    return _Org(data).converted()


class _Org(blocks.LightMarkup):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.tags: dict[str, None] = {}
        self.end_of_block = ""
        self.shown_block = True
        self.drawer = False
        self.has_heading = False
        self.table_rows = 0
        self.columns = 0  # of white space before the code in a block

    def converted(self) -> Converted:
        converted = super().converted()
        properties = {**converted.properties, "tags": [*self.tags]}
        if not self.tags:
            del properties["tags"]
        return converted._replace(properties=properties)

    def read_line(self) -> None:
        line = self.lines[self.at]
        self.at += 1
        text = line.strip()
        if self.end_of_block:
            self.line_of_block(line, text)
        elif self.drawer:
            self.line_of_drawer(text)
        elif line.startswith("*") and (heading := _HEADING.match(line)):
            self.heading(heading)
        elif text.startswith("#+"):
            self.keyword(line, text)
        elif text.startswith("|"):
            self.table(text)
            return
        elif text in (":PROPERTIES:", ":LOGBOOK:"):
            self.drawer = True
            self.written.blank()
        elif not text or text == "#":
            self.written.blank()
        else:
            self.text(line, text)
        self.table_rows = 0

    def heading(self, match: re.Match[str]) -> None:
        stars, text = match[1], match[2].rstrip()
        before, _, last = text.rpartition(" ")
        if _TAGS.fullmatch(last):
            text = before.rstrip()
            self.tags.update(dict.fromkeys(last.strip(":").split(":")))
        text = _PRIORITY.sub("", text, count=1)
        self.has_heading = True
        self.written.heading(len(stars), _INLINE.sub(_shown, text))

    def keyword(self, line: str, text: str) -> None:
        block = _BLOCK.match(text)
        if block is not None:
            kind = block[1].lower()
            self.end_of_block = f"#+end_{kind}"
            self.shown_block = kind not in ("comment", "export")
            self.columns = blocks.indent_of(line)
            if kind in _CODE and self.shown_block:
                self.written.begin_code(self.columns, block[2] or "" if kind == "src" else "")
            else:
                self.written.blank()
            return
        match = _KEYWORD.match(text)
        if match is not None:
            self.property(match[1].lower(), match[2].strip())
        if match is not None and match[1].lower() == "caption":
            self.written.text(blocks.indent_of(line), _inline(match[2]))
        else:
            self.written.blank()

    def property(self, name: str, value: str) -> None:
        if name == "title":
            self.title = f"{self.title} {value}".strip()
        elif name == "date":
            day = _DAY.search(value)  # a time stamp names the day of the week, too
            self.date = self.date or read_date(day[0] if day else value)[0]
        elif name == "filetags":
            self.tags.update(dict.fromkeys(filter(None, re.split(r"[:\s]+", value))))
        elif name in _FILE_PROPERTIES and value:
            self.properties.setdefault(_FILE_PROPERTIES[name], value)

    def line_of_block(self, line: str, text: str) -> None:
        if text.lower().startswith(self.end_of_block):
            self.end_of_block = ""
            self.written.end_code()
        elif self.written.is_in_code:
            code = blocks.dedented(line, self.columns)
            self.written.code(code[1:] if code.startswith((",*", ",#")) else code)
        elif self.shown_block and text:
            self.text(line, text)
        else:
            self.written.blank()

    def line_of_drawer(self, text: str) -> None:
        """Properties before the first heading are those of the file."""
        self.written.blank()
        match = _PROPERTY.fullmatch(text)
        if text.upper() == ":END:":
            self.drawer = False
        elif match is not None and match[2] and not self.has_heading:
            name = match[1].lower()
            if name == "roam_aliases":
                names = [a or b for a, b in _QUOTED.findall(match[2])]
                self.properties["aliases"] = names
            elif len(self.properties) < 100:
                self.properties.setdefault(name, match[2].strip())

    def table(self, text: str) -> None:
        if _RULE_OF_TABLE.fullmatch(text):
            columns = text.count("+") + 1
            self.written.text(10**6, "|" + "---|" * columns if self.table_rows == 1 else "")
        else:
            self.written.text(10**6, _inline(text))
        self.table_rows += 1

    def text(self, line: str, text: str) -> None:
        indent = blocks.indent_of(line)
        item = _ITEM.match(text)
        if text.startswith("# "):
            self.written.text(indent, f"\\{blocks.inert(text)}")
        elif item is not None and (item[1] != "*" or indent):
            mark = item[1] if item[1][0].isdecimal() else "-"
            self.written.item(indent, mark, _inline(item[2]))
        elif re.fullmatch("-{5,}", text):
            self.written.text(indent, "* * *")
        elif text.startswith(": "):
            self.written.text(indent, blocks.code_span(text[2:]))
        else:
            self.written.paragraph_line(indent, _inline(text))


def _inline(text: str) -> str:
    return blocks.rewrite_matches(text, _INLINE, _written)


def _written(match: re.Match[str]) -> str:
    if match[3]:
        return blocks.code_span(match[4])
    target, label = match[1], match[2]
    address = _address(target)
    shown = label or target.removeprefix("file:")
    if not address:
        return blocks.inert(shown.lstrip("*#"))
    if not label and re.search(r"\.(?:png|jpe?g|gif|svg|webp)$", address, re.IGNORECASE):
        return f"!{blocks.link('image', address)}"
    return blocks.link(blocks.inert(shown), address)


def _address(target: str) -> str:
    """Where a link leads, if that is outside of the file and has a name that holds elsewhere."""
    if re.match(r"(?:https?|mailto|ftp):", target):
        return target
    target = target.removeprefix("file:")
    path = target.partition("::")[0]
    is_file = target.startswith(("./", "../")) or re.search(r"\.\w{1,8}$", path)
    return path if is_file and not re.match(r"[a-z-]{2,20}:", target) else ""


def _shown(match: re.Match[str]) -> str:
    """What a heading shows of a link or of code."""
    return match[4] if match[3] else match[2] or match[1].removeprefix("file:").lstrip("*#")
