r"""
Turns RTF, the files of WordPad and TextEdit, into paragraphs, headings, lists and tables.

Source: Rich Text Format Specification 1.9.1. A file is groups in braces. A group may begin with the
name of what it holds, its destination (``{\fonttbl …}``); what is set inside a group ends with it.
"""

from __future__ import annotations

import codecs
import datetime
import re
from dataclasses import dataclass, field, replace

from qmd.errors import DamagedFileError
from qmd.parse.convert.blocks import MAX_COLUMNS, Blocks, write_rows
from qmd.parse.converted import Converted

#: Groups inside each other.
MAX_DEPTH = 500
#: Rows of one table; the next ones begin a new table.
MAX_ROWS = 5_000
MAX_FONTS = 10_000
#: Characters of the name of a style, or of a title.
_MAX_NAME = 1000
#: Characters that a program without Unicode shows for a sign.
_MAX_SUBSTITUTE = 100

_TOKEN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})?[ ]?"  # a word, perhaps with a number
    rb"|\\'([0-9A-Fa-f]{2})"  # a byte
    rb"|\\(.)"  # a sign
    rb"|([{}])"
    rb"|([^\\{}\r\n\x00]+)"  # text
    rb"|[\r\n\x00]+|\\",
    re.DOTALL,
)
_HEADING = re.compile(r"(?:heading|标题|überschrift|titre)[ ]?([1-6])", re.IGNORECASE)
_NUMBERED = re.compile(r"\w{1,9}[.)]")

#: Characters by their names; those that end something are done by `_Reader._end`.
_CHARACTERS = {
    b"tab": "\t", b"line": "\n", b"emdash": "—", b"endash": "–", b"bullet": "•",
    b"lquote": "‘", b"rquote": "’", b"ldblquote": "“", b"rdblquote": "”", b"emspace": "\u2003",
    b"enspace": "\u2002", b"qmspace": " ", b"nestcell": "\t", b"softline": "\n",
}  # fmt: skip
_SIGNS = {b"~": "\xa0", b"_": "-", b"-": "", b"\\": "\\", b"{": "{", b"}": "}", b"\t": "\t"}
#: Destinations that hold text of the document although an older program may skip them.
_READ = frozenset((b"shpinst", b"shptxt", b"ud", b"footnote", b"result"))
#: Destinations of other things than the text.
_SKIPPED = frozenset(
    b"colortbl pict object header headerl headerr headerf footer footerl footerr footerf fldinst sp"
    b" nonshppict nonesttables upr xe tc rxe txe private revtbl listtable listoverridetable"
    b" ftnsep ftnsepc ftncn aftnsep aftnsepc aftncn stylesheet fonttbl info".split()
)
#: The parts of the table of fonts, of styles and of what is known of the document.
_NOTED = frozenset((b"fonttbl", b"stylesheet", b"info"))
#: What stands before an item of a list, for programs that do not know lists.
_MARKS = (b"listtext", b"pntext")
_ABOUT = (b"title", b"author", b"creatim")
_CODE_PAGES = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gb18030", 136: "cp950",
    161: "cp1253", 162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257",
    204: "cp1251", 222: "cp874", 238: "cp1250", 254: "cp437",
}  # fmt: skip
_BY_NUMBER = {936: "gb18030", 950: "cp950", 932: "cp932", 949: "cp949", 10000: "mac_roman"}


@dataclass(slots=True)
class _Group:
    """What holds until the end of a group."""

    destination: bytes = b""
    is_silent: bool = False
    is_hidden: bool = False
    encoding: str = "cp1252"
    substitutes: int = 1


@dataclass(slots=True)
class _Paragraph:
    """A paragraph as far as it is read, and what its words say of it."""

    pieces: list[str] = field(default_factory=list)
    mark: list[str] = field(default_factory=list)
    style: int = -1
    level: int = -1
    is_in_table: bool = False


def convert(path: str, data: bytes) -> Converted:
    """
    The text of an RTF file, without heads, feet, pictures and comments.

    Raises:
        DamagedFileError: It is none, or has too many groups inside each other.
    """
    begin = re.match(rb"(?:\xef\xbb\xbf)?\s{0,100}(?=\{\\rtf)", data)
    if begin is None:
        raise DamagedFileError(
            "The file is no RTF document: it does not begin as RTF does.",
            hint="Open it in a word processor and save it again.",
        )
    reader = _Reader()
    reader.read(data, begin.end())
    return reader.converted()


