"""
Turns workbooks (XLSX) and presentations (PPTX) into Markdown, with what their archives share.

Word documents and the files of LibreOffice are read with the same functions (`word`,
`opendocument`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator, Sequence, Set
from datetime import datetime, timedelta
from itertools import chain, islice
from posixpath import join, normpath
from typing import NamedTuple, TypeAlias
from unicodedata import category

from lxml import etree

from qmd.parse.convert.archive import Archive
from qmd.parse.convert.blocks import (
    MAX_COLUMNS,
    TOO_MANY_COLUMNS,
    Blocks,
    column_name,
    inert_lines,
    write_rows,
)
from qmd.parse.convert.html_blocks import Element
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date
from qmd.parse.segment import is_cjk

#: Titles that programs give to files whose writer gave none.
_NO_TITLE = re.compile(
    r"(?:microsoft (?:word|powerpoint|excel) - .*|(?:powerpoint|word) (?:presentation|document)|"
    r"untitled.*|document ?\d*|presentation ?\d*|workbook ?\d*|slide 1|pptx?|docx?)$",
    re.IGNORECASE,
)


class About:
    """
    What the properties of an Office or LibreOffice file say.

    Attributes:
        title: Empty if the file has none, or one that a program made up.
    """

    def __init__(self, archive: Archive, part: str) -> None:
        self.title = ""
        self.date: str | None = None
        self.properties: dict[str, object] = {}
        root = archive.xml(part)
        for element in () if root is None else root.iter():
            text = " ".join((element.text or "").split())[:1000]
            if text:
                self._add(xml_name(element), text)

    def _add(self, name: str, text: str) -> None:
        if name == "title" and not _NO_TITLE.match(text):
            self.title = self.title or text
        elif name in ("created", "creation-date"):
            self.date = self.date or read_date(text)[0]
        elif name in ("creator", "initial-creator"):
            self.properties.setdefault("author", text)
        elif name in ("description", "subject"):
            self.properties.setdefault("description", text)

    def converted(
        self, blocks: Blocks, *, title: str = "", title_is_heading: bool = False
    ) -> Converted:
        """The whole file; ``title``, or its main heading, where it names none itself."""
        return blocks.converted(
            title=self.title or title,
            title_is_heading=title_is_heading,
            date=self.date,
            properties=self.properties,
        )


def relations(archive: Archive, part: str) -> dict[str, tuple[str, str]]:
    """The relations of a part by their ids: the end of the type's name, and the target."""
    folder, _, name = part.rpartition("/")
    root = archive.xml(f"{folder}/_rels/{name}.rels" if folder else f"_rels/{name}.rels")
    by_id: dict[str, tuple[str, str]] = {}
    for element in () if root is None else root.iter("{*}Relationship"):
        target = element.get("Target") or ""
        if element.get("TargetMode") != "External":
            target = (
                target.lstrip("/") if target.startswith("/") else normpath(join(folder, target))
            )
        kind = (element.get("Type") or "").rpartition("/")[2]
        by_id[element.get("Id") or ""] = (kind, target)
    return by_id


def main_part(archive: Archive, kind: str) -> str:
    """
    The name of the part with the document's text.

    Raises:
        DamagedFileError: The archive names none.
    """
    for relation, target in relations(archive, "").values():
        if relation == "officeDocument" and target in archive:
            return target
    raise archive.damaged(f"it holds no {kind}")


def xml_name(element: Element) -> str:
    """An element's name without its namespace; empty for comments."""
    tag = element.tag
    return tag.rpartition("}")[2] if isinstance(tag, str) else ""


def attribute(element: Element, name: str) -> str | None:
    """An attribute by its name without the namespace, of which there are two for each."""
    value = element.get(name)
    if value is not None:
        return value
    for key, value in element.attrib.items():
        if str(key).rpartition("}")[2] == name:
            return str(value)
    return None


def relation_id(element: Element) -> str:
    """The id of the relation that an element names, ``r:id``; empty without one."""
    ids = (str(value) for name, value in element.attrib.items() if str(name).endswith("}id"))
    return next(ids, "")


