"""
Turns Word documents (DOCX) into Markdown: headings, lists, tables, text boxes, notes and links.

What was deleted with changes tracked is left out. Source: ECMA-376, part 1, WordprocessingML.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from lxml import etree

from qmd.parse.convert import office
from qmd.parse.convert.archive import Archive
from qmd.parse.convert.blocks import (
    Blocks,
    formula,
    inert,
    inert_beginnings,
    link,
    write_rows,
)
from qmd.parse.convert.html_blocks import Element
from qmd.parse.converted import Converted

#: Tables and text boxes inside each other that are read.
MAX_DEPTH = 8
#: Footnotes and endnotes that are read.
MAX_NOTES = 20_000

_HEADING = re.compile(r"heading ([1-9])$", re.IGNORECASE)
_CODE = re.compile(
    r"(?:html preformatted|source ?code|code(?: block)?|verbatim|preformatted)", re.IGNORECASE
)
#: Of a paragraph's parts, those that are no text of it; ``rt`` tells how to read it aloud.
_SILENT = frozenset(
    (
        *("pPr", "rPr", "del", "moveFrom", "Fallback", "instrText", "delText", "sdtPr"),
        *("annotationRef", "rubyPr", "rt"),
    )
)
_BREAKS = {"tab": " ", "br": "\n", "cr": "\n", "noBreakHyphen": "-", "softHyphen": ""}
#: Those that have text of their own.
_PARTS = frozenset(
    ("t", "oMath", "hyperlink", "txbxContent", "footnoteReference", "endnoteReference", *_BREAKS)
)


def convert(path: str, data: bytes) -> Converted:
    """
    A Word document.

    Raises:
        DamagedFileError: It is none, or damaged.
        EncryptedFileError: It needs a password.
    """
    archive = Archive(data, "Word document")
    document = _Word(archive, office.main_part(archive, "text"))
    document.write()
    about = office.About(archive, "docProps/core.xml")
    return about.converted(document.blocks, title_is_heading=True)


class _Style:
    """A paragraph style: the level of a heading, and the list that it is an item of."""

    def __init__(self, element: Element) -> None:
        self.name = _value(element, "name")
        self.base = _value(element, "basedOn")
        properties = office.child(element, "pPr")
        self.level = _outline_level(properties)
        self.list = _list_of(properties)
        match = _HEADING.match(self.name)
        if match is not None:
            self.level = int(match[1])
        elif self.name.lower() == "title":
            self.level = 1


class _LevelOfList(NamedTuple):
    """How the items of a level of a list are numbered."""

    number_format: str = "bullet"
    start: int = 1


class _Word:
    def __init__(self, archive: Archive, part: str) -> None:
        self.archive = archive
        self.part = part
        self.blocks = Blocks()
        self.relations = office.relations(archive, part)
        self.styles = self.read_styles()
        self.levels = self.read_lists()
        self.counts: dict[tuple[str, int], int] = {}
        self.open_levels: list[int] = []
        self.code: list[str] = []
        self.notes: list[tuple[str, str]] = []  # kind and id, in the order of the text

    def write(self) -> None:
        root = self.archive.xml(self.part)
        self.write_all(office.child(root, "body"), 0)
        self.end_lists()
        self.end_code()
        self.write_notes()

    def write_all(self, container: Element | None, depth: int) -> None:
        for block in _blocks_of(container):
            if self.blocks.is_full:
                return
            if office.xml_name(block) == "tbl":
                self.end_lists()
                self.end_code()
                self.table(block, depth)
            else:
                self.paragraph(block, depth)

    def paragraph(self, paragraph: Element, depth: int) -> None:
        properties = office.child(paragraph, "pPr")
        style = self.style_of(properties)
        boxes: list[Element] = []
        text = self.text_of(paragraph, boxes)
        plain = text.strip()
        level = _outline_level(properties) or (style.level if style else 0)
        item = _list_of(properties) or (style.list if style else None)
        if style is not None and _CODE.match(style.name):
            self.end_lists()
            self.code.append(_plain_text(paragraph))
        else:
            self.end_code()
            if level and plain:
                self.end_lists()
                self.blocks.heading(level, _plain_text(paragraph))
            elif item is not None and item[0] != "0" and plain:
                self.item(item, plain)
            elif plain:
                self.end_lists()
                self.blocks.markdown(inert_beginnings(plain))
        for box in boxes if depth < MAX_DEPTH else ():
            self.end_lists()
            self.write_all(box, depth + 1)

    def item(self, item: tuple[str, int], text: str) -> None:
        number, level = item
        while self.open_levels and self.open_levels[-1] >= level:
            self.open_levels.pop()
            self.blocks.close()
        for deeper in [key for key in self.counts if key[0] == number and key[1] > level]:
            del self.counts[deeper]
        kind = self.levels.get(item, _LevelOfList())
        count = self.counts[item] = self.counts.get(item, kind.start - 1) + 1
        is_bullet = kind.number_format in ("bullet", "none")
        self.blocks.open_item("-" if is_bullet else f"{count}.")
        self.open_levels.append(level)
        self.blocks.markdown(inert_beginnings(text))

    def end_lists(self) -> None:
        while self.open_levels:
            self.open_levels.pop()
            self.blocks.close()

    def end_code(self) -> None:
        if self.code:
            self.blocks.code("\n".join(self.code))
            self.code = []

    def table(self, table: Element, depth: int) -> None:
        """A table of data as one of Markdown; one with a single column arranges its text."""
        rows = [_cells_of(row) for row in office.children(table, "tr") if not _is_deleted(row)]
        if max(map(len, rows), default=0) < 2:
            for row in rows if depth < MAX_DEPTH else ():
                for cell in row:
                    self.write_all(cell, depth + 1)
                    self.end_lists()
            return
        write_rows(self.blocks, ([*self.texts_of(row)] for row in rows))

    def texts_of(self, row: list[Element]) -> Iterator[str]:
        for cell in row:
            properties = office.child(cell, "tcPr")
            merge = office.child(properties, "vMerge")
            continues = merge is not None and office.attribute(merge, "val") != "restart"
            yield "" if continues else _plain_text(cell)
            span = office.child(properties, "gridSpan")
            width = office.attribute(span, "val") or "1" if span is not None else "1"
            yield from [""] * (min(int(width), 60) - 1 if re.fullmatch(r"\d{1,3}", width) else 0)

    def text_of(self, paragraph: Element, boxes: list[Element]) -> str:
        """The Markdown of a paragraph; text boxes in it are added to ``boxes``."""
        pieces: list[str] = []
        plain: list[str] = []
        for element, shown in _parts_of(paragraph):
            name = office.xml_name(element)
            if name == "hyperlink":
                target = self.relations.get(office.attribute(element, "id") or "", ("", ""))[1]
                pieces += [inert("".join(plain)), link(inert(shown), target)]
                plain = []
            elif name == "txbxContent":
                boxes.append(element)
            elif name in ("footnoteReference", "endnoteReference"):
                if len(self.notes) < MAX_NOTES:
                    self.notes.append((name[:-9], office.attribute(element, "id") or ""))
                    pieces += [inert("".join(plain)), f"[^{len(self.notes)}]"]
                    plain = []
            else:
                plain.append(shown)
        return "".join([*pieces, inert("".join(plain))])

    def write_notes(self) -> None:
        texts: dict[tuple[str, str], str] = {}
        for kind, target in self.relations.values():
            if kind in ("footnotes", "endnotes"):
                for note in office.children(self.archive.xml(target), "footnote", "endnote"):
                    texts[kind[:-1], office.attribute(note, "id") or ""] = _plain_text(note)
        for number, key in enumerate(self.notes, start=1):
            text = " ".join(texts.get(key, "").split())
            if text:
                self.blocks.markdown(f"[^{number}]: {inert(text)}")

    def style_of(self, properties: Element | None) -> _Style | None:
        style = office.child(properties, "pStyle")
        return None if style is None else self.styles.get(office.attribute(style, "val") or "")

    def read_styles(self) -> dict[str, _Style]:
        styles: dict[str, _Style] = {}
        for element in office.children(self.archive.xml(self.related("styles")), "style"):
            if office.attribute(element, "type") in ("paragraph", None):
                styles[office.attribute(element, "styleId") or ""] = _Style(element)
        for style in styles.values():
            base: _Style | None = style
            for _ in range(20):
                base = styles.get(base.base) if base is not None else None
                if base is None:
                    break
                style.level = style.level or base.level
                style.list = style.list or base.list
        return styles

    def read_lists(self) -> dict[tuple[str, int], _LevelOfList]:
        """How the items of each list and level are numbered."""
        root = self.archive.xml(self.related("numbering"))
        abstracts = {
            office.attribute(abstract, "abstractNumId") or "": dict(_levels_of(abstract))
            for abstract in office.children(root, "abstractNum")
        }
        result: dict[tuple[str, int], _LevelOfList] = {}
        for number in office.children(root, "num"):
            levels = dict(abstracts.get(_value(number, "abstractNumId"), {}))
            for override in office.children(number, "lvlOverride"):
                levels.update(_levels_of(override))
                ilvl = _number(office.attribute(override, "ilvl"))
                start = _value(override, "startOverride")
                if start and ilvl in levels:
                    levels[ilvl] = levels[ilvl]._replace(start=_number(start, 8))
            for ilvl, level in levels.items():
                result[office.attribute(number, "numId") or "", ilvl] = level
        return result

    def related(self, kind: str) -> str:
        return next((target for each, target in self.relations.values() if each == kind), "")


def _levels_of(numbering: Element) -> Iterator[tuple[int, _LevelOfList]]:
    for level in office.children(numbering, "lvl"):
        number_format = _value(level, "numFmt")
        start = _number(_value(level, "start") or "1", 8)
        if number_format:
            yield _number(office.attribute(level, "ilvl")), _LevelOfList(number_format, start)


def _blocks_of(container: Element | None) -> Iterator[Element]:
    """The paragraphs and tables in an element, also those in content controls."""
    return office.nearest(container, {"p", "tbl"}, _is_read)


def _parts_of(paragraph: Element) -> Iterator[tuple[Element, str]]:
    """The texts, links, notes and text boxes of a paragraph, with what is shown of each."""
    for element in office.nearest(paragraph, _PARTS, _is_read):
        is_link = office.xml_name(element) == "hyperlink"
        yield element, _plain_text(element) if is_link else _shown(element) or ""


def _plain_text(element: Element) -> str:
    """All text of an element, its paragraphs with blanks between."""
    pieces: list[str] = []
    walker = etree.iterwalk(element, events=("start",))
    next(walker)  # the element itself
    for _, part in walker:
        shown = _shown(part)
        if shown is not None:
            pieces.append(shown)
        elif office.xml_name(part) == "p" and pieces:
            pieces.append("\n")
        if shown is not None or not _is_read(office.xml_name(part)):
            walker.skip_subtree()
    return "".join(pieces)


def _shown(element: Element) -> str | None:
    """What an element shows of itself: a text, a break or a formula; None for others."""
    name = office.xml_name(element)
    if name == "t":
        return element.text or ""
    return formula(element) if name == "oMath" else _BREAKS.get(name)


def _is_read(name: str) -> bool:
    return name not in _SILENT


def _is_deleted(row: Element) -> bool:
    """Whether a row was deleted with changes tracked; its text may not be marked itself."""
    return office.child(office.child(row, "trPr"), "del") is not None


def _cells_of(row: Element) -> list[Element]:
    """The cells of a row, also those in content controls."""
    cells: list[Element] = []
    for element in row:
        if office.xml_name(element) == "sdt":
            cells += office.children(office.child(element, "sdtContent"), "tc")
        elif office.xml_name(element) == "tc":
            cells.append(element)
    return cells


def _outline_level(properties: Element | None) -> int:
    level = office.child(properties, "outlineLvl")
    number = _number(office.attribute(level, "val")) + 1 if level is not None else 0
    return number if number < 10 else 0


def _list_of(properties: Element | None) -> tuple[str, int] | None:
    """The list and the level of an item."""
    numbering = office.child(properties, "numPr")
    number = office.child(numbering, "numId")
    if number is None:
        return None
    level = office.child(numbering, "ilvl")
    return office.attribute(number, "val") or "0", _number(
        office.attribute(level, "val")
    ) if level is not None else 0


def _value(element: Element, name: str) -> str:
    """The value of a child of this name; nothing if there is none."""
    named = office.child(element, name)
    return "" if named is None else office.attribute(named, "val") or ""


def _number(text: str | None, digits: int = 2) -> int:
    return int(text) if text and len(text) <= digits and re.fullmatch(r"\d+", text) else 0
