"""Writes small PDFs for tests, byte by byte: text at places, bookmarks, labels, pictures."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple


class Placed(NamedTuple):
    """A line of text, in points from the left and from the bottom of its page."""

    left: float
    bottom: float
    text: str
    size: float = 10.0


class Mark(NamedTuple):
    """A bookmark; ``page`` from 0."""

    title: str
    page: int
    top: float | None = None


#: A page is its lines, or ready operators of a content stream, which may be a bomb.
Page = Sequence[Placed] | bytes


def lines(*texts: str, top: float = 740, left: float = 72, step: float = 12) -> list[Placed]:
    """Texts below each other."""
    return [Placed(left, top - number * step, text) for number, text in enumerate(texts)]


def pdf(
    pages: Sequence[Page],
    *,
    marks: Sequence[Mark] = (),
    about: Mapping[str, str] | None = None,
    labels: str = "",
    encrypted: bool = False,
) -> bytes:
    """
    A PDF.

    Args:
        about: The document information, such as ``Title``.
        labels: The tree of page labels, as ``[0 << /S /r >>]``.
        encrypted: With a password that nobody knows.
    """
    objects: list[bytes] = [b""] * 5
    kids = []
    for page in pages:
        data = page if isinstance(page, bytes) else _content(page)
        content = zlib.compress(data)
        objects.append(_stream(content, b"/Filter /FlateDecode"))
        objects.append(
            b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents %d 0 R"
            b" /Resources << /Font << /F 3 0 R >> /XObject << /I 5 0 R >> >> >>" % len(objects)
        )
        kids.append(len(objects))
    outline = b""
    if marks:
        first = len(objects) + 2
        outline = b"/Outlines %d 0 R" % (first - 1)
        objects.append(
            b"<< /First %d 0 R /Last %d 0 R /Count %d >>"
            % (first, first + len(marks) - 1, len(marks))
        )
        for number, mark in enumerate(marks):
            place = b"/Fit" if mark.top is None else b"/XYZ 0 %d 0" % mark.top
            following = b"/Next %d 0 R" % (first + number + 1) if number + 1 < len(marks) else b""
            objects.append(
                b"<< /Title <%s> /Parent %d 0 R /Dest [%d 0 R %s] %s >>"
                % (_utf16(mark.title), first - 1, kids[mark.page], place, following)
            )
    objects[0] = b"<< /Type /Catalog /Pages 2 0 R %s %s >>" % (
        outline,
        f"/PageLabels << /Nums {labels} >>".encode() if labels else b"",
    )
    objects[1] = b"<< /Type /Pages /Count %d /Kids [%s] >>" % (
        len(kids),
        b" ".join(b"%d 0 R" % kid for kid in kids),
    )
    objects[2] = (
        b"<< /Type /Font /Subtype /Type0 /BaseFont /F /Encoding /Identity-H /ToUnicode 4 0 R"
        b" /DescendantFonts [<< /Type /Font /Subtype /CIDFontType2 /BaseFont /F /DW 500"
        b" /W [12288 65535 1000] /CIDSystemInfo << /Registry (Adobe) /Ordering (Identity)"
        b" /Supplement 0 >> >>] >>"
    )
    objects[3] = _stream(
        b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap\n"
        b"1 begincodespacerange <0000> <FFFF> endcodespacerange\n"
        b"1 beginbfrange <0000> <FFFF> <0000> endbfrange\nendcmap end end"
    )
    objects[4] = _stream(
        b"\x80",
        b"/Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray"
        b" /BitsPerComponent 8",
    )
    trailer = b""
    if about:
        entries = b" ".join(b"/%s <%s>" % (k.encode(), _utf16(v)) for k, v in about.items())
        objects.append(b"<< %s >>" % entries)
        trailer = b"/Info %d 0 R" % len(objects)
    if encrypted:
        trailer += (
            b" /ID [<00> <00>] /Encrypt << /Filter /Standard /V 1 /R 2 /P -4"
            b" /O <%s> /U <%s> >>" % (b"11" * 32, b"22" * 32)
        )
    return _file(objects, trailer)


#: Draws the picture of a page.
PICTURE = b"q 612 0 0 792 0 0 cm /I Do Q"


def _content(page: Sequence[Placed]) -> bytes:
    return b"\n".join(
        b"BT /F %d Tf 1 0 0 1 %d %d Tm <%s> Tj ET"
        % (line.size, line.left, line.bottom, line.text.encode("utf-16-be").hex().encode())
        for line in page
    )


def _utf16(text: str) -> bytes:
    return (b"\xfe\xff" + text.encode("utf-16-be")).hex().encode()


def _stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<< /Length %d %s >>\nstream\n%s\nendstream" % (len(data), entries, data)


def _file(objects: Sequence[bytes], trailer: bytes) -> bytes:
    data = bytearray(b"%PDF-1.7\n")
    starts = []
    for number, each in enumerate(objects, start=1):
        starts.append(len(data))
        data += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = len(data)
    data += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    data += b"".join(b"%010d 00000 n \n" % start for start in starts)
    data += b"trailer << /Size %d /Root 1 0 R %s >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        trailer,
        table,
    )
    return bytes(data)
