"""
Turns LibreOffice's files (ODT, ODS, ODP) into Markdown, as those of Microsoft's Office.

Source: Open Document Format for Office Applications 1.3.
"""

from __future__ import annotations

from collections.abc import Iterator

from lxml import etree

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse.convert import blocks, office
from qmd.parse.convert.archive import Archive
from qmd.parse.convert.html_blocks import Element
from qmd.parse.converted import Converted

#: Lists, tables and text boxes inside each other that are read.
MAX_DEPTH = 10
#: Times that a row is written which the file says is there several times.
MAX_REPEATED = 100

_SILENT = frozenset(
    (
        "annotation",
        "tracked-changes",
        "table-of-content",
        "alphabetical-index",
        "forms",
        "title",
        "desc",
        "note-citation",
        "sequence-decls",
        "event-listeners",
        "ruby-text",
    )
)


def convert(path: str, data: bytes) -> Converted:
    """
    A text, a workbook or a presentation.

    Raises:
        DamagedFileError: It is none, or damaged.
        EncryptedFileError: It needs a password.
    """
    archive = Archive(data, "OpenDocument file")
    manifest = archive.xml("META-INF/manifest.xml")
    if manifest is not None and next(manifest.iter("{*}encryption-data"), None) is not None:
        raise EncryptedFileError("OpenDocument file")
    root = archive.xml("content.xml")
    body = office.child(root, "body")
    if body is None:
        raise archive.damaged("it holds no text")
    document = _OpenDocument(archive, root)
    for part in body:
        document.write_body(part)
    document.write_notes()
    return office.About(archive, "meta.xml").converted(document.blocks, title_is_heading=True)