def children(element: Element | None, *names: str) -> Iterator[Element]:
    """The children with one of these names, in any namespace."""
    for child in () if element is None else element:
        if xml_name(child) in names:
            yield child


def child(element: Element | None, name: str) -> Element | None:
    """The first child with this name, in any namespace."""
    return next(children(element, name), None)


def nearest(
    root: Element | None, names: Set[str], enters: Callable[[str], bool]
) -> Iterator[Element]:
    """The elements with one of these names, none inside another; ``enters`` says where to look."""
    if root is None:
        return
    walker = etree.iterwalk(root, events=("start",))
    next(walker)  # the root itself
    for _, element in walker:
        name = xml_name(element)
        if name in names:
            yield element
        if name in names or not enters(name):
            walker.skip_subtree()


# --- workbooks: ECMA-376, part 1, SpreadsheetML -----------------------------------------
# Each sheet becomes tables, in pieces that fit into one chunk. Each piece is an anchor: the name of
# its sheet and the range of its cells. Cells show the values that were computed when the file was
# saved; no formula is evaluated, and no macro is looked at.

#: Sheets that are read.
MAX_SHEETS = 1000

_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_FIRST_ROWS = 100  # in which the first column with text is looked for


class SheetRow(NamedTuple):
    """
    A row of a sheet.

    Attributes:
        number: From 1.
        cells: From column A on, at most `MAX_COLUMNS`.
        has_more: There is text in a column after them.
    """

    number: int
    cells: list[str]
    has_more: bool


def convert_sheets(path: str, data: bytes) -> Converted:
    """
    A workbook.

    Raises:
        DamagedFileError: It is none, or damaged.
        EncryptedFileError: It needs a password.
    """
    archive = Archive(data, "workbook")
    workbook = _Workbook(archive)
    blocks = Blocks()
    for name, part in islice(workbook.sheets(), MAX_SHEETS):
        write_sheet(blocks, name, workbook.rows(part))
    return About(archive, "docProps/core.xml").converted(blocks)


def write_sheet(blocks: Blocks, name: str, rows: Iterator[SheetRow]) -> None:
    """A heading with the sheet's name, and its rows; nothing for a sheet without text."""
    filled = (row for row in rows if row.has_more or any(row.cells))
    first = [*islice(filled, _FIRST_ROWS)]
    if not first:
        return
    left = min(next((n for n, text in enumerate(row.cells) if text), 0) for row in first)
    numbers: list[int] = []
    width = 0

    def cells() -> Iterator[Sequence[str]]:
        nonlocal width
        for row in chain(first, filled):
            numbers.append(row.number)
            width = max(width, len(row.cells))
            if row.has_more:
                blocks.warn(TOO_MANY_COLUMNS)
            yield row.cells[left:]

    def begin(first_row: int, last_row: int) -> None:
        corner = f"{column_name(left)}{numbers[first_row - 1]}"
        end = f"{column_name(max(left, width - 1))}{numbers[last_row - 1]}"
        blocks.anchor("sheet", f"{name}!{corner}:{end}")
        if first_row == 1:
            blocks.heading(2, name)

    write_rows(blocks, cells(), begin=begin)


