"""Pages of PDFs as pictures, and where words stand on them."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from support.pdf import PICTURE, Placed, lines, pdf

from qmd.files import pictures
from qmd.values.pictures import PictureLine, PictureText

PAGES = [
    lines("The first page of three.", "It names no animal."),
    lines("A quagga grazes.", "Two quaggas rest, a zebra runs and the ze\ufffe", "bra sleeps."),
    [Placed(72, 700, "数据"), Placed(72, 680, "库迁移")],
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "a.pdf").write_bytes(pdf(PAGES))
    return tmp_path


def look(folder: Path, number: int, query: str = "", wanted: tuple[str, ...] = ()) -> dict:
    return pictures.work_on_page((str(folder), "a.pdf", number, 0, query, list(wanted)))


def test_the_words_of_a_query_are_found_where_they_stand(folder: Path) -> None:
    page = look(folder, 2, "quagga")
    assert (page["number"], page["pages"], page["width"], page["height"]) == (2, 3, 612, 792)
    (left, top, width, height), second = page["marks"]
    # "A " and "Two " stand before them, each character half as wide as the font is high.
    assert left == pytest.approx(72 + 2 * 5, abs=1) and width == pytest.approx(6 * 5, abs=1)
    assert top + height == pytest.approx(792 - 740, abs=4)
    assert second[0] == pytest.approx(72 + 4 * 5, abs=1) and second[1] > top + height


def test_a_page_behind_the_last_is_the_last(folder: Path) -> None:
    assert look(folder, 99)["number"] == 3


def test_words_of_chinese_are_found_across_lines(folder: Path) -> None:
    assert len(look(folder, 3, "数据库")["marks"]) == 2  # a rectangle in each line
    assert not look(folder, 3, "西瓜")["marks"]


def test_lines_are_marked_where_no_word_of_the_query_stands(folder: Path) -> None:
    page = look(folder, 2, "elephant", ("Two quaggas rest, a zebra runs and the zebra sleeps.",))
    assert len(page["marks"]) == 2
    assert page["marks"][0][0] == pytest.approx(72, abs=1)
    assert look(folder, 2, "", ("Nothing of this stands there.", "?"))["marks"] == []


def test_the_first_mark_is_that_of_the_line(folder: Path) -> None:
    top = look(folder, 2, "quagga")["marks"][0]
    assert look(folder, 2, "quagga", ("Two quaggas rest",))["marks"][1] == top


def test_a_turned_page_is_marked_as_it_is_shown(tmp_path: Path) -> None:
    data = pdf([lines("turned")]).replace(b"[0 0 612 792]", b"[0 0 612 792] /Rotate 90")
    (tmp_path / "a.pdf").write_bytes(data)
    page = look(tmp_path, 1, "turned")
    assert (page["width"], page["height"]) == (792, 612)
    ((left, top, width, height),) = page["marks"]
    assert left == pytest.approx(740, abs=4) and top == pytest.approx(72, abs=1)
    assert width < height


@pytest.mark.parametrize(
    ("turn", "place"),
    [
        (0, (80, 792 - 22, 20, 10)),
        (90, (612 - 22, 792 - 100, 10, 20)),
        (180, (612 - 100, 12, 20, 10)),
        (270, (12, 80, 10, 20)),
    ],
)
def test_words_of_a_scan_are_marked_where_they_are_shown(
    tmp_path: Path, turn: int, place: tuple[float, ...]
) -> None:
    (tmp_path / "a.pdf").write_bytes(pdf([PICTURE]))
    # Signs of Chinese are twice as wide: "ab" begins behind five of seven cells.
    lines_read = (PictureLine("No animal", 30, 40, 90, 50), PictureLine("数据 ab", 30, 12, 100, 22))
    page = pictures.look_at(
        str(tmp_path), "a.pdf", 1, query="ab", read=PictureText(lines_read, turn)
    )
    assert page is not None
    [mark] = page.marks
    assert (mark.left, mark.top, mark.width, mark.height) == place


def test_a_picture_is_as_wide_as_asked_for(folder: Path) -> None:
    (folder / "b.pdf").write_bytes(pdf([PICTURE]))
    for name in ("a.pdf", "b.pdf"):
        drawn = pictures.draw_page(str(folder), name, 1, width=800)
        assert drawn is not None
        with Image.open(BytesIO(drawn[0])) as image:
            assert image.width == 800
            assert drawn[1] == f"image/{(image.format or '').lower()}"


def test_a_picture_has_a_limit_of_pixels(tmp_path: Path) -> None:
    data = pdf([lines("high")]).replace(b"[0 0 612 792]", b"[0 0 20 14400]")
    (tmp_path / "a.pdf").write_bytes(data)
    drawn = pictures.work_on_page((str(tmp_path), "a.pdf", 1, 1600, "", []))
    with Image.open(BytesIO(drawn["picture"])) as image:
        assert image.width * image.height <= 6_100_000


@pytest.mark.parametrize("data", [b"no PDF", pdf([lines("x")], encrypted=True), pdf([])])
def test_what_cannot_be_read_is_none(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.pdf").write_bytes(data)
    assert pictures.look_at(str(tmp_path), "a.pdf", 1) is None
    assert pictures.draw_page(str(tmp_path), "a.pdf", 1, width=800) is None


def test_no_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "link.pdf").symlink_to(folder / "a.pdf")
    assert pictures.look_at(str(tmp_path), "link.pdf", 1) is None
