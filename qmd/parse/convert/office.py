"""What the office formats have in common: text of styled runs, tables, and properties of files."""

from __future__ import annotations

import re
from collections.abc import Iterator
from posixpath import join, normpath

from qmd.parse.convert.archive import Archive
from qmd.parse.convert.html_blocks import Element
from qmd.parse.dates import read_date

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


def children(element: Element | None, *names: str) -> Iterator[Element]:
    """The children with one of these names, in any namespace."""
    for child in () if element is None else element:
        if xml_name(child) in names:
            yield child


def child(element: Element | None, name: str) -> Element | None:
    """The first child with this name, in any namespace."""
    return next(children(element, name), None)