class _Workbook:
    def __init__(self, archive: Archive) -> None:
        self.archive = archive
        self.part = main_part(archive, "sheets")
        self.root = archive.xml(self.part)
        self.relations = relations(archive, self.part)
        self.strings = self.shared_strings()
        self.formats = self.cell_formats()
        properties = child(self.root, "workbookPr")
        is_1904 = properties is not None and properties.get("date1904") in ("1", "true")
        self.epoch = datetime(1904, 1, 1) if is_1904 else datetime(1899, 12, 30)

    def sheets(self) -> Iterator[tuple[str, str]]:
        """The names of the sheets, and of their parts."""
        for sheet in children(child(self.root, "sheets"), "sheet"):
            kind, target = self.relations.get(relation_id(sheet), ("", ""))
            if kind == "worksheet":
                yield " ".join((sheet.get("name") or "").split())[:200], target

    def rows(self, part: str) -> Iterator[SheetRow]:
        number = 0
        for element in self.archive.elements(part, "row"):
            stated = element.get("r") or ""
            number = int(stated) if re.fullmatch(r"\d{1,7}", stated) else number + 1
            cells: list[str] = []
            has_more = False
            for cell in children(element, "c"):
                match = _CELL.match(cell.get("r") or "")
                column = _column(match[1]) if match else len(cells)
                if column < MAX_COLUMNS:
                    cells += [""] * (column - len(cells))
                    cells[column:] = [self.shown(cell)]
                else:
                    has_more = has_more or bool(self.shown(cell))
            yield SheetRow(number, cells, has_more)

    def shown(self, cell: Element) -> str:
        """What a cell shows."""
        kind = cell.get("t") or "n"
        if kind == "inlineStr":
            return _text(child(cell, "is"))
        value = child(cell, "v")
        text = (value.text or "").strip() if value is not None else ""
        if kind == "s":
            is_index = text.isdecimal() and len(text) < 9 and int(text) < len(self.strings)
            return self.strings[int(text)] if is_index else ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        return self.number(text, cell.get("s") or "0") if kind == "n" and text else text

    def number(self, text: str, style: str) -> str:
        try:
            number = float(text)
        except ValueError:
            return text
        is_style = style.isdecimal() and len(style) < 7 and int(style) < len(self.formats)
        cell_format = self.formats[int(style)] if is_style else None
        if cell_format is None or cell_format.is_plain:
            return _digits(text, number)
        return cell_format.shown(text, number, self.epoch)

    def shared_strings(self) -> list[str]:
        target = next(
            (each for kind, each in self.relations.values() if kind == "sharedStrings"), ""
        )
        return [_text(element) for element in self.archive.elements(target, "si")]

    def cell_formats(self) -> list[_CellFormat]:
        """How each style of cells shows numbers."""
        target = next((each for kind, each in self.relations.values() if kind == "styles"), "")
        root = self.archive.xml(target)
        codes: dict[str, str] = {str(number): code for number, code in _BUILT_IN.items()}
        for element in children(child(root, "numFmts"), "numFmt"):
            codes[element.get("numFmtId") or ""] = element.get("formatCode") or ""
        formats: dict[str, _CellFormat] = {}
        styles = []
        for style in children(child(root, "cellXfs"), "xf"):
            code = codes.get(style.get("numFmtId") or "0", "General")
            if code not in formats:
                formats[code] = _CellFormat(_sections(code))
            styles.append(formats[code])
        return styles


def _text(element: Element | None) -> str:
    """The text of a string, without what tells how to read it aloud."""
    pieces = []
    for part in () if element is None else element.iter("{*}t"):
        parent = part.getparent()
        if parent is None or xml_name(parent) != "rPh":
            pieces.append(part.text or "")
    return "".join(pieces)


# --- number formats: ECMA-376, part 1, 18.8.30 and 18.8.31 --------------------------------

