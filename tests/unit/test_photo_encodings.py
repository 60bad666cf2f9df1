"""IPTC in an encoding of before: every reader of ours reads it alike, and writing keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from qmd import KnowledgeBase
from qmd.parse.photo.standards import Guesser, iptc_in_utf8, read_iptc
from qmd.values import PhotoChange
from tests.support.photos import listed, make, pixels, tags

KEYWORDS, BY_LINE, CITY, CAPTION = 25, 80, 90, 120
TEXTS = {
    "gb18030": ("家庭", "海滩度假", "张三李四", "北京", "去年夏天全家在海边度假的照片"),
    "big5": ("家庭", "海灘度假", "張三李四", "臺北", "去年夏天全家在海邊度假的照片"),
    "shift_jis": ("家族", "ひまわり", "山田太郎", "東京", "去年の夏、みんなで海に行った写真です"),
    "cp1251": ("семья", "отпуск", "Иван", "Москва", "Прошлым летом семья отдыхала на море"),
    "cp1252": ("café", "été", "José", "Zürich", "Une très belle photo prise à la plage"),
    "utf-8": ("家庭", "海滩度假", "张三李四", "北京", "去年夏天全家在海边度假的照片"),
}


def records(*fields: tuple[int, bytes]) -> bytes:
    return b"".join(
        bytes((0x1C, 2, number)) + len(value).to_bytes(2, "big") + value for number, value in fields
    )


def old_photo(path: Path, encoding: str) -> Path:
    """A photo with nothing but IPTC that does not say its encoding."""
    names = (KEYWORDS, KEYWORDS, BY_LINE, CITY, CAPTION)
    values = (text.encode(encoding) for text in TEXTS[encoding])
    iptc = records(*zip(names, values, strict=True))
    block = b"8BIM\x04\x04\0\0" + len(iptc).to_bytes(4, "big") + iptc + b"\0" * (len(iptc) % 2)
    segment = b"Photoshop 3.0\0" + block
    data = make(path, exif=None).read_bytes()
    marker = b"\xff\xed" + (len(segment) + 2).to_bytes(2, "big")
    path.write_bytes(data[:2] + marker + segment + data[2:])
    return path


@pytest.fixture(scope="module")
def kb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeBase]:
    """One for all tests: starting its exiftool takes longer than most of them."""
    database = tmp_path_factory.mktemp("kb") / "kb.sqlite"
    with KnowledgeBase.open(database, create=True) as opened:
        yield opened


@pytest.mark.parametrize("encoding", TEXTS)
def test_iptc_of_any_encoding_reads_after_writing_as_before(
    kb: KnowledgeBase, tmp_path: Path, encoding: str
) -> None:
    first, second, author, city, caption = TEXTS[encoding]
    photo = old_photo(tmp_path / "old.jpg", encoding)
    shown, image = kb.images.show(photo), pixels(photo)
    assert (shown.tags, shown.place, shown.description) == ((first, second), (city,), caption)
    kb.images.write(photo, PhotoChange(tags=("新",), location="上海"), overwrite=False)
    found = tags(photo)
    assert (
        listed(found["IPTC:Keywords"]) == listed(found["XMP-dc:Subject"]) == [first, second, "新"]
    )
    assert (found["IPTC:By-line"], found["IPTC:City"]) == (author, city)
    assert (found["IPTC:Caption-Abstract"], found["IPTC:Sub-location"]) == (caption, "上海")
    assert pixels(photo) == image


@pytest.mark.parametrize("encoding", TEXTS)
def test_iptc_that_holds_the_new_tags_already_is_no_obstacle(
    kb: KnowledgeBase, tmp_path: Path, encoding: str
) -> None:
    first, second, author, _, _ = TEXTS[encoding]
    photo = old_photo(tmp_path / "old.jpg", encoding)
    kb.images.write(photo, PhotoChange(tags=(first, second)))
    assert listed(tags(photo)["XMP-dc:Subject"]) == [first, second]
    assert kb.images.show(photo).tags == (first, second)
    kb.images.write(photo, PhotoChange(description="新"))
    assert tags(photo)["IPTC:By-line"] == author


def test_what_was_there_is_kept_as_it_read(kb: KnowledgeBase, tmp_path: Path) -> None:
    photo = old_photo(tmp_path / "old.jpg", "gb18030")
    kb.images.write(photo, PhotoChange(tags=("新",), description="新的"))
    (revision,) = kb.revisions.history(photo)
    kept = kb.revisions.content(photo, revision.number).decode()
    assert "海滩度假" in kept
    assert "去年夏天" in kept


def test_texts_of_two_programs_are_each_read_in_their_encoding() -> None:
    iptc = read_iptc(records((CITY, "Zürich".encode("cp1252")), (KEYWORDS, "海滩".encode())))
    assert iptc.texts["city"] == "Zürich"
    assert iptc.keywords == ("海滩",)


def test_pictures_in_iptc_are_no_texts_and_stay_as_they_are() -> None:
    picture = bytes(range(256)) * 100
    before = records((202, picture), (KEYWORDS, "海滩".encode("gb18030")), (0, b"\0\4"))
    after = iptc_in_utf8(before)
    assert picture in after
    assert b"\x1c\x02\x00\x00\x02\0\4" in after
    assert "海滩".encode() in after
    assert (read_iptc(after).marked, read_iptc(after).keywords) == (True, ("海滩",))
    assert iptc_in_utf8(after) == after


def test_a_temporary_directory_may_be_called_anything(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    odd = tmp_path / "100%d %f ü'"
    odd.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(odd))
    photo = old_photo(odd / "old.jpg", "gb18030")
    with KnowledgeBase.open(tmp_path / "kb.sqlite", create=True) as kb:
        kb.images.write(photo, PhotoChange(tags=("新",)))
    found = tags(photo)
    assert (listed(found["XMP-dc:Subject"]), found["IPTC:City"]) == (["新"], "北京")


def test_after_some_guesses_the_last_encoding_holds() -> None:
    guesser = Guesser()
    text = "数据库的使用方法：先备份，再迁移，最后检查。"
    raw = text.encode("gb18030")
    assert {guesser.decoded(raw) for _ in range(1000)} == {text}
    assert guesser.decoded(text.encode()) == text  # what is UTF-8 needs no guess
    assert guesser.decoded("一张\0照片，说明".encode("gb18030")) == "一张照片，说明"
