"""Pages without a text layer and photos: their text is read one by one, and becomes searchable."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import pillow_heif
import pytest
from PIL import Image, ImageDraw, ImageFont

from qmd import KnowledgeBase
from qmd.errors import DamagedFileError, MissingExtraError, OcrUnavailableError
from qmd.ingest import ocr
from qmd.parse import pictures
from qmd.parse.convert import pdf as converter
from qmd.parse.photo.containers import fingerprint
from qmd.parse.photo.source import PhotoSource
from qmd.settings import Settings
from qmd.system.memory import available_bytes
from qmd.system.worker.jobs import MB, JobBudget
from qmd.values import PhotoChange, Progress
from qmd.values.pictures import PictureLine, PictureText
from tests.support.embedder import HashEmbedder
from tests.support.live import until
from tests.support.pdf import lines, pdf
from tests.support.tiny_ocr import TINY, page, photo


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notes").mkdir()
    return tmp_path / "notes"


@pytest.fixture
def kb(tmp_path: Path, folder: Path) -> Iterator[KnowledgeBase]:
    settings = Settings(ocr=TINY, embedder=HashEmbedder())
    with KnowledgeBase.open(tmp_path / "kb.sqlite", settings, create=True) as kb:
        kb.add_collection(folder, mask="**/*.{md,pdf,png,jpg,heic}")
        yield kb


def _docid(kb: KnowledgeBase, name: str) -> object:
    return kb.why(f"notes/{name}").detail["docid"]


def test_a_scan_is_read_page_by_page_and_its_hits_name_the_page(
    kb: KnowledgeBase, folder: Path
) -> None:
    scan = pdf([page("The lease\nbegins in May."), lines("A typed page"), page("Heating costs")])
    (folder / "lease.pdf").write_bytes(scan)
    report = kb.index()
    assert report.warnings == (
        "notes/lease.pdf: 2 of 3 pages are pictures without a text layer (the first: page 1):"
        " 'qmd ocr' reads them.",
    )
    before = kb.status()
    assert (before.pictures, before.pictures_waiting) == (2, 2)
    ticks: list[Progress] = []
    assert kb.ocr(progress=ticks.append) == ocr.OcrReport(2, 0, 0, 0)
    assert [(each.stage, each.done, each.total) for each in ticks if each.stage == "ocr"] == [
        ("ocr", 0, 2),
        ("ocr", 1, 2),
        ("ocr", 2, 2),
    ]
    [hit] = kb.search("heating").hits
    assert (hit.anchor, hit.file) == ("page=3", "notes/lease.pdf")
    assert kb.get("lease.pdf#page=1").text == "The lease\nbegins in May.\n"
    assert kb.get("lease.pdf").text.index("typed") > kb.get("lease.pdf").text.index("May")
    assert kb.why("notes/lease.pdf").detail["warnings"] == []
    assert kb.status().pictures_waiting == 0
    assert (folder / "lease.pdf").read_bytes() == scan
    assert kb.index().unchanged == 1
    assert kb.ocr() == ocr.OcrReport(0, 0, 0, 0)


def test_words_are_marked_on_a_scan_that_was_read(kb: KnowledgeBase, folder: Path) -> None:
    scan = pdf([page("The lease\nbegins in May."), lines("A typed lease")])
    (folder / "lease.pdf").write_bytes(scan)
    kb.index()
    before = kb.pdf_page("notes/lease.pdf", 1, query="begins")
    assert before is not None and before.marks == ()
    kb.ocr()
    page_1 = kb.pdf_page("notes/lease.pdf", 1, query="begins")
    assert page_1 is not None
    [mark] = page_1.marks
    assert (mark.left, mark.top, mark.width, mark.height) == (72, 792 - 696, 36, 10)
    of_lines = kb.pdf_page("notes/lease.pdf", 1, lines=["No line", "begins in May."])
    assert of_lines is not None and [each.top for each in of_lines.marks] == [96]
    typed = kb.pdf_page("notes/lease.pdf", 2, query="lease")
    assert typed is not None and len(typed.marks) == 1


def test_the_text_of_a_photo_stands_below_its_metadata(kb: KnowledgeBase, folder: Path) -> None:
    (folder / "shot.png").write_bytes(photo("# Rebooting now\n發票 2025"))
    (folder / "blank.jpg").write_bytes(photo("", kind="JPEG"))
    kb.index()
    assert "The text in it was not read yet" in kb.why("notes/shot.png").reason
    assert kb.ocr() == ocr.OcrReport(1, 1, 0, 0)
    assert kb.get("shot.png").text == "# shot\n\n> \\# Rebooting now\n> 發票 2025\n"
    assert len(kb.search("發票").hits) == 1
    assert kb.get("blank.jpg").text == "# blank\n"
    kb.index(verify=True)
    assert kb.status().pictures_waiting == 0


def test_a_heic_photo_is_read_as_the_others(
    kb: KnowledgeBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image = Image.open(BytesIO(photo("Ticket 4711")))
    encoded = pillow_heif.from_pillow(image)
    encoded.save(folder / "shot.heic", quality=-1)
    data = (folder / "shot.heic").read_bytes()
    (folder / "cut.heic").write_bytes(data[:-40])
    kb.index()
    assert kb.ocr() == ocr.OcrReport(1, 0, 1, 0)
    assert kb.get("shot.heic").text == "# shot\n\n> Ticket 4711\n"
    assert "cannot be decoded" in str(kb.why("notes/cut.heic"))
    monkeypatch.setattr(pictures, "find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match="pillow-heif"):
        pictures.picture_of_photo("shot.heic", data, 1)


def test_a_photo_with_too_many_pixels_says_so() -> None:
    data = photo("", kind="PNG")
    header = data.index(b"IHDR") + 4
    large = data[:header] + (30_000).to_bytes(4, "big") * 2 + data[header + 8 :]
    checksum = zlib.crc32(large[header - 4 : header + 13]).to_bytes(4, "big")
    large = large[: header + 13] + checksum + large[header + 17 :]
    with pytest.raises(DamagedFileError, match=r"it has more than 120,000,000 pixels"):
        pictures.picture_of_photo("a.png", large, 1)


def test_what_was_read_is_not_read_again(kb: KnowledgeBase, folder: Path) -> None:
    scan = pdf([page("Heating costs"), page("More")])
    (folder / "a.pdf").write_bytes(scan)
    kb.index()
    kb.ocr()
    docid = _docid(kb, "a.pdf")
    (folder / "a.pdf").rename(folder / "b.pdf")
    assert kb.index().moved == 1
    (folder / "copy.pdf").write_bytes(scan)
    kb.index()
    assert kb.status().pictures_waiting == 0
    assert [_docid(kb, name) for name in ("b.pdf", "copy.pdf")] == [docid, docid]
    kb.index(verify=True)
    assert _docid(kb, "b.pdf") == docid
    (folder / "b.pdf").unlink()
    (folder / "copy.pdf").unlink()
    kb.index()
    assert kb.cleanup(dry_run=True).removed["texts of pictures that are gone"] == 2
    (folder / "again.pdf").write_bytes(scan)
    kb.index()
    assert _docid(kb, "again.pdf") == docid
    kb.cleanup()
    assert kb.ocr(force=True).read == 2


def test_copies_have_the_text_that_was_read_once(
    kb: KnowledgeBase, folder: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    kb.add_collection(other, mask="**/*.{pdf,png}")
    for place in (folder, other):
        (place / "shot.png").write_bytes(photo("Ticket 4711"))
        (place / "again.png").write_bytes(photo("Ticket 4711"))
        (place / "lease.pdf").write_bytes(pdf([page("Heating costs"), page("More")]))
    kb.index()
    assert kb.ocr() == ocr.OcrReport(3, 0, 0, 0)
    assert len(kb.search("4711").hits) == 4
    assert len(kb.search("heating").hits) == 2
    assert "not read yet" not in kb.why("other/again.png").reason
    assert kb.why("other/lease.pdf").detail["warnings"] == []


def test_a_page_that_cannot_be_read_costs_only_itself(
    kb: KnowledgeBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "_BUDGET", JobBudget(1.0, 2_000 * MB))
    pages = [page("hang"), page("fine"), page("fail")]
    (folder / "a.pdf").write_bytes(pdf(pages))
    (folder / "broken.png").write_bytes(photo("half")[:120])
    kb.index()
    assert kb.ocr() == ocr.OcrReport(1, 0, 3, 0)
    assert kb.get("a.pdf").text == "fine\n\n"
    assert (
        "Page 1 cannot be read: It took more than 1 s of CPU time." in kb.why("notes/a.pdf").reason
    )
    assert "Page 3 cannot be read: ValueError: cannot read this" in kb.why("notes/a.pdf").reason
    assert "cannot be decoded" in kb.why("notes/broken.png").reason
    status = kb.status()
    assert (status.pictures, status.pictures_waiting, status.pictures_failed) == (4, 0, 3)


def test_an_interruption_loses_one_page_and_others_go_on(
    kb: KnowledgeBase, folder: Path, tmp_path: Path
) -> None:
    (folder / "a.pdf").write_bytes(pdf([page("One"), page("Two"), page("Three")]))
    kb.index()

    def interrupt(tick: Progress) -> None:
        if tick.stage == "ocr" and tick.done == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kb.ocr(progress=interrupt)
    assert kb.status().pictures_waiting == 2
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(ocr=TINY)) as other:
        assert other.ocr() == ocr.OcrReport(2, 0, 0, 0)
    assert kb.get("a.pdf").text == "One\n\nTwo\n\nThree\n\n"


def test_a_file_that_has_changed_waits_for_the_index(kb: KnowledgeBase, folder: Path) -> None:
    (folder / "a.pdf").write_bytes(pdf([page("One")]))
    kb.index()
    (folder / "a.pdf").write_bytes(pdf([page("Another")]))
    assert kb.ocr() == ocr.OcrReport(0, 0, 0, 1)
    kb.index()
    assert kb.ocr() == ocr.OcrReport(1, 0, 0, 0)
    assert len(kb.search("another").hits) == 1


def test_what_is_missing_is_told_with_the_command(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.pdf").write_bytes(pdf([page("One")]))
    missing = TINY._replace(package="no_such_package")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(ocr=missing), create=True) as kb:
        kb.add_collection(folder, mask="**/*.pdf")
        assert kb.ocr().remaining == 0  # nothing waits, so nothing is missed
        kb.index()
        with pytest.raises(OcrUnavailableError, match="not installed") as caught:
            kb.ocr()
        assert "qmd-python[ocr]" in (caught.value.hint or "")
        assert "qmd-python[ocr]" in (kb.status().ocr_problem or "")
    with (
        KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(ocr="none")) as kb,
        pytest.raises(OcrUnavailableError, match="'none'"),
    ):
        kb.ocr()
    monkeypatch.setattr(ocr, "available_bytes", lambda: 500 * MB)
    with (
        KnowledgeBase.open(tmp_path / "kb.sqlite", Settings(ocr=TINY)) as kb,
        pytest.raises(OcrUnavailableError, match=r"0\.5 GB of memory are free"),
    ):
        kb.ocr()


def test_what_is_read_has_a_form_that_is_stored() -> None:
    text = PictureText((PictureLine("發票", 1.26, 2, 3, 4),), turn=90)
    assert json.loads(text.stored()) == {"turn": 90, "lines": [["發票", 1.3, 2, 3, 4]]}
    assert PictureText.load(text.stored()).lines[0].text == "發票"


def test_columns_of_a_picture_are_read_one_after_the_other() -> None:
    rows = [
        PictureLine(
            f"{side} {chr(97 + number)}", left, 700 - 14 * number, left + 200, 710 - 14 * number
        )
        for number in range(12)
        for side, left in (("left", 60), ("right", 320))
    ]
    data = pdf([page("x")])
    text = converter.convert("a.pdf", data, {1: PictureText(tuple(rows))}).markdown
    assert text.split() == [
        word for side in ("left", "right") for letter in "abcdefghijkl" for word in (side, letter)
    ]


def test_the_free_memory_is_that_of_the_container_too(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 8 kB\nMemAvailable:    4000 kB\n")
    assert available_bytes(tmp_path, tmp_path) == 4_096_000
    (tmp_path / "memory.max").write_text("3000000\n")
    (tmp_path / "memory.current").write_text("2000000\n")
    (tmp_path / "memory.stat").write_text("anon 5\ninactive_file 500000\n")
    assert available_bytes(tmp_path, tmp_path) == 1_500_000
    assert available_bytes(tmp_path / "none", tmp_path / "none") is None


def test_a_keeper_reads_in_the_background(kb: KnowledgeBase, folder: Path) -> None:
    kb.keep(embed=False)
    (folder / "a.pdf").write_bytes(pdf([page("Heating costs"), page("Rent")]))
    until(lambda: kb.search("heating").hits and kb.search("rent").hits, "nothing was read")
    until(lambda: kb.status().pictures_waiting == 0)


def test_a_keeper_tells_that_memory_is_short(
    kb: KnowledgeBase, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ocr, "available_bytes", lambda: 500 * MB)
    (folder / "a.pdf").write_bytes(pdf([page("Heating costs")]))
    kb.keep(embed=False)
    told = "The text in pictures is not read: 0.5 GB of memory are free, and OCR needs 1.8 GB."
    until(lambda: told in kb.freshness().notices, "nothing was told")
    assert told in (kb.status().ocr_problem or "")


@pytest.mark.parametrize("suffix", ["jpg", "png"])
def test_new_metadata_leave_what_was_read_from_a_photo(
    kb: KnowledgeBase, folder: Path, suffix: str
) -> None:
    kind = {"jpg": "JPEG", "png": "PNG"}[suffix]
    (folder / f"sign.{suffix}").write_bytes(photo("No swimming", kind=kind))
    (folder / f"other.{suffix}").write_bytes(photo("No swimming!", kind=kind))
    kb.index()
    assert kb.ocr().read == 2
    kb.change_photo(f"notes/sign.{suffix}", PhotoChange(tags=("beach",), description="A sign"))
    assert kb.status().pictures_waiting == 0
    [hit] = kb.search("tag:beach swimming").hits
    assert hit.file == f"notes/sign.{suffix}"


def test_photos_differ_by_any_part_of_their_image() -> None:
    noise = bytes(random.Random(1).randbytes(600 * 600))
    prints = set()
    for place in (None, 0, 150_000, 330_000, 359_999):
        pixels_of = bytearray(noise)
        if place is not None:
            pixels_of[place] ^= 255
        data = BytesIO()
        Image.frombytes("L", (600, 600), bytes(pixels_of)).save(data, "PNG", compress_level=0)
        prints.add(fingerprint(PhotoSource.of_bytes(data.getvalue())))
    assert len(prints) == 5  # a PNG ends with a checksum of all


def test_a_photo_is_read_as_the_camera_was_held_and_on_white() -> None:
    image = Image.new("RGBA", (40, 20), (0, 0, 0, 0))
    image.putpixel((0, 0), (255, 0, 0, 255))
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter to the right
    data = BytesIO()
    image.save(data, "PNG", exif=exif)
    rgb, per_point = pictures.picture_of_photo("a.png", data.getvalue(), 1)
    assert (rgb.shape, per_point) == ((40, 20, 3), 1.0)
    assert (tuple(rgb[0, 19]), tuple(rgb[39, 0])) == ((255, 0, 0), (255, 255, 255))
    large = BytesIO()
    Image.new("L", (6000, 3000)).save(large, "JPEG")
    assert pictures.picture_of_photo("a.jpg", large.getvalue(), 1).rgb.shape[1] <= 2400
    with pytest.raises(DamagedFileError, match="cannot be decoded"):
        pictures.picture_of_photo("a.jpg", b"no photo", 1)


@pytest.mark.skipif(find_spec("rapidocr") is None, reason="the extra 'ocr' is not installed")
def test_rapidocr_reads_a_tilted_page_on_its_side(tmp_path: Path, folder: Path) -> None:
    image = Image.new("RGB", (900, 300), "white")
    draw = ImageDraw.Draw(image)
    font = ImageFont.load_default(40)
    for number, line in enumerate(("Terms of the lease", "The rent is due in May", "Heating")):
        draw.text((40, 30 + 80 * number), line, "black", font)
    image.rotate(91, expand=True, fillcolor="white").save(folder / "side.png")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.add_collection(folder, mask="**/*.png")
        kb.index()
        assert kb.ocr() == ocr.OcrReport(1, 0, 0, 0)
        assert kb.get("side.png").text == (
            "# side\n\n> Terms of the lease\n> The rent is due in May\n> Heating\n"
        )
