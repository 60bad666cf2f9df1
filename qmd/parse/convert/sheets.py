"""
Turns Excel workbooks (XLSX) into Markdown: each sheet as tables in pieces that fit into one chunk.

Each piece is an anchor: the name of its sheet and the range of its cells. Cells show the values
that were computed when the file was saved; no formula is evaluated, and no macro is looked at.
Source: ECMA-376, part 1, SpreadsheetML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from io import BytesIO
from itertools import chain, islice
from typing import NamedTuple

from lxml import etree

from qmd.parse.convert.archive import Archive
from qmd.parse.convert.blocks import Blocks
from qmd.parse.convert.html_blocks import Element
from qmd.parse.convert.office import About, child, children, main_part, relations, xml_name
from qmd.parse.convert.tables import MAX_COLUMNS, column_name, write_rows
from qmd.parse.converted import Converted

#: Sheets that are read.
MAX_SHEETS = 1000

_CELL = re.compile(r"([A-Z]{1,3})(\d{1,7})")
_QUOTED = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.|_.')
_BUILT_IN_DATES = frozenset((*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)))
_BUILT_IN_PERCENT = frozenset((9, 10))
_FIRST_ROWS = 100  # in which the first column with text is looked for


class SheetRow(NamedTuple):
    """A row of a sheet: its number from 1, and its cells from column A on."""

    number: int
    cells: list[str]


def convert(path: str, data: bytes) -> Converted:
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
    about = About(archive, "docProps/core.xml")
    return blocks.converted(title=about.title, date=about.date, properties=about.properties)


def write_sheet(blocks: Blocks, name: str, rows: Iterator[SheetRow]) -> None:
    """A heading with the sheet's name, and its rows; nothing for a sheet without text."""
    filled = (row for row in rows if any(row.cells))
    first = [*islice(filled, _FIRST_ROWS)]
    if not first:
        return
    left = min(next(n for n, text in enumerate(row.cells) if text) for row in first)
    numbers: list[int] = []
    width = 0

    def cells() -> Iterator[Sequence[str]]:
        nonlocal width
        for row in chain(first, filled):
            numbers.append(row.number)
            width = max(width, len(row.cells))
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
        self.last_day = (datetime.max - self.epoch).days

    def sheets(self) -> Iterator[tuple[str, str]]:
        """The names of the sheets, and of their parts."""
        for sheet in children(child(self.root, "sheets"), "sheet"):
            for key, value in sheet.attrib.items():
                if str(key).endswith("}id"):
                    kind, target = self.relations.get(str(value), ("", ""))
                    if kind == "worksheet":
                        yield " ".join((sheet.get("name") or "").split())[:200], target

    def rows(self, part: str) -> Iterator[SheetRow]:
        number = 0
        for element in elements(self.archive, part, "row"):
            stated = element.get("r") or ""
            number = int(stated) if re.fullmatch(r"\d{1,7}", stated) else number + 1
            cells: list[str] = []
            for cell in children(element, "c"):
                match = _CELL.match(cell.get("r") or "")
                column = _column(match[1]) if match else len(cells)
                if column < MAX_COLUMNS:
                    cells += [""] * (column - len(cells))
                    cells[column:] = [self.shown(cell)]
            yield SheetRow(number, cells)

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
        kind = self.formats[int(style)] if is_style else ""
        if kind == "date" and 0 <= number < self.last_day:
            return _date(self.epoch, number)
        if kind == "percent":
            return f"{number * 100:.10g}%"
        return f"{number:.15g}"

    def shared_strings(self) -> list[str]:
        target = next(
            (each for kind, each in self.relations.values() if kind == "sharedStrings"), ""
        )
        return [_text(element) for element in elements(self.archive, target, "si")]

    def cell_formats(self) -> list[str]:
        """For each style of cells whether it shows a date, a percentage, or else."""
        target = next((each for kind, each in self.relations.values() if kind == "styles"), "")
        root = self.archive.xml(target)
        codes: dict[str, str] = {}
        for element in children(child(root, "numFmts"), "numFmt"):
            codes[element.get("numFmtId") or ""] = element.get("formatCode") or ""
        styles = children(child(root, "cellXfs"), "xf")
        return [_kind_of_format(style.get("numFmtId") or "0", codes) for style in styles]


def elements(archive: Archive, part: str, name: str) -> Iterator[Element]:
    """
    The elements of a name in a part, one after the other: each is gone when the next one comes.

    Raises:
        DamagedFileError: The part is no XML.
    """
    data = archive.read(part)
    if not data:
        return
    parsed = etree.iterparse(
        BytesIO(data), events=("end",), tag=f"{{*}}{name}", resolve_entities=False,
        no_network=True, load_dtd=False, huge_tree=False, remove_comments=True, remove_pis=True,
    )  # fmt: skip
    try:
        for _, element in parsed:
            yield element
            element.clear()
            parent = element.getparent()
            while parent is not None and element.getprevious() is not None:
                del parent[0]
    except etree.XMLSyntaxError as error:
        raise archive.damaged(f"its part {part[:200]!r} cannot be read") from error


def _text(element: Element | None) -> str:
    """The text of a string, without what tells how to read it aloud."""
    pieces = []
    for part in () if element is None else element.iter("{*}t"):
        parent = part.getparent()
        if parent is None or xml_name(parent) != "rPh":
            pieces.append(part.text or "")
    return "".join(pieces)


def _kind_of_format(number: str, codes: dict[str, str]) -> str:
    code = codes.get(number)
    if code is None:
        if not number.isdecimal() or len(number) > 6:
            return ""
        known_kind = "percent" if int(number) in _BUILT_IN_PERCENT else ""
        return "date" if int(number) in _BUILT_IN_DATES else known_kind
    bare = _QUOTED.sub("", code).lower()
    if "%" in bare:
        return "percent"
    return "date" if re.search(r"[ymdhs]", bare) and "general" not in bare else ""


def _date(epoch: datetime, number: float) -> str:
    moment = epoch + timedelta(seconds=round(number * 86_400))
    if number < 1:
        return moment.strftime("%H:%M:%S").removesuffix(":00")
    text = moment.isoformat(sep=" ")
    return text.removesuffix(" 00:00:00").removesuffix(":00")


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1
