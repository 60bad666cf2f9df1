"""
Turns AsciiDoc into Markdown, line by line.

Nothing is included, and no condition is evaluated. Source: the AsciiDoc Language Documentation.
"""

from __future__ import annotations

import re

from qmd.errors import DamagedFileError
from qmd.parse.convert.blocks import LightMarkup, code_span, inert, link, piped, rewrite_matches
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date

_HEADING = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)$")
_ATTRIBUTE = re.compile(r":(!?[\w-]{1,80}!?):(?:[ \t]+(.*))?$")
_DELIMITER = re.compile(
    r"(?:-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|`{3,}\w{0,20}|[|,:!]={3,})$"
)
_BLOCK_ATTRIBUTES = re.compile(r"\[[^\[\]]{0,500}\]$|\[\[[^\[\]]{1,300}\]\]$")
_MACRO = re.compile(
    r"(include|ifdef|ifndef|ifeval|endif|toc|image|video|audio)::([^\[\]]{0,500})\[(.*)\]$"
)
_ITEM = re.compile(r"(\*{1,5}|-|\.{1,5}|\d{1,9}\.|<\d{0,3}\.?>)[ \t]+(?=\S)(.*)$")
#: What begins such a file; a signed text may be read.
_ARMORED = re.compile(rb"\s{0,9}-----BEGIN PGP (?!SIGNED MESSAGE)")
_TERM = re.compile(r"(\S.{0,300}?)(?:::{1,3}|;;)(?:[ \t]+(.*))?$")
_UNDERLINE = re.compile(r"(?:=+|-+|~+|\^+)$")
_CELL = re.compile(r"(?:\d{1,3}[+*])?[<^>.]{0,3}[aehlmsv]?\|")
_INLINE = re.compile(
    r"\\?(?:"
    r"`\+?([^`\n]+?)\+?`(?!\w)"
    r"|(?:link:|xref:|mailto:|(?=https?://|ftp://))([^\s\[\]<>]{1,1000})\[([^\[\]\n]{0,500})\]"
    r"|<<([^<>,\n]{1,300})(?:,[ ]?([^<>\n]{1,300}))?>>"
    r"|image:([^\s\[\]:][^\s\[\]]{0,500})\[([^\[\]\n]{0,300})\]"
    r"|\[\[[^\[\]\n]{1,200}\]\]"
    r")"
)
_ADMONITION = re.compile(r"\[(NOTE|TIP|WARNING|IMPORTANT|CAUTION)[\],]")
_SOURCE = re.compile(
    r"\[(?:source|listing)?,[ ]?([\w+#.-]{1,40})|\[source%?[\w]*,[ ]?([\w+#.-]{1,40})"
)
_LEVELS = {"=": 1, "-": 2, "~": 3, "^": 4}


def convert(path: str, data: bytes) -> Converted:
    """
    An AsciiDoc file.

    Raises:
        DamagedFileError: It is a key or signature of OpenPGP, whose files are named .asc, too.
        DecodeError: The bytes are no text.
    """
    if _ARMORED.match(data):
        raise DamagedFileError(
            "The file is a key, a signature or an encrypted message of OpenPGP, not AsciiDoc.",
            hint="Leave it out: nothing in it can be read.",
        )
    return _AsciiDoc(data).converted()