class _OpenDocument:
    def __init__(self, archive: Archive, root: Element | None) -> None:
        self.archive = archive
        self.blocks = blocks.Blocks()
        self.notes: list[Element] = []
        styles = self.part("styles.xml")
        self.first_numbers = dict([*_numbered_levels(styles), *_numbered_levels(root)])
        self.lists: list[str] = []  # the styles of the lists that are open
        self.counts: dict[tuple[str, int], int] = {}  # items of the latest list of a style

    def write_body(self, part: Element) -> None:
        kind = office.xml_name(part)
        if kind == "spreadsheet":
            for number, table in enumerate(office.children(part, "table")):
                if number < office.MAX_SHEETS:
                    office.write_sheet(
                        self.blocks, office.attribute(table, "name") or "", self.rows_of(table)
                    )
        elif kind == "presentation":
            for number, page in enumerate(office.children(part, "page"), start=1):
                self.blocks.anchor("slide", str(number))
                self.slide(page)
        else:
            self.write_all(part, 0)

    def slide(self, page: Element) -> None:
        titles = [
            each
            for each in office.children(page, "frame")
            if office.attribute(each, "class") == "title"
        ]
        self.blocks.heading(2, " ".join(map(self.plain_text, titles)))
        for shape in page:
            if office.xml_name(shape) == "notes":
                frames = office.children(shape, "frame")
                notes = [each for each in frames if office.attribute(each, "class") == "notes"]
                text = " ".join(map(self.plain_text, notes)).strip()
                self.blocks.markdown(f"Notes: {blocks.inert(text)}" if text else "")
            elif shape not in titles:
                self.write(shape, 0)

    def write_all(self, container: Element, depth: int) -> None:
        for element in container:
            if self.blocks.is_full or depth > MAX_DEPTH:
                return
            self.write(element, depth)

    def write(self, element: Element, depth: int) -> None:
        name = office.xml_name(element)
        if name == "h":
            level = _number(element, "outline-level", default=1)
            self.blocks.heading(level, self.plain_text(element))
        elif name == "p":
            boxes: list[Element] = []
            self.blocks.markdown(blocks.inert_beginnings(self.text_of(element, boxes).strip()))
            for box in boxes:
                self.write_all(box, depth + 1)
        elif name == "list":
            self.write_list(element, depth)
        elif name == "table":
            self.table(element, depth)
        elif name == "object":
            self.blocks.markdown(blocks.inert_beginnings(blocks.inert(self.formula(element))))
        elif name not in _SILENT:
            self.write_all(element, depth + 1)

    def write_list(self, element: Element, depth: int) -> None:
        outer = self.lists[-1] if self.lists else ""
        self.lists.append(office.attribute(element, "style-name") or outer)
        key = (self.lists[-1], len(self.lists))
        first = self.first_numbers.get(key)
        if office.attribute(element, "continue-numbering") != "true" or key not in self.counts:
            self.counts[key] = first or 0
        for item in office.children(element, "list-item", "list-header"):
            if office.xml_name(item) == "list-header":  # a paragraph above the items
                self.write_all(item, depth + 1)
                continue
            number = _number(item, "start-value", default=self.counts[key])
            self.counts[key] = number + 1
            self.blocks.open_item("-" if first is None else f"{number}.")
            self.write_all(item, depth + 1)
            self.blocks.close()
        self.lists.pop()

    def part(self, name: str) -> Element | None:
        """The root of a part without which the text can be read; None if that cannot."""
        try:
            return self.archive.xml(name)
        except DamagedFileError:
            return None

    def formula(self, element: Element) -> str:
        """The formula that an object is, in a part of its own or inside it; else nothing."""
        name = (office.attribute(element, "href") or "").removeprefix("./")
        root = self.part(f"{name}/content.xml") if name else office.child(element, "math")
        is_formula = root is not None and office.xml_name(root) == "math"
        return blocks.formula(root) if root is not None and is_formula else ""

    def table(self, table: Element, depth: int) -> None:
        rows = []
        for row in self.rows_of(table):
            rows.append(row.cells)
            if row.has_more:
                self.blocks.warn(blocks.TOO_MANY_COLUMNS)
        if max(map(len, rows), default=0) > 1:
            blocks.write_rows(self.blocks, rows)
            return
        for element in _row_elements(table):
            for cell in office.children(element, "table-cell"):
                self.write_all(cell, depth + 1)

    def rows_of(self, table: Element) -> Iterator[office.SheetRow]:
        """The rows of a table; rows and cells may say that they are there several times."""
        number = 1
        for element in _row_elements(table):
            cells: list[str] = []
            has_more = False
            for cell in office.children(element, "table-cell", "covered-table-cell"):
                text = " ".join(
                    map(self.plain_text, office.children(cell, "p", "h", "list", "table"))
                )
                times = _times(cell, "number-columns-repeated")
                left = blocks.MAX_COLUMNS - len(cells)
                has_more = has_more or (times > left and bool(text))
                cells += [text] * min(times, left)
            while cells and not cells[-1]:
                cells.pop()
            times = _times(element, "number-rows-repeated")
            for again in range(min(times, MAX_REPEATED if has_more or any(cells) else 0)):
                yield office.SheetRow(number + again, cells, has_more)
            number += times

    def text_of(self, paragraph: Element, boxes: list[Element]) -> str:
        """The Markdown of a paragraph; text boxes in it are added to ``boxes``."""
        pieces: list[str] = []
        plain: list[str] = [paragraph.text or ""]
        walker = etree.iterwalk(paragraph, events=("start", "end"))
        for event, element in walker:
            name = office.xml_name(element)
            if element is paragraph:
                continue
            if event == "end":
                plain.append(element.tail or "")
                continue
            if name == "a":
                pieces += [blocks.inert("".join(plain)), self.linked(element)]
                plain = []
            elif name == "note":
                self.notes.append(element)
                pieces += [blocks.inert("".join(plain)), f"[^{len(self.notes)}]"]
                plain = []
            elif name == "text-box":
                boxes.append(element)
            elif name == "object":
                plain.append(self.formula(element))
            elif name not in _SILENT:
                plain.append(_blank(element) + (element.text or ""))
                continue
            walker.skip_subtree()
        return "".join([*pieces, blocks.inert("".join(plain))])

    def plain_text(self, element: Element) -> str:
        """All text of an element on one line."""
        pieces: list[str] = [element.text or ""]
        walker = etree.iterwalk(element, events=("start", "end"))
        for event, part in walker:
            name = office.xml_name(part)
            if part is element:
                continue
            if event == "end":
                pieces.append(part.tail or "")
            elif name in _SILENT or name == "note":
                walker.skip_subtree()
            elif name == "object":
                pieces.append(self.formula(part))
                walker.skip_subtree()
            else:
                pieces.append(_blank(part) + (part.text or ""))
        return " ".join("".join(pieces).split())

    def linked(self, element: Element) -> str:
        """A link; only one that leads out of the file has its target."""
        target = office.attribute(element, "href") or ""
        label = blocks.inert(self.plain_text(element))
        is_outside = "://" in target or target.startswith("mailto:")
        return blocks.link(label, target) if is_outside else label

    def write_notes(self) -> None:
        for number, note in enumerate(self.notes, start=1):
            text = self.plain_text(note).strip()
            if text:
                self.blocks.markdown(f"[^{number}]: {blocks.inert(text)}")


def _numbered_levels(root: Element | None) -> Iterator[tuple[tuple[str, int], int]]:
    """The names of styles of lists with the levels whose items have numbers; the first number."""
    for style in () if root is None else root.iter("{*}list-style"):
        for level in office.children(style, "list-level-style-number"):
            if office.attribute(level, "num-format"):
                key = office.attribute(style, "name") or "", _number(level, "level", default=0)
                yield key, _number(level, "start-value", default=1)


def _blank(element: Element) -> str:
    """What stands for an element between words."""
    name = office.xml_name(element)
    if name == "line-break":
        return "\n"
    return " " if name in ("s", "tab", "p", "h", "list-item") else ""


_ROW_GROUPS = frozenset(("table-header-rows", "table-rows", "table-row-group"))


def _row_elements(table: Element) -> Iterator[Element]:
    """The rows of a table, also those that repeat on each page or are in a group."""
    return office.nearest(table, {"table-row"}, _ROW_GROUPS.__contains__)


def _times(element: Element, name: str) -> int:
    return max(1, _number(element, name, default=1))


def _number(element: Element, name: str, *, default: int) -> int:
    text = office.attribute(element, name) or ""
    return int(text) if text.isdecimal() and len(text) < 9 else default
