"""What photos say, read from their headers: against exiftool, and against damaged files."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmd.errors import NotAPhotoError
from qmd.parse.formats import is_photo
from qmd.parse.photo import containers
from qmd.parse.photo.metadata import parse_photo, read_metadata
from qmd.parse.photo.source import PhotoSource
from qmd.parse.photo.standards import read_xmp
from qmd.values import ParsedDocument, PhotoMetadata
from tests.support.photos import SUFFIXES, make, set_tags

IMAGE_DATA = {
    "jpg": containers.jpeg_image_data,
    "png": containers.png_image_data,
    "heic": containers.heic_image_data,
}


def read(path: Path, data: bytes | None = None) -> PhotoMetadata:
    content = path.read_bytes() if data is None else data
    return read_metadata(PhotoSource.of_bytes(content), path.name)


def parse(path: Path) -> ParsedDocument:
    return parse_photo(path.name, PhotoSource.of_bytes(path.read_bytes()))


@pytest.fixture(scope="module", params=SUFFIXES)
def tagged(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = make(tmp_path_factory.mktemp("photos") / f"IMG_1.{request.param}")
    return set_tags(
        path,
        *("-XMP-dc:Subject=家庭", "-XMP-dc:Subject=张三", "-XMP-dc:Subject=a, b"),
        "-XMP-iptcExt:PersonInImage=张三",
        "-XMP-dc:Description-de=Der Turm",
        "-XMP-dc:Description-x-default=铁塔&#10;second &amp; &lt;last&gt; line",
        "-XMP-iptcCore:Location=埃菲尔铁塔",
        "-XMP-photoshop:City=Paris",
    )


def test_it_reads_what_exiftool_wrote(tagged: Path) -> None:
    found = read(tagged)
    assert found.tags == ("家庭", "a, b")
    assert found.people == ("张三",)
    assert found.description is not None
    assert found.description.splitlines() == ["铁塔", "second & <last> line"]
    assert (found.location, found.place) == ("埃菲尔铁塔", ("Paris",))
    assert (found.date, found.camera) == ("2024-07-14T18:30:00+02:00", "ACME X100")
    assert found.warnings == ()


def test_the_document_names_everything_and_each_name_is_a_tag(tagged: Path) -> None:
    document = parse(tagged)
    assert document.text == (
        "# IMG_1\n\n铁塔\nsecond & <last> line\n\n"
        "- 🏷 家庭, a, b\n- 👤 张三\n- 📍 埃菲尔铁塔, Paris\n"
        "- 📅 2024-07-14 18:30:00+02:00\n- 📷 ACME X100\n"
    )
    assert document.tags == ("家庭", "a, b", "张三")
    assert (document.title, document.date) == ("IMG_1", "2024-07-14T18:30:00+02:00")
    assert document.properties["people"] == ["张三"]
    (chunk,) = document.chunks
    assert document.text[chunk.start_char : chunk.end_char].startswith("# IMG_1")


def test_a_photo_that_says_nothing_has_its_name(tmp_path: Path) -> None:
    path = make(tmp_path / "screenshot 3.png", exif=None)
    document = parse_photo("a/b/screenshot 3.PNG", PhotoSource.of_bytes(path.read_bytes()))
    assert document.title == "screenshot 3"


def test_iptc_alone_is_read_in_any_encoding(tmp_path: Path) -> None:
    path = make(tmp_path / "old.jpg")
    set_tags(path, "-IPTC:Keywords=München", "-IPTC:Sub-location=Café", "-IPTC:City=Zürich")
    assert b"M\xfcnchen" in path.read_bytes()  # not marked, so Latin
    found = read(path)
    assert (found.tags, found.location, found.place) == (("München",), "Café", ("Zürich",))
    set_tags(path, "-IPTC:CodedCharacterSet=UTF8", "-IPTC:Keywords=海滩")
    assert read(path).tags == ("海滩",)


def test_keywords_of_both_standards_are_united(tmp_path: Path) -> None:
    path = make(tmp_path / "both.jpg")
    set_tags(path, "-XMP-dc:Subject=a", "-XMP-dc:Subject=b", "-IPTC:Keywords=b", "-IPTC:Keywords=c")
    assert read(path).tags == ("a", "b", "c")


def test_xmp_that_goes_on_in_a_second_segment_is_read(tmp_path: Path) -> None:
    path = make(tmp_path / "long.jpg")
    names = [f"{number:03} " + "x" * 60 for number in range(1500)]
    argument_file = tmp_path / "arguments"
    argument_file.write_text("\n".join(f"-XMP-dc:Subject={name}" for name in names))
    set_tags(path, "-@", str(argument_file), "-XMP-dc:Description=short")
    assert b"http://ns.adobe.com/xmp/extension/" in path.read_bytes()
    assert read(path).tags == tuple(names)
    assert read(path).description == "short"


@pytest.mark.parametrize(
    ("assignments", "date"),
    [
        (["-EXIF:DateTimeOriginal=2020:01:02 03:04:05"], "2020-01-02T03:04:05+02:00"),
        (["-ExifIFD:all=", "-XMP-exif:DateTimeOriginal=2019:05:06"], "2019-05-06"),
        (
            ["-ExifIFD:all=", "-XMP-xmp:CreateDate=2018:05:06 07:08:09Z"],
            "2018-05-06T07:08:09+00:00",
        ),
        (["-ExifIFD:all=", "-IPTC:DateCreated=2017:05:06"], "2017-05-06"),
        (["-ExifIFD:all=", "-EXIF:CreateDate=2016:05:06 07:08:09"], "2016-05-06T07:08:09"),
        (["-ExifIFD:all="], None),
    ],
)
def test_the_date_is_when_it_was_taken(
    tmp_path: Path, assignments: list[str], date: str | None
) -> None:
    assert read(set_tags(make(tmp_path / "dated.jpg"), *assignments)).date == date


def test_a_camera_without_a_clock_gives_no_date(tmp_path: Path) -> None:
    path = make(tmp_path / "zero.jpg")
    data = path.read_bytes().replace(b"2024:07:14 18:30:00", b"0000:00:00 00:00:00")
    assert read(path, data).date is None


# --- what is no photo, or half of one --------------------------------------------------


def test_content_counts_not_the_name(tmp_path: Path) -> None:
    picture = make(tmp_path / "a.png").read_bytes()
    for name, data in (
        ("a.jpg", picture),
        ("a.heic", picture),
        ("a.png", b"just text"),
        ("a.jpg", b""),
        ("a.heic", b"\0\0\0\x18ftypavif\0\0\0\0avifmif1heic"),
    ):
        with pytest.raises(NotAPhotoError):
            read(Path(name), data)
    assert is_photo("x/A.JPEG") and not is_photo("a.heif") and not is_photo("jpg")


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_only_a_whole_file_has_image_data(tmp_path: Path, suffix: str) -> None:
    data = make(tmp_path / f"whole.{suffix}").read_bytes()
    find = IMAGE_DATA[suffix]
    places = find(PhotoSource.of_bytes(data))
    assert places
    assert sum(length for _, length in places) > len(data) // 4
    for cut in (1, 2, 9, 100, len(data) // 2):
        assert find(PhotoSource.of_bytes(data[:-cut])) is None


def test_a_thumbnails_end_is_not_the_photos(tmp_path: Path) -> None:
    path = make(tmp_path / "outer.jpg")
    inner = make(tmp_path / "inner.jpg")
    set_tags(path, f"-ThumbnailImage<={inner}")
    data = path.read_bytes()
    end = data.index(b"\xff\xd9")
    assert end < len(data) - 2
    assert containers.jpeg_image_data(PhotoSource.of_bytes(data)) is not None
    assert containers.jpeg_image_data(PhotoSource.of_bytes(data[: end + 2])) is None


def test_what_lies_behind_the_end_of_a_jpeg_changes_nothing(tmp_path: Path) -> None:
    path = make(tmp_path / "trailer.jpg")
    data = path.read_bytes()
    whole = containers.jpeg_image_data(PhotoSource.of_bytes(data))
    assert containers.jpeg_image_data(PhotoSource.of_bytes(data + b"motion photo" * 100)) == whole


@settings(deadline=None)
@given(st.data())
def test_damage_is_never_more_than_a_warning(damage: st.DataObject) -> None:
    name, data = damage.draw(st.sampled_from(sorted(_samples().items())))
    changed = bytearray(data)
    for _ in range(damage.draw(st.integers(1, 8))):
        # Most of a photo is pixels, and what is read stands at one end or the other.
        place = damage.draw(st.integers(0, min(4000, len(changed) - 1)))
        changed[place if damage.draw(st.booleans()) else -place - 1] = damage.draw(
            st.integers(0, 255)
        )
    cut = damage.draw(st.integers(0, len(changed)))
    for content in (bytes(changed), bytes(changed[:cut])):
        source = PhotoSource.of_bytes(content)
        try:
            document = parse_photo(name, source)
        except NotAPhotoError:
            continue
        document.text.encode()
        assert "\0" not in document.text
        IMAGE_DATA[name[2:]](source)


_SAMPLES: dict[str, bytes] = {}


def _samples() -> dict[str, bytes]:
    import tempfile

    if not _SAMPLES:
        with tempfile.TemporaryDirectory() as directory:
            for suffix in SUFFIXES:
                path = make(Path(directory, f"a.{suffix}"))
                iptc = ["-IPTC:Keywords=k", "-IPTC:City=c"] if suffix == "jpg" else []
                set_tags(path, "-XMP-dc:Subject=one", "-XMP-dc:Subject=two", *iptc)
                _SAMPLES[path.name] = path.read_bytes()
    return _SAMPLES


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def test_a_compressed_bomb_is_read_to_its_first_mebibyte() -> None:
    bomb = zlib.compress(b"a" * 50_000_000)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"zTXt", b"Description\0\0" + bomb) + chunk(b"IEND", b"")
    found = read(Path("bomb.png"), picture)
    assert found.description is not None
    assert len(found.description) == 1 << 20


def test_a_picture_of_gigapixels_costs_nothing() -> None:
    header = struct.pack(">IIBBBBB", 2**31 - 1, 2**31 - 1, 8, 2, 0, 0, 0)
    picture = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IEND", b"")
    assert read(Path("huge.png"), picture).warnings == ()


XMP = (
    '<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF'
    ' xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"'
    ' xmlns:dc="http://purl.org/dc/elements/1.1/"'
    ' xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/">%s</rdf:RDF></x:xmpmeta>'
)


def test_a_property_may_be_an_attribute() -> None:
    values, problem = read_xmp((XMP % '<rdf:Description photoshop:City="Paris"/>').encode())
    assert (dict(values), problem) == ({"photoshop:City": [("", "Paris")]}, None)


def test_entities_cannot_be_declared() -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>' + XMP % (
        "<rdf:Description><dc:title>&b;</dc:title></rdf:Description>"
    )
    values, problem = read_xmp(bomb.encode())
    assert dict(values) == {}
    assert problem is not None and "document type" in problem


def test_files_outside_are_never_read(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    evil = f'<!DOCTYPE x [<!ENTITY a SYSTEM "file://{secret}">]>' + XMP % (
        "<rdf:Description><dc:title>&a;</dc:title></rdf:Description>"
    )
    values, _ = read_xmp(evil.encode())
    assert "secret" not in str(values)


def test_what_stands_in_front_of_a_mistake_is_kept() -> None:
    body = (
        "<rdf:Description><dc:subject><rdf:Bag><rdf:li>first</rdf:li><rdf:li>second</rdf:li>"
        "</rdf:Bag></dc:subject><broken></rdf:Description>"
    )
    values, problem = read_xmp((XMP % body).encode())
    assert values["dc:subject"] == [("", "first"), ("", "second")]
    assert problem is not None and "well-formed" in problem


def test_nesting_without_end_is_refused() -> None:
    _, problem = read_xmp((XMP % ("<a>" * 100_000)).encode())
    assert problem is not None and "nested" in problem
