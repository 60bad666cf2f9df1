"""A book is its chapters in reading order; what is no book, or made to do harm, says so."""

from __future__ import annotations

import pytest
from support.archives import archive, epub

from qmd.errors import DamagedFileError, EncryptedFileError
from qmd.parse.convert.archive import MAX_PART, Archive
from qmd.parse.convert.epub import convert

ENTITIES = '<!DOCTYPE a [<!ENTITY b "c">]><package>&b;</package>'
METADATA = (
    "<dc:title>Bread</dc:title><dc:creator>Ann</dc:creator><dc:creator>Bo</dc:creator>"
    "<dc:date>2020-05-01</dc:date><dc:publisher>Oven</dc:publisher><dc:description>unknown"
    "</dc:description>"
)
BOOK = epub(
    {
        "cover.xhtml": "<p>Cover</p>",
        "a.xhtml": "<h1>One</h1><p>First <a href='b.xhtml'>next</a><a id='x'/> &nbsp;text</p>",
        "a2.xhtml": "<p>of one <img src='p.png' alt='picture'/></p>",
        "第二.xhtml": "<h1>二</h1><p>第二章 <a href='https://a.org'>web</a></p>",
        "empty.xhtml": "",
    },
    toc={"a.xhtml": "One", "a.xhtml#x": "One, later", "%E7%AC%AC%E4%BA%8C.xhtml": "Two"},
    metadata=METADATA,
)


def test_a_book_is_its_chapters() -> None:
    book = convert("a.epub", archive(BOOK))
    assert book.markdown == (
        "Cover\n\n# One\n\nFirst next text\n\nof one picture\n\n# 二\n\n第二章 [web](https://a.org)\n"
    )
    places = [
        (each.label, each.shown, book.markdown[each.start_char :][:5]) for each in book.anchors
    ]
    assert places == [("1", None, "Cover"), ("2", "One", "# One"), ("3", "Two", "# 二\n\n")]
    assert {each.kind for each in book.anchors} == {"chapter"}
    assert (book.title, book.date) == ("Bread", "2020-05-01")
    assert book.properties == {"author": ["Ann", "Bo"], "publisher": "Oven"}


def test_a_book_of_epub_2_has_its_chapters_in_an_ncx() -> None:
    package = str(BOOK["OEBPS/book.opf"]).replace("<spine>", '<spine toc="ncx">')
    nav = '<item id="nav" href="nav.xhtml" properties="nav"/>'
    package = package.replace(nav, '<item id="ncx" href="toc.ncx"/>')
    ncx = (
        '<ncx xmlns="http://www.daisy.org/z3986/2005/ncx/"><navMap><navPoint><navLabel><text>Uno'
        '</text></navLabel><content src="a.xhtml#x"/></navPoint></navMap></ncx>'
    )
    book = convert("a.epub", archive({**BOOK, "OEBPS/book.opf": package, "OEBPS/toc.ncx": ncx}))
    assert [each.shown for each in book.anchors] == [None, "Uno"]


def test_a_book_without_contents_has_a_chapter_for_each_document() -> None:
    book = convert("a.epub", archive(epub({"a.xhtml": "<p>a</p>", "b.xhtml": "<p>b</p>"})))
    assert [each.label for each in book.anchors] == ["1", "2"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no ZIP archive"),
        (b"PK\x03\x04 torn", "no ZIP archive"),
        (archive(BOOK)[:-40], "no ZIP archive"),
        (archive({"a": "b"}), "the list of its documents is missing"),
        (archive({**BOOK, "OEBPS/book.opf": "<package>"}), "cannot be read"),
        (
            archive({**BOOK, "OEBPS/book.opf": ENTITIES}),
            "declares entities",
        ),
        (archive({**BOOK, "OEBPS/a.xhtml": b" " * (MAX_PART + 1)}), "larger than a document's"),
        (archive(BOOK).replace(b"One", b"Two"), None),
    ],
    ids=range(8),
)  # fmt: skip
def test_what_is_no_book(data: bytes, message: str | None) -> None:
    if message is None:
        convert("a.epub", data)
        return
    with pytest.raises(DamagedFileError, match=message):
        convert("a.epub", data)


def test_damaged_parts_are_told() -> None:
    data = bytearray(archive(BOOK))
    at = data.index(b"OEBPS/a.xhtml") + len("OEBPS/a.xhtml")
    data[at : at + 40] = b"\xff" * 40
    with pytest.raises(DamagedFileError, match="is damaged"):
        convert("a.epub", bytes(data))


def test_bought_books_may_be_encrypted() -> None:
    def with_algorithm(name: str) -> bytes:
        method = f'<EncryptionMethod Algorithm="{name}"/>'
        return archive({**BOOK, "META-INF/encryption.xml": f"<encryption>{method}</encryption>"})

    with pytest.raises(EncryptedFileError, match="EPUB file is encrypted"):
        convert("a.epub", with_algorithm("http://www.w3.org/2001/04/xmlenc#aes128-cbc"))
    assert convert("a.epub", with_algorithm("http://www.idpf.org/2008/embedding")).title == "Bread"


def test_names_lead_nowhere_outside_of_the_archive() -> None:
    parts = Archive(archive({"a/b": "inside"}), "EPUB file")
    assert parts.read("/a/./c/../b") == b"inside"
    assert parts.read("../../etc/passwd") == parts.read("/etc/passwd") == b""


def test_many_parts_share_one_limit() -> None:
    bomb = {f"{number}": bytes(MAX_PART) for number in range(4)}
    parts = Archive(archive(bomb), "EPUB file")
    with pytest.raises(DamagedFileError, match="larger"):
        for name in parts.names():
            parts.read(name)
