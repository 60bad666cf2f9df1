"""Photos of a few kilobytes whose metadata would cost minutes or gigabytes without limits."""

from __future__ import annotations

import time
import tracemalloc
import zlib
from collections.abc import Sequence

import pytest

from qmd.parse.converted import MAX_WARNINGS
from qmd.parse.photo import containers
from qmd.parse.photo.metadata import read_metadata
from qmd.parse.photo.source import MAX_METADATA, PhotoSource
from qmd.parse.photo.standards import iptc_in_utf8, read_iptc, read_xmp
from qmd.values import PhotoMetadata

pytestmark = pytest.mark.unmeasured

PNG = b"\x89PNG\r\n\x1a\n"
RDF = '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/">' + RDF + ' xmlns:dc="http://purl.org/dc/elements/1.1/">'
    "<rdf:Description><dc:title>Found</dc:title>%s</rdf:Description></rdf:RDF></x:xmpmeta>"
)


def read(name: str, data: bytes, *, most_cpu: float = 4, most_memory: int = 100) -> PhotoMetadata:
    """The metadata, within seconds of CPU and MiB of memory."""
    start = time.process_time()
    photo = read_metadata(PhotoSource.of_bytes(data), name)
    assert time.process_time() - start < most_cpu
    tracemalloc.start()
    try:
        read_metadata(PhotoSource.of_bytes(data), name)
        assert tracemalloc.get_traced_memory()[1] < most_memory * 2**20
    finally:
        tracemalloc.stop()
    assert len(photo.warnings) <= MAX_WARNINGS + 1
    return photo


# --- HEIC ----------------------------------------------------------------------------


def box(kind: bytes, content: bytes) -> bytes:
    return (8 + len(content)).to_bytes(4, "big") + kind + content


def heic_file(kinds: Sequence[bytes], iloc: bytes, behind: bytes = b"", idat: bytes = b"") -> bytes:
    """A HEIC whose items are of these kinds, from 1 on; ``iloc`` without version and flags."""
    entries = b"".join(
        box(
            b"infe",
            b"\2\0\0\0" + number.to_bytes(2, "big") + b"\0\0" + kind + b"\0"
            + (b"application/rdf+xml\0" if kind == b"mime" else b""),
        )
        for number, kind in enumerate(kinds, 1)
    )  # fmt: skip
    iinf = box(b"iinf", b"\0\0\0\0" + len(kinds).to_bytes(2, "big") + entries)
    parts = iinf + box(b"iloc", b"\1\0\0\0" + iloc) + box(b"idat", idat)
    return (
        box(b"ftyp", b"heic\0\0\0\0mif1heic")
        + box(b"meta", b"\0\0\0\0" + parts)
        + box(b"mdat", behind)
    )


def places(items: Sequence[Sequence[tuple[int, int]]], method: int = 0) -> bytes:
    """Offsets and lengths in four bytes each."""
    return b"\x44\0" + len(items).to_bytes(2, "big") + b"".join(
        number.to_bytes(2, "big") + method.to_bytes(2, "big") + b"\0\0"
        + len(extents).to_bytes(2, "big")
        + b"".join(at.to_bytes(4, "big") + size.to_bytes(4, "big") for at, size in extents)
        for number, extents in enumerate(items, 1)
    )  # fmt: skip


def test_items_in_no_bytes_at_all() -> None:
    # 687 bytes took 4.4 s of CPU: 65,535 rounds for each item of 8 bytes.
    item = b"\0\1\0\0\0\0\xff\xff"
    data = heic_file([b"mime"], b"\0\0" + (20_000).to_bytes(2, "big") + item * 20_000)
    photo = read("bomb.heic", data)
    assert photo.warnings == ("The list of items is damaged; metadata may be missing.",)
    start = time.process_time()
    assert containers.heic_image_data(PhotoSource.of_bytes(data)) is None
    assert time.process_time() - start < 4


def test_more_extents_than_a_photo_has() -> None:
    extents = b"\x04\0" + b"\0\2" + (b"\0\1\0\0\0\0\xff\xff" + b"\0\0\0\1" * 65_535) * 12
    data = heic_file([b"mime"], extents[:2] + b"\0\x0c" + extents[4:])
    photo = read("bomb.heic", data)
    assert photo.warnings == ("The photo's metadata is in too many parts; the rest was not read.",)
    assert containers.heic_image_data(PhotoSource.of_bytes(data)) is None


