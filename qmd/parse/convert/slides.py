"""
Turns PowerPoint presentations (PPTX) into Markdown: each slide is an anchor, notes included.

Source: ECMA-376, part 1, PresentationML and DrawingML.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmd.parse.convert.archive import Archive
from qmd.parse.convert.blocks import Blocks
from qmd.parse.convert.html_blocks import Element
from qmd.parse.convert.inert import inert_lines
from qmd.parse.convert.office import (
    About,
    attribute,
    child,
    children,
    main_part,
    relations,
    xml_name,
)
from qmd.parse.convert.tables import write_rows
from qmd.parse.converted import Converted

#: Slides that are read.
MAX_SLIDES = 5000

_TITLES = frozenset(("title", "ctrTitle"))
#: Placeholders whose text is the same on all slides.
_REPEATED = frozenset(("dt", "ftr", "sldNum", "hdr", "sldImg"))


def convert(path: str, data: bytes) -> Converted:
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
    about = About(archive, "docProps/core.xml")
    return blocks.converted(
        title=about.title or first_title, date=about.date, properties=about.properties
    )


def _slides(archive: Archive) -> Iterator[str]:
    """The names of the slides, in their order."""
    part = main_part(archive, "slides")
    targets = relations(archive, part)
    for entry in children(child(archive.xml(part), "sldIdLst"), "sldId"):
        for key, value in entry.attrib.items():
            if str(key).endswith("}id") and str(value) in targets:
                yield targets[str(value)][1]


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
    stack = [iter(()) if root is None else iter(root)]
    while stack:
        element = next(stack[-1], None)
        if element is None:
            stack.pop()
        elif xml_name(element) in ("sp", "tbl", "relIds", "chart"):
            yield element
        elif xml_name(element) not in ("Fallback", "timing", "transition"):
            stack.append(iter(element))


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