class _Reader:
    def __init__(self) -> None:
        self.blocks = Blocks()
        self.groups: list[_Group] = []
        self.group = _Group()
        self.default_encoding = "cp1252"
        self.bytes: list[bytes] = []
        self.to_skip = 0
        self.paragraph = _Paragraph()
        self.cells: list[str] = []
        self.rows: list[list[str]] = []
        self.notes: list[str] = []
        self.encodings: dict[int, str] = {}
        self.levels: dict[int, int] = {}
        self.number = -1
        self.level = -1
        self.name: list[str] = []
        self.about: dict[bytes, str] = {}
        self.date: dict[bytes, int] = {}
        self.high = ""

    def read(self, data: bytes, at: int) -> None:
        while (match := _TOKEN.match(data, at)) is not None:
            at = match.end()
            word, number, byte, sign, brace, text = match.groups()
            if text is not None:
                self.add_bytes(text)
            elif byte is not None:
                self.add_bytes(bytes.fromhex(byte.decode("ascii")))
            elif word is not None:
                value = int(number) if number else None
                if word == b"bin":
                    at += max(0, value or 0)
                else:
                    self.word(word, value)
            elif brace == b"{":
                self.open()
            elif brace == b"}":
                self.close()
                if not self.groups:
                    break
            elif sign is not None:
                self.sign(sign)
            if self.blocks.is_full:
                return
        self.flush()
        self.end_paragraph()
        self.end_table()

    def open(self) -> None:
        self.flush()
        self.to_skip = 0
        if len(self.groups) >= MAX_DEPTH:
            raise DamagedFileError(
                f"The file has more than {MAX_DEPTH} groups inside each other.",
                hint="Open it in a word processor and save it again.",
            )
        self.groups.append(self.group)
        self.group = replace(self.group)

    def close(self) -> None:
        self.flush()
        self.to_skip = 0
        destination = self.group.destination
        self.group = self.groups.pop() if self.groups else _Group()
        if destination != self.group.destination or destination in _NOTED:
            self.end_destination(destination)

    def end_destination(self, destination: bytes) -> None:
        name = " ".join("".join(self.name)[:_MAX_NAME].split())
        if destination == b"stylesheet" and name:
            heading = _HEADING.match(name)
            if heading is not None:
                self.levels[self.number] = int(heading[1])
            elif self.level >= 0:
                self.levels[self.number] = self.level + 1
            self.number, self.level = 0, -1
        elif destination in (b"title", b"author"):
            self.about[destination] = name
        elif destination == b"footnote":
            self.notes.append(name)
        else:
            return
        self.name = []

    def word(self, word: bytes, value: int | None) -> None:
        if self.to_skip and word != b"u":
            self.to_skip -= 1
            return
        if word == b"u":
            self.flush()
            self.unicode(value or 0)
            return
        self.flush()
        if word in _CHARACTERS:
            self.add(_CHARACTERS[word])
        elif not self._begins_destination(word):
            self._formats(word, value)

    def _begins_destination(self, word: bytes) -> bool:
        """Whether what follows in the group goes elsewhere than into the text."""
        group = self.group
        if word in _SKIPPED:
            group.destination, group.is_silent = word, word not in _NOTED
            self.number, self.level = 0, -1
        elif word in _READ:
            group.destination, group.is_silent = word, False
        elif word in _MARKS or (word in _ABOUT and group.destination == b"info"):
            group.destination = word
        else:
            return False
        return True

    def _formats(self, word: bytes, value: int | None) -> None:
        """The words that say how the text is meant that follows them."""
        group = self.group
        if word in (b"yr", b"mo", b"dy") and group.destination == b"creatim":
            self.date[word] = value or 0
        elif word == b"uc":
            group.substitutes = min(max(value or 0, 0), _MAX_SUBSTITUTE)
        elif word in (b"v", b"deleted"):
            group.is_hidden = value != 0
        elif word in (b"ansicpg", b"mac", b"pc", b"pca"):
            old = {b"mac": "mac_roman", b"pc": "cp437", b"pca": "cp850"}
            self.default_encoding = old.get(word) or _encoding(value or 1252)
            group.encoding = self.default_encoding
        elif word in (b"f", b"fcharset", b"cpg", b"deff", b"plain"):
            self.font(word, value)
        elif word in (b"s", b"outlinelevel"):
            self.style(word, value)
        elif not group.is_silent and group.destination not in _NOTED:
            self._end(word)

    def font(self, word: bytes, value: int | None) -> None:
        group = self.group
        if group.destination == b"fonttbl":
            if word == b"f":
                self.number = value or 0
            elif word == b"fcharset" and len(self.encodings) < MAX_FONTS and value in _CODE_PAGES:
                self.encodings[self.number] = _CODE_PAGES[value]
            elif word == b"cpg" and len(self.encodings) < MAX_FONTS:
                self.encodings[self.number] = _encoding(value or 1252)
        elif word == b"f":
            group.encoding = self.encodings.get(value or 0, self.default_encoding)
        elif word == b"plain":
            group.encoding = self.default_encoding
            group.is_hidden = False

    def style(self, word: bytes, value: int | None) -> None:
        if self.group.destination == b"stylesheet":
            if word == b"s":
                self.number = value or 0
            else:
                self.level = value if value is not None and value < 6 else -1
        elif word == b"s":
            self.paragraph.style = value or 0
        else:
            self.paragraph.level = value if value is not None and value < 6 else -1

    def _end(self, word: bytes) -> None:
        """The words at which a cell, a row or a paragraph of the document begins or ends."""
        if self.group.destination == b"footnote":
            if word == b"par":
                self.add("\n")
        elif word in (b"par", b"sect", b"page"):
            if self.paragraph.is_in_table:
                self.add("\n")
            else:
                self.end_paragraph()
        elif word == b"pard":
            pieces, mark = self.paragraph.pieces, self.paragraph.mark
            self.paragraph = _Paragraph(pieces, mark)
        elif word == b"intbl":
            self.paragraph.is_in_table = True
        elif word == b"cell":
            if len(self.cells) <= MAX_COLUMNS:
                self.cells.append("".join(self.paragraph.pieces))
            self.paragraph = _Paragraph(is_in_table=True)
        elif word == b"row":
            self.rows.append(self.cells)
            self.cells = []
            if len(self.rows) >= MAX_ROWS:
                self.end_table()
        elif word == b"nestrow":
            self.add("\n")

    def sign(self, sign: bytes) -> None:
        if self.to_skip:
            self.to_skip -= 1
            return
        self.flush()
        if sign == b"*":
            self.group.is_silent = True
        elif sign in b"\r\n":
            self._end(b"par")
        else:
            self.add(_SIGNS.get(sign, ""))

    def add_bytes(self, text: bytes) -> None:
        skipped = min(self.to_skip, len(text))
        self.to_skip -= skipped
        if len(text) > skipped:
            self.bytes.append(text[skipped:])

    def unicode(self, value: int) -> None:
        self.to_skip = self.group.substitutes
        code = value % 0x10000
        if 0xD800 <= code < 0xDC00:
            self.high = chr(code)
            return
        pair = self.high + chr(code or 0xFFFD)  # no text holds NUL
        self.high = ""
        self.add(pair.encode("utf-16", "surrogatepass").decode("utf-16", "replace"))

    def flush(self) -> None:
        """Decode the bytes that were read: those of one character may be written in two ways."""
        if self.bytes:
            text = b"".join(self.bytes).decode(self.group.encoding, "replace")
            self.bytes = []
            self.add(text)

    def add(self, text: str) -> None:
        group = self.group
        if group.is_silent or group.is_hidden:
            return
        if group.destination in _MARKS:
            self.paragraph.mark.append(text)
        elif group.destination in (b"stylesheet", b"title", b"author", b"footnote"):
            self.name.append(text)
        elif group.destination not in (b"fonttbl", b"info", b"creatim"):
            self.paragraph.pieces.append(text)

    def end_paragraph(self) -> None:
        paragraph = self.paragraph
        self.paragraph = replace(paragraph, pieces=[], mark=[])
        text = "".join(paragraph.pieces).strip()
        if not text:
            return
        self.end_table()
        level = paragraph.level + 1 or self.levels.get(paragraph.style, 0)
        mark = "".join(paragraph.mark).strip()
        if level and "\n" not in text:
            self.blocks.heading(level, text)
        elif mark:
            self.blocks.open_item("1." if _NUMBERED.fullmatch(mark) else "-")
            self.blocks.paragraph(text)
            self.blocks.close()
        else:
            self.blocks.paragraph(text)

    def end_table(self) -> None:
        rows, self.rows = self.rows, []
        if max(map(len, rows), default=0) > 1:
            write_rows(self.blocks, rows)
        else:  # a frame around text
            for row in rows:
                self.blocks.paragraph("".join(row).strip())

    def converted(self) -> Converted:
        for note in self.notes:
            self.blocks.paragraph(note)
        return self.blocks.converted(
            title=self.about.get(b"title"),
            title_is_heading=True,
            date=_date(*(self.date.get(part, 0) for part in (b"yr", b"mo", b"dy"))),
            properties={"author": self.about.get(b"author")},
            encoding=self.default_encoding,
        )


def _date(year: int, month: int, day: int) -> str | None:
    try:
        return datetime.date(year, month, day).isoformat()
    except (ValueError, OverflowError):
        return None


def _encoding(code_page: int) -> str:
    """The codec of a code page of Windows; that of Western Europe if Python has none."""
    name = _BY_NUMBER.get(code_page, f"cp{code_page}")
    try:
        codecs.lookup(name)
    except LookupError:
        return "cp1252"
    return name