class _AsciiDoc(LightMarkup):
    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        self.delimiter = ""  # of the open block of code or of a comment
        self.table = ""
        self.table_rows = 0
        self.language = ""
        self.marks: list[str] = []  # of the open lists, the outermost first
        self.in_header = False
        self.is_literal = False  # the open paragraph is shown as it stands
        self.columns = 0

    def read_line(self) -> None:
        self.line(self.lines[self.at].rstrip())
        self.at += 1

    def line(self, line: str) -> None:
        if self.delimiter:
            self.line_of_block(line)
        elif self.table and not _DELIMITER.match(line):
            self.row(line)
        elif not line.strip():
            self.written.blank()
            self.in_header = self.is_literal = False
        elif _DELIMITER.match(line):
            self.begin_block(line)
        elif not (self.heading(line) or self.header(line) or self.silent(line)):
            self.text(line)

    def begin_block(self, line: str) -> None:
        sign = line[0]
        if line[1:4] == "===" and sign in "|,:!":
            self.table = "" if self.table == line else line
            self.table_rows = 0
            self.written.blank()
        elif line == "--" or sign in "=*_":
            self.written.blank()
            self.marks.clear()
        elif sign in "/+":
            self.delimiter = line
            self.written.blank()
        else:
            language = line.lstrip("`") if sign == "`" else ""
            self.delimiter = line.removesuffix(language)
            self.written.begin_code(0, self.language or language)
        self.language = ""

    def line_of_block(self, line: str) -> None:
        if line == self.delimiter:
            self.delimiter = ""
            self.written.end_code()
        elif self.written.is_in_code:
            self.written.code(line)
        elif self.delimiter[0] == "+":
            self.written.text(0, inert(line))
        else:
            self.written.blank()

    def row(self, line: str) -> None:
        """A line of a table; one with several cells is a row of Markdown."""
        if not line.strip():
            self.written.blank() if self.table_rows != 1 else self.rule()
            return
        cells = _CELL.split(line)
        if len(cells) < 3 or cells[0].strip():
            self.written.text(0, _inline(line.strip().removeprefix("|").strip()))
            self.table_rows = 2
            return
        self.columns = len(cells) - 1
        self.written.text(
            0, f"| {' | '.join(piped(_inline(each.strip())) for each in cells[1:])} |"
        )
        self.table_rows += 1

    def rule(self) -> None:
        self.written.text(0, "|" + "---|" * self.columns)
        self.table_rows += 1

    def heading(self, line: str) -> bool:
        match = _HEADING.match(line)
        below = self.lines[self.at + 1].rstrip() if self.at + 1 < len(self.lines) else ""
        if match is not None:
            self.written.heading(len(match[1]), _plain(match[2].rstrip("= #") or match[2]))
            self.in_header = len(match[1]) == 1
        elif (
            _UNDERLINE.match(below)
            and abs(len(below) - len(line)) <= 2
            and not line.startswith((".", "[", "//", ":"))
            and (
                self.at == 0
                or not self.lines[self.at - 1].strip()
                or self.lines[self.at - 1][0] in "[/"
            )
        ):
            self.written.heading(_LEVELS[below[0]], _plain(line.strip()))
            self.in_header = below[0] == "="
            self.written.blank()
            self.at += 1
        else:
            return False
        self.marks.clear()
        return True

    def header(self, line: str) -> bool:
        """Author, revision and attributes below the title; attributes anywhere."""
        match = _ATTRIBUTE.match(line)
        if match is not None:
            self.property(match[1], (match[2] or "").strip())
            self.written.blank()
            return True
        if not self.in_header:
            return False
        if "author" not in self.properties and not line[0].isdecimal() and line[:1] != "v":
            self.properties["author"] = line.partition("<")[0].strip()
        else:
            date = re.search(r"\d{4}-\d{2}-\d{2}", line)
            self.date = self.date or (date[0] if date else None)
        self.written.text(0, inert(line))
        return True

    def property(self, name: str, value: str) -> None:
        if name in ("revdate", "date"):
            self.date = self.date or read_date(value)[0]
        elif name in ("author", "description") and value:
            self.properties[name] = value

    def silent(self, line: str) -> bool:
        """Comments, block attributes, and macros that would read other files."""
        macro = _MACRO.match(line)
        if macro is not None:
            self.written.text(0, _image(macro[2], macro[3]) if macro[1] == "image" else "")
            return True
        if line == "+" or (line.startswith("//") and not line.startswith("///")):
            self.written.blank()
            return True
        if _BLOCK_ATTRIBUTES.match(line):
            source = _SOURCE.match(line)
            self.language = (source[1] or source[2]) if source else ""
            admonition = _ADMONITION.match(line)
            self.written.text(0, f"{admonition[1].capitalize()}:" if admonition else "")
            return True
        return False

    def text(self, line: str) -> None:
        text = line.strip()
        item = _ITEM.match(text)
        term = None if item else _TERM.match(text)
        if item is not None:
            self.item(item[1], item[2])
        elif text.startswith(".") and len(text) > 1 and text[1] not in ". ":
            self.written.paragraph_line(0, _inline(text[1:]))  # a block's title
        elif term is not None:
            shown = f"{_inline(term[1])}: {_inline(term[2] or '')}".rstrip()
            self.written.item(0, "-", shown)
        elif line[0].isspace() and not self.marks and not self.continues():
            self.written.text(0, f"    {line}")  # an indented paragraph is shown as it stands
            self.is_literal = True
        else:
            inside = 1000 if self.marks or self.continues() else 0
            self.written.paragraph_line(inside, _inline(text.removesuffix(" +")))

    def continues(self) -> bool:
        """Whether the line is of the paragraph of the line above."""
        if self.is_literal or self.at == 0:
            return False
        return bool(self.lines[self.at - 1].strip())

    def item(self, mark: str, text: str) -> None:
        kind = "1." if mark[0].isdecimal() else "<" if mark[0] == "<" else mark
        if kind in self.marks:
            del self.marks[self.marks.index(kind) :]
        self.marks.append(kind)
        box = re.match(r"\[([ xX*])\][ \t]+", text)
        shown = _inline(text[box.end() :] if box else text)
        if box:
            shown = f"[{' ' if box[1] == ' ' else 'x'}] {shown}"
        sign = "-" if mark[0] in "*-" else "1."
        self.written.item(len(self.marks), sign, shown)


def _inline(text: str) -> str:
    return rewrite_matches(text, _INLINE, _written)


def _written(match: re.Match[str]) -> str:
    if match[0].startswith("\\"):
        return inert(match[0][1:])
    code, target, label, place, shown, image, alt = match.groups()
    if code:
        return code_span(code)
    if target:
        label = label.partition(",")[0].strip('"') if "=" in label else label
        label = label.rstrip("^").strip() or target
        path, _, fragment = target.partition("#")
        is_web = "://" in target
        if not is_web and (not path or "." not in path):
            return inert(label if label != target else fragment or path)
        return link(inert(label), target if is_web else path)
    if place:
        return inert(shown or place.lstrip("#").partition("#")[0].replace("_", " "))
    return _image(image, alt) if image else ""


def _image(target: str, attributes: str) -> str:
    label = attributes.partition(",")[0].strip(' "')
    written = link(inert(label) or "image", target)
    return f"!{written}" if written.endswith(")") else written


def _plain(text: str) -> str:
    """The text of a heading: code and links as they are shown."""
    return _INLINE.sub(lambda match: match[1] or match[3] or match[5] or match[2] or "", text)
