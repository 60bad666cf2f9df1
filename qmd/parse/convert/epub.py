"""
Turns an EPUB book into Markdown: the documents of its spine, in reading order.

Each document that the table of contents names begins a chapter, which is an anchor; the others
continue the chapter before them. Pictures are left out. Sources: EPUB 3.3, OPF 2.0.1.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from qmd.errors import EncryptedFileError
from qmd.parse.convert.archive import Archive
from qmd.parse.convert.blocks import Blocks
from qmd.parse.convert.html import html_text, html_tree
from qmd.parse.convert.html_blocks import Element, ElementWriter, local_name
from qmd.parse.converted import Converted
from qmd.parse.dates import read_date

#: Documents of a book that are read.
MAX_DOCUMENTS = 5000
_CONTAINER = "META-INF/container.xml"
#: Fonts may be scrambled with these; whoever reads the text need not know them.
_FONT_SCRAMBLERS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")


def convert(path: str, data: bytes) -> Converted:
    """
    A book.

    Raises:
        DamagedFileError: It is no EPUB file, or damaged.
        EncryptedFileError: Its text is encrypted, as that of many bought books is.
    """
    archive = Archive(data, "EPUB file")
    _refuse_encrypted(archive)
    book = _Book(archive)
    blocks = Blocks()
    chapter = 0
    if len(book.spine) > MAX_DOCUMENTS:
        blocks.warnings.append(
            f"The book has {len(book.spine):,} documents; only {MAX_DOCUMENTS:,} were read."
        )
    for name in book.spine[:MAX_DOCUMENTS]:
        if name not in archive or blocks.is_full:
            continue
        if not book.chapters or name in book.chapters or not chapter:
            chapter += 1
            blocks.anchor("chapter", str(chapter), book.chapters.get(name))
        root, warnings = html_tree(html_text(archive.read(name)))
        blocks.warnings += warnings
        body = None if root is None else root.find("body")
        if body is not None:
            ElementWriter(blocks, only_web=True).write(body)
    return blocks.converted(title=book.title, date=book.date, properties=book.properties)


class _Book:
    """
    What the package document says of a book.

    Attributes:
        spine: The names of its documents, in reading order.
        chapters: The documents that the table of contents names, each with its title there.
    """

    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        name = self._package_name()
        package = archive.xml(name)
        if package is None:
            raise archive.damaged("the list of its documents is missing")
        self._folder = dirname(name)
        self._items: dict[str, Element] = {}
        self.spine: list[str] = []
        self.title = ""
        self.date: str | None = None
        authors: list[str] = []
        self.properties: dict[str, object] = {"author": authors}
        self._toc = ""
        references: list[str] = []
        for element in package.iter():
            tag = local_name(element)
            if tag == "item":
                self._items[element.get("id") or ""] = element
            elif tag == "itemref" and element.get("linear") != "no":
                references.append(element.get("idref") or "")
            elif tag == "spine":
                self._toc = element.get("toc") or ""
            else:
                self._describe(tag, " ".join((element.text or "").split())[:1000], authors)
        for reference in references:
            item = self._items.get(reference)
            if item is not None:
                self.spine.append(self._place(item.get("href") or "", self._folder))
        self.chapters: dict[str, str] = {}
        for place, text in islice(self._chapters(), MAX_DOCUMENTS):
            self.chapters.setdefault(place, text)

    def _describe(self, tag: str, text: str, authors: list[str]) -> None:
        if not text:
            return
        if tag == "title":
            self.title = self.title or text
        elif tag == "creator" and len(authors) < 20:
            authors.append(text)
        elif tag == "date":
            self.date = self.date or read_date(text)[0]
        elif tag in ("description", "publisher") and text.lower() != "unknown":
            self.properties.setdefault(tag, text)

    def _package_name(self) -> str:
        container = self._archive.xml(_CONTAINER)
        for element in () if container is None else container.iter("{*}rootfile"):
            return element.get("full-path") or ""
        return next((name for name in self._archive.names() if name.endswith(".opf")), "")

    def _chapters(self) -> Iterator[tuple[str, str]]:
        """Documents with their titles, from the navigation of EPUB 3, else from that of EPUB 2."""
        for item in self._items.values():
            if "nav" in (item.get("properties") or "").split():
                return self._navigation(self._place(item.get("href") or "", self._folder))
        item_of_toc = self._items.get(self._toc)
        href = "" if item_of_toc is None else item_of_toc.get("href") or ""
        return self._contents(self._place(href, self._folder)) if href else iter(())

    def _navigation(self, name: str) -> Iterator[tuple[str, str]]:
        root = html_tree(html_text(self._archive.read(name)))[0]
        for link in () if root is None else root.iter("a"):
            text = " ".join("".join(islice(link.itertext(), 50)).split())
            yield self._place(link.get("href") or "", dirname(name)), text[:300]

    def _contents(self, name: str) -> Iterator[tuple[str, str]]:
        root = self._archive.xml(name)
        for point in () if root is None else root.iter("{*}navPoint"):
            label, content = point.find("{*}navLabel/{*}text"), point.find("{*}content")
            if content is not None:
                text = "" if label is None else " ".join((label.text or "").split())
                yield self._place(content.get("src") or "", dirname(name)), text[:300]

    def _place(self, address: str, folder: str) -> str:
        return normpath(join(folder, unquote(address.partition("#")[0])))


def _refuse_encrypted(archive: Archive) -> None:
    encryption = archive.xml("META-INF/encryption.xml")
    for method in () if encryption is None else encryption.iter("{*}EncryptionMethod"):
        if method.get("Algorithm") not in _FONT_SCRAMBLERS:
            raise EncryptedFileError("EPUB file")