@pytest.mark.parametrize("in_idat", [False, True])
@pytest.mark.parametrize("count", [10, 60, 3_000])
def test_items_that_share_their_bytes(in_idat: bool, count: int) -> None:
    # 60 items that point at the same 262 KB took 991 MB.
    packet = (XMP % "").encode()
    shared = packet + b" " * (16 * 2**20 // 9 - len(packet))
    offset = 0 if in_idat else 40  # somewhere in the file: no XMP, but read
    items = places([[(offset, len(shared))]] * count, method=int(in_idat))
    data = heic_file([b"mime"] * count, items, b"" if in_idat else shared, shared * in_idat)
    photo = read("bomb.heic", data)
    assert f"more than {MAX_METADATA // 2**20} MiB of metadata" in photo.warnings[0]
    assert photo.title == ("Found" if in_idat else None)


def test_many_small_items_of_xmp() -> None:
    packet = (XMP % "").encode()
    data = heic_file([b"mime"] * 5_000, places([[(0, len(packet))]] * 5_000, 1), idat=packet)
    photo = read("bomb.heic", data)
    assert photo.title == "Found"
    assert photo.warnings == ("The photo has more than 16 items of XMP; the rest was not read.",)


def test_a_usual_photo_is_read_whole() -> None:
    packet = (XMP % "").encode()
    kinds = [b"hvc1"] * 48 + [b"mime"]
    items = places([[(0, 1)]] * 48 + [[(0, 100), (100, len(packet) - 100)]], 1)
    photo = read("usual.heic", heic_file(kinds, items, idat=packet))
    assert (photo.title, photo.warnings) == ("Found", ())


# --- PNG -----------------------------------------------------------------------------


PACKET = b"XML:com.adobe.xmp\0"


def chunk(kind: bytes, data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + kind + data + b"\0\0\0\0"


@pytest.mark.parametrize(
    "bomb",
    [
        chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"a" * 1_000_000)),
        chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"\0" * 1_000_000)[:-40]),
        chunk(b"zTXt", b"Title\0\0" + zlib.compress(b"\0" * 999_999)[:-4] + b"oops"),
        chunk(b"iTXt", PACKET + b"\1\0\0\0" + zlib.compress(b" " * 999_999)[:-4] + b"oops"),
        chunk(b"iTXt", PACKET + b"\0\0\0\0" + XMP.encode()),
    ],
)  # fmt: skip
def test_thousands_of_texts_in_a_png(bomb: bytes) -> None:
    # Each unpacked to a MiB, even where the first had said all.
    read("bomb.png", PNG + bomb * 20_000 + chunk(b"IEND", b""))


def test_other_texts_of_a_png_are_not_read() -> None:
    other = chunk(b"tEXt", b"Comment\0" + b"x" * 2_000_000) * 12
    title = chunk(b"tEXt", b"Title\0Found")
    photo = read("big.png", PNG + other + title + chunk(b"IEND", b""))
    assert (photo.title, photo.warnings) == ("Found", ())


# --- JPEG ----------------------------------------------------------------------------


def segment(marker: int, data: bytes) -> bytes:
    return bytes((0xFF, marker)) + (len(data) + 2).to_bytes(2, "big") + data


def jpeg_file(*segments: bytes) -> bytes:
    return b"\xff\xd8" + b"".join(segments) + b"\xff\xd9"


def test_a_jpeg_of_nothing_but_metadata() -> None:
    parts = segment(0xED, b"Photoshop 3.0\0" + b"8BIM\0\0\0\0\0\0\0\0" * 5_000)
    photo = read("bomb.jpg", jpeg_file(*[parts] * 1_000))
    assert "MiB of metadata" in photo.warnings[0]


def test_further_xmp_under_many_names() -> None:
    name = "".join(f"{number:032d}" for number in range(500))
    main = (XMP % f"<dc:source>{name}</dc:source>").encode()
    more = [
        segment(
            0xE1,
            b"http://ns.adobe.com/xmp/extension/\0" + b"%032d" % number
            + b"\0\0\xff\xff\0\0\0\0" + b"<a>" * 20_000,
        )
        for number in range(500)
    ]  # fmt: skip
    read("bomb.jpg", jpeg_file(segment(0xE1, b"http://ns.adobe.com/xap/1.0/\0" + main), *more))