_FORMAT_PART = re.compile(
    r'"(?P<quoted>[^"]*)"|\\(?P<escaped>.)|[_*].|\[(?P<elapsed>h+|m+|s+)\]'
    r"|\[\$(?P<currency>[^\]-]*)[^\]]*\]|(?P<condition>\[[<>=][^\]]*\])|\[[^\]]*\]"
    r"|(?P<noon>am/pm|a/p|上午/下午)|(?P<general>general)"
    r"|(?P<digits>\.?[0#?](?:[0#?.,/]|E[+-])*)|(?P<date>y+|m+|d+|h+|s+|[egb]+)"
    r"|(?P<percent>%)|(?P<end>;)|(?P<text>.)",
    re.IGNORECASE | re.DOTALL,
)
_TEXTS = frozenset(("quoted", "escaped", "currency", "text"))
#: The formats of numbers below 164, which files do not write down. Those from 27 on mean another
#: one in each country; but for two, their dates are shown in full.
_BUILT_IN = {
    **dict.fromkeys((*range(14, 16), *range(27, 37), *range(50, 59)), "yyyy-mm-dd h:mm"),
    **{9: "0%", 10: "0.00%", 16: "d-mmm", 17: "mmm-yy", 22: "yyyy-mm-dd h:mm"},
    **dict.fromkeys((18, 19, 20, 21, 32, 33), "h:mm:ss"),
    **{45: "mm:ss", 46: "[h]:mm:ss", 47: "mm:ss.0"},
}
_CONDITION = re.compile(r"\[\s*(<=|>=|<>|<|>|=)\s*(-?\d{1,30}(?:\.\d{1,30})?)\s*\]")
_COMPARE: dict[str, Callable[[float, float], bool]] = {
    **{"<=": operator.le, ">=": operator.ge, "<>": operator.ne},
    **{"<": operator.lt, ">": operator.gt, "=": operator.eq},
}
#: What the parts of a section are, and their text.
_Section: TypeAlias = list[tuple[str, str]]
_MAX_FORMAT = 255  # characters, as in Excel
_INTEGER = re.compile(r"-?\d{1,30}")
#: Beyond it, floating-point numbers have no digits after the point.
_MOST_DIGITS = 1e21
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class _CellFormat:
    """
    How the cells of a style show numbers.

    Dates are in ISO 8601 as far as the format shows them, unless it writes them with words. Numbers
    keep all their digits, without separators, and have the words and the currency of the format.

    Attributes:
        is_plain: It shows the number alone.
    """

    def __init__(self, sections: list[_Section]) -> None:
        self._sections = sections
        self._conditional = _conditional(sections)
        self._parts = sections[0]
        kinds = {kind for kind, _ in self._parts}
        self._is_date = not kinds.isdisjoint(("date", "elapsed")) and "general" not in kinds
        if self._is_date:
            self._parts = _date_fields(self._parts)
        self._has_cjk = any(kind == "text" and is_cjk(text) for kind, text in self._parts)
        self._kinds = {kind for kind, _ in self._parts}
        self._percents = sum(kind == "percent" for kind, _ in self._parts)
        self._before, digits, self._after = _around_digits(self._parts)
        self._zeros = "".join(digits[:1]).partition(".")[0].count("0")
        last = "".join(digits[-1:])
        self._thousands = len(last) - len(last.rstrip(","))
        self.is_plain = len(self._sections) == 1 and not (
            self._conditional
            or self._is_date
            or self._before
            or self._after
            or self._zeros > 1
            or self._thousands
        )

    def shown(self, text: str, number: float, epoch: datetime) -> str:
        """A number as it is shown; ``text``: as the file has it."""
        for condition, cell_format in self._conditional:
            if _is_met(condition, number):
                return cell_format.shown(text, number, epoch)
        if self._conditional:
            return _digits(text, number)
        if self._is_date:
            return self._moment(number, epoch) or _digits(text, number)
        words = self._words(number)
        if words:
            return words
        if self._percents:
            text = f"{number * 100**self._percents:.10g}"
        elif self._thousands:
            text = f"{number / 1000**self._thousands:.15g}"
        else:
            text = _digits(text, number)
        sign, text = ("-", text[1:]) if text.startswith("-") else ("", text)
        if text.isdecimal():
            text = text.zfill(self._zeros)
        return f"{sign}{self._before}{text}{self._after}"

    def _words(self, number: float) -> str:
        """What a section of words alone shows instead of a number; empty for other sections."""
        place = 0 if number > 0 else 1 if number < 0 else 2
        section = self._sections[place if place < len(self._sections) else 0]
        if any(kind in ("digits", "general") for kind, _ in section):
            return ""
        shown = "".join(text for kind, text in section if kind == "text" and text != "@").strip()
        return shown if any(map(str.isalnum, shown)) else ""

    def _moment(self, number: float, epoch: datetime) -> str:
        """A date, a time or a duration; empty for a number that is none."""
        kinds = self._kinds
        if "elapsed" in kinds and abs(number) < 1e9:
            duration = _Moment(epoch, abs(round(number * 86_400)))
            return ("-" if number < 0 else "") + self._rendered(duration)
        days = number + 1 if epoch.year == 1899 and 0 < number < 60 else number  # no 1900-02-29
        if not 0 <= days < (datetime.max - epoch).days:
            return ""
        if number < 1 or kinds.isdisjoint("ymdw"):
            return self._time(_Moment(epoch, round(number % 1 * 86_400)))
        return self._date(_Moment(epoch, round(days * 86_400)))

    def _time(self, moment: _Moment) -> str:
        """The time of a day; empty if the format shows none."""
        if self._kinds.isdisjoint("hns"):
            return ""
        if self._has_cjk and self._kinds.isdisjoint("ymdwe"):
            return self._rendered(moment)
        return moment.at.strftime("%H:%M:%S").removesuffix(":00")

    def _date(self, moment: _Moment) -> str:
        """The parts of a date that the format shows."""
        kinds = self._kinds
        if "e" in kinds or (not self._has_cjk and kinds.issuperset("ymd")):
            text = moment.at.isoformat(sep=" ")
            has_time = not kinds.isdisjoint("hns")
            return text.removesuffix(" 00:00:00").removesuffix(":00") if has_time else text[:10]
        if self._has_cjk or "y" not in kinds or not kinds.isdisjoint("dw"):
            return self._rendered(moment)
        return moment.at.strftime("%Y-%m" if "m" in kinds else "%Y")

    def _rendered(self, moment: _Moment) -> str:
        pieces = []
        for kind, text in self._parts:
            if kind == "text":
                pieces.append(text)
            elif kind != "digits":
                pieces.append(moment.field(kind, text.lower(), is_noon="noon" in self._kinds))
        return "".join(pieces).strip()


def _conditional(sections: Sequence[_Section]) -> list[tuple[str, _CellFormat]]:
    """The sections of a format with conditions, such as ``[>=1000]``; "" is of all others."""
    conditions = [
        "".join(text for kind, text in section if kind == "condition") for section in sections[:3]
    ]
    if not any(conditions):
        return []
    return [
        (condition, _CellFormat([[part for part in section if part[0] != "condition"]]))
        for condition, section in zip(conditions, sections, strict=False)
    ]


def _is_met(condition: str, number: float) -> bool:
    """Whether a number meets a condition; any meets the empty one."""
    match = _CONDITION.fullmatch(condition)
    return not condition if match is None else _COMPARE[match[1]](number, float(match[2]))


def _sections(code: str) -> list[_Section]:
    """The parts of each section of a format: what they are, and their text."""
    sections: list[_Section] = [[]]
    for match in _FORMAT_PART.finditer(code[:_MAX_FORMAT]):
        kind = match.lastgroup
        if kind == "end":
            sections.append([])
        elif kind is not None:
            sections[-1].append(("text" if kind in _TEXTS else kind, match[kind]))
    return sections


def _date_fields(parts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """
    The parts of a date; the kinds of its fields are single letters.

    ``y`` year, ``m`` month, ``d`` day, ``w`` day of the week, ``h`` hour, ``n`` minute, ``s``
    second, ``e`` era.
    """
    fields = [text.lower() for kind, text in parts if kind in ("date", "elapsed")]
    kinds = []
    for number, field in enumerate(fields):
        before = fields[number - 1][0] if number else ""
        after = fields[number + 1][0] if number + 1 < len(fields) else ""
        if field in ("m", "mm") and (before == "h" or after == "s"):
            kinds.append("n")
        elif field[0] == "d" and len(field) > 2:
            kinds.append("w")
        else:
            kinds.append("e" if field[0] in "gb" else field[0])
    of_fields = iter(kinds)
    fielded = []
    for kind, text in parts:
        field_kind = next(of_fields) if kind in ("date", "elapsed") else ""
        fielded.append((field_kind if kind == "date" else kind, text))
    return fielded


class _Moment:
    """A moment, or a duration since the epoch, in seconds."""

    def __init__(self, epoch: datetime, seconds: int) -> None:
        self.seconds = seconds
        self.epoch = epoch

    @property
    def at(self) -> datetime:
        return self.epoch + timedelta(seconds=self.seconds)

    def field(self, kind: str, code: str, *, is_noon: bool) -> str:
        """A field of the moment; ``is_noon``: hours are counted to 12."""
        minutes, seconds = divmod(self.seconds, 60)
        hours, minutes_of_hour = divmod(minutes, 60)
        if kind == "elapsed":
            number = {"h": hours, "m": minutes, "s": self.seconds}[code[0]]
        elif kind in "ymdw":
            return _date_field(self.at, kind, code)
        elif kind == "noon":
            return code.split("/")[hours % 24 >= 12].upper()
        else:
            hour = (hours - 1) % 12 + 1 if is_noon else hours % 24
            number = {"h": hour, "n": minutes_of_hour, "s": seconds}[kind]
        return f"{number:0{len(code)}d}"


def _date_field(at: datetime, kind: str, code: str) -> str:
    if kind == "y":
        return f"{at.year}" if len(code) > 2 else f"{at.year % 100:02d}"
    if kind == "w" or (kind == "m" and len(code) > 2):
        name = _DAYS[at.weekday()] if kind == "w" else _MONTHS[at.month - 1]
        return name if len(code) == 4 else name[: 1 if len(code) == 5 else 3]
    return f"{at.month if kind == 'm' else at.day:0{len(code)}d}"


def _around_digits(parts: Sequence[tuple[str, str]]) -> tuple[str, list[str], str]:
    """What a format writes before a number, its places for digits, and what it writes after."""
    places = [place for place, (kind, _) in enumerate(parts) if kind in ("digits", "general")]
    if not places:
        return "", [], ""
    before, after = (
        "".join(text for kind, text in side if kind in ("text", "percent"))
        for side in (parts[: places[0]], parts[places[-1] + 1 :])
    )
    digits = [text for kind, text in parts if kind == "digits"]
    return _telling(before).lstrip(), digits, _telling(after).rstrip()


def _telling(text: str) -> str:
    """Text beside a number; empty if it tells no more than that the number is one."""
    return text if any(c.isalpha() or c == "%" or category(c) in ("Sc", "So") for c in text) else ""


def _digits(text: str, number: float) -> str:
    """A number with all its digits; ``text``: as the file has it."""
    if _INTEGER.fullmatch(text):
        return text
    return (
        f"{number:.0f}" if number.is_integer() and abs(number) < _MOST_DIGITS else f"{number:.15g}"
    )


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


# --- presentations: ECMA-376, part 1, PresentationML and DrawingML ----------------------
# Each slide is an anchor, its notes included.

#: Slides that are read.
MAX_SLIDES = 5000

_SHAPES = frozenset(("sp", "tbl", "relIds", "chart"))
_TITLES = frozenset(("title", "ctrTitle"))
#: Placeholders whose text is the same on all slides.
_REPEATED = frozenset(("dt", "ftr", "sldNum", "hdr", "sldImg"))


def convert_slides(path: str, data: bytes) -> Converted:
    """
    A presentation.

    Raises:
        DamagedFileError: It is none, or damaged.
        EncryptedFileError: It needs a password.
    """
    archive = Archive(data, "presentation")
    blocks = Blocks()
    first_title = ""
    for number, name in enumerate(_slides(archive), start=1):
        if number > MAX_SLIDES:
            blocks.warnings.append(f"Only the first {MAX_SLIDES:,} slides were read.")
            break
        blocks.anchor("slide", str(number))
        title = _Slide(archive, name, blocks).write()
        first_title = first_title or title
    return About(archive, "docProps/core.xml").converted(blocks, title=first_title)


def _slides(archive: Archive) -> Iterator[str]:
    """The names of the slides, in their order."""
    part = main_part(archive, "slides")
    targets = relations(archive, part)
    for entry in children(child(archive.xml(part), "sldIdLst"), "sldId"):
        target = targets.get(relation_id(entry))
        if target is not None:
            yield target[1]


class _Slide:
    def __init__(self, archive: Archive, name: str, blocks: Blocks) -> None:
        self.archive = archive
        self.blocks = blocks
        self.relations = relations(archive, name)
        self.root = archive.xml(name)

    def write(self) -> str:
        """Write the slide, and give its title."""
        shapes = [*_shapes(self.root)]
        titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
        title = " ".join(" ".join(text for _, text in _paragraphs(each)) for each in titles)
        self.blocks.heading(2, title)
        for shape in shapes:
            kind = _placeholder(shape)
            if kind in _TITLES or kind in _REPEATED:
                continue
            if xml_name(shape) == "tbl":
                self.table(shape)
            elif xml_name(shape) in ("relIds", "chart"):
                self.diagram(shape)
            else:
                self.text(shape, is_list=kind is not None)
        self.notes()
        return title

    def text(self, shape: Element, *, is_list: bool) -> None:
        """The paragraphs of a shape; those of a placeholder for text are items."""
        levels: list[int] = []
        for level, text in _paragraphs(shape):
            while levels and (levels[-1] >= level or not is_list):
                levels.pop()
                self.blocks.close()
            if is_list:
                self.blocks.open_item()
                levels.append(level)
            self.blocks.markdown(inert_lines(text))
        for _ in levels:
            self.blocks.close()

    def table(self, table: Element) -> None:
        rows = (
            ["\n".join(text for _, text in _paragraphs(cell)) for cell in children(row, "tc")]
            for row in children(table, "tr")
        )
        write_rows(self.blocks, rows)

    def diagram(self, shape: Element) -> None:
        """The words of a diagram or a chart, which stand in a part of their own."""
        part = attribute(shape, "dm") or attribute(shape, "id") or ""
        root = self.archive.xml(self.relations.get(part, ("", ""))[1])
        words: dict[str, None] = {}
        for element in () if root is None else root.iter():
            name = xml_name(element)
            text = " ".join((element.text or "").split()) if name in ("t", "v") else ""
            if text and not text.replace(".", "").lstrip("-").isdecimal() and len(words) < 1000:
                words.setdefault(text)
        self.blocks.markdown("\n".join(f"- {inert_lines(word)}" for word in words))

    def notes(self) -> None:
        for kind, target in self.relations.values():
            if kind == "notesSlide":
                for shape in _shapes(self.archive.xml(target)):
                    if _placeholder(shape) == "body":
                        text = "\n".join(text for _, text in _paragraphs(shape))
                        self.blocks.markdown(f"Notes: {inert_lines(text)}" if text.strip() else "")


def _shapes(root: Element | None) -> Iterator[Element]:
    """What may hold text: shapes, tables, diagrams and charts, also those in groups."""
    return nearest(root, _SHAPES, lambda name: name not in ("Fallback", "timing", "transition"))


def _placeholder(shape: Element) -> str | None:
    """The type of the placeholder that a shape fills; None if it fills none."""
    for element in children(shape, "nvSpPr"):
        placeholder = child(child(element, "nvPr"), "ph")
        if placeholder is not None:
            return placeholder.get("type") or "body"
    return None


def _paragraphs(shape: Element) -> Iterator[tuple[int, str]]:
    """The level and the text of each paragraph that has text."""
    for paragraph in shape.iter("{*}p"):
        pieces: list[str] = []
        level = 0
        for element in paragraph.iter():
            name = xml_name(element)
            if name == "t":
                pieces.append(element.text or "")
            elif name == "br":
                pieces.append("\n")
            elif name == "pPr":
                number = element.get("lvl") or "0"
                level = int(number) if number.isdecimal() and len(number) == 1 else 0
        text = "".join(pieces).strip()
        if text:
            yield level, text