def test_exif_that_says_the_same_four_thousand_times() -> None:
    # Each entry decoded the same MiB of an unknown encoding.
    def entry(tag: int, kind: int, count: int, value: int) -> bytes:
        numbers = (tag.to_bytes(2, "big"), kind.to_bytes(2, "big"), count.to_bytes(4, "big"))
        return b"".join(numbers) + value.to_bytes(4, "big")

    count = 2_000
    below = entry(0x8769, 4, 1, 8)  # the directory is its own subdirectory
    entries = below + entry(0x010E, 2, 60_000, 8) * (count - 1)
    tiff = b"MM\0*\0\0\0\x08" + count.to_bytes(2, "big") + entries + b"caf\xe9 \xc8 " * 5_000
    photo = read("bomb.jpg", jpeg_file(segment(0xE1, b"Exif\0\0" + tiff[:65_000])))
    assert photo.kind == "JPG"


@pytest.mark.parametrize("marked", [True, False])
@pytest.mark.parametrize("value", [b"caf\xe9 %d", b"\x81\xfe%d", b"\xb1\xb1\xbe\xa9\x81 %d"])
def test_thousands_of_keywords_in_no_encoding(marked: bool, value: bytes) -> None:
    # Each was guessed on its own: 10,000 took seconds.
    def record(number: tuple[int, int], text: bytes) -> bytes:
        return bytes((0x1C, *number)) + len(text).to_bytes(2, "big") + text

    records = record((1, 90), b"\x1b%G") * marked + b"".join(
        record((2, 25), value % number + b"\xe4" * (number % 7)) for number in range(9_000)
    )
    start = time.process_time()
    iptc = read_iptc(records)
    iptc_in_utf8(records)
    assert time.process_time() - start < 4
    assert len(iptc.keywords) == 9_000
    "".join(iptc.keywords).encode()


# --- XMP -----------------------------------------------------------------------------


def bomb(body: str) -> str:
    return XMP % body


URI = "u" * 200_000
LAUGHS = "".join(
    f"<!ENTITY {new} '{f'&{old};' * 10}'>" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    "packet",
    [
        bomb(f'<a:b xmlns:a="{URI}">' + "<a:b/>" * 100_000 + "</a:b>"),
        bomb(f'<a:b xmlns:a="{URI}" ' + "".join(f"a:a{n}='' " for n in range(50_000)) + "/>"),
        bomb("<a/>" * 1_000_000),
        bomb("<a>" * 500_000),
        bomb("<a " + "".join(f"a{number}='' " for number in range(200_000)) + "/>"),
        bomb(
            "<a " + "".join(f"xmlns:a{n}='u' " for n in range(20_000)) + ">"
            + "<b xmlns:c='d'/>" * 50_000
            + "</a>"
        ),
        bomb("<a b='" + "x" * 4_000_000 + "'/>"),
        bomb("<!--" + "-" * 2_000_000 + "<![CDATA[" * 10_000),
        bomb("<dc:subject><rdf:Bag>" + "<rdf:li>x</rdf:li>" * 100_000 + "</rdf:Bag></dc:subject>"),
        f"<!DOCTYPE x [<!ENTITY a 'aaaaaaaaaa'>{LAUGHS}]>" + bomb("&i;"),
        '<?xml version="1.0" encoding="utf-7"?>' + bomb("+ADw-"),
    ],
)  # fmt: skip
def test_xmp_that_expands(packet: str) -> None:
    # With names written out by expat, 220 KB took 1.3 s and 1 MB half a minute.
    start = time.process_time()
    values, _ = read_xmp(packet.encode())
    assert time.process_time() - start < 4
    assert sum(len(value) for each in values.values() for _, value in each) <= len(packet)


def test_as_many_people_as_keywords() -> None:
    people = "".join(f"<rdf:li>{number}</rdf:li>" for number in range(4_900))
    body = (
        f"<dc:subject><rdf:Bag>{people}</rdf:Bag></dc:subject>"
        '<Iptc4xmpExt:PersonInImage xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/">'
        f"<rdf:Bag>{people}</rdf:Bag></Iptc4xmpExt:PersonInImage>"
    )
    packet = chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + (XMP % body).encode())
    photo = read("people.png", PNG + packet + chunk(b"IEND", b""))
    assert (len(photo.people), photo.tags) == (4_900, ())


def test_namespaces_hold_for_their_element() -> None:
    dc = "http://purl.org/dc/elements/1.1/"
    values, problem = read_xmp(
        f'{RDF}><rdf:Description xmlns:a="{dc}" xmlns="{dc}" a:title="A" title="B" c:title="C">'
        '<subject>D</subject><a:subject xmlns:a="other">E</a:subject><a:subject>F</a:subject>'
        "</rdf:Description></rdf:RDF>".encode()
    )
    assert problem is None
    assert values == {"dc:title": [("", "A")], "dc:subject": [("", "D"), ("", "F")]}
