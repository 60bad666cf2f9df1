"""Bytes become text, or a sentence that says why not."""

from __future__ import annotations

import codecs

import pytest

from qmd.errors import DecodeError, EditError
from qmd.files.edits.text_file import TextFile
from qmd.parse.decode import decode

SIMPLIFIED = (
    "# 数据库笔记\n\n今天我们学习如何使用索引来提高查询的速度。这是一个很重要的问题，"
    "因为没有索引的时候，每一次查询都要读完所有的数据。\n"
)
TRADITIONAL = (
    "# 資料庫筆記\n\n今天我們學習如何使用索引來提高查詢的速度。這是一個很重要的問題，"
    "因為沒有索引的時候，每一次查詢都要讀完所有的資料。\n"
)
JAPANESE = (
    "# データベースのメモ\n\n今日は索引の使い方を勉強しました。これはとても大切なことです。"
    "索引がないと、検索のたびにすべてのデータを読まなければなりません。\n"
)
KOREAN = (
    "# 데이터베이스\n\n오늘은 색인을 사용하는 방법을 배웠습니다. 이것은 매우 중요한 문제입니다.\n"
)
FRENCH = "# Été\n\nLe café était fermé, mais la fenêtre restait ouverte à côté de l'hôtel.\n"


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        (SIMPLIFIED, "gbk"),
        (SIMPLIFIED, "gb18030"),
        (TRADITIONAL, "big5"),
        (JAPANESE, "shift_jis"),
        (JAPANESE, "euc_jp"),
        (JAPANESE, "iso2022_jp"),
        (KOREAN, "euc_kr"),
        (FRENCH, "latin-1"),
        (FRENCH, "cp1252"),
    ],
)
def test_a_legacy_encoding_is_detected(text: str, encoding: str) -> None:
    decoded = decode(text.encode(encoding))
    assert decoded.text == text
    assert decoded.warnings == ()


def test_the_euro_sign_of_chinese_windows_is_read_and_written_as_its_byte() -> None:
    data = SIMPLIFIED.encode("gbk") + b"\x80 5, \x805\n\x80"
    file = TextFile.decoded("a.md", data)
    assert (file.text, file.encoding) == (f"{SIMPLIFIED}€ 5, €5\n€", "windows-936")
    assert file.encode(f"{file.text}数€") == data + "数".encode("gbk") + b"\x80"
    for lost in (b"\xff", "€".encode("gb18030")):  # what would not be written back
        with pytest.raises(EditError):
            TextFile.decoded("a.md", data + lost)
    assert decode(b"\x80 5 for a caf\xe9").text == "€ 5 for a café"


@pytest.mark.parametrize("word", ["数据库", "会议记录", "第一章", "你好，世界"])
def test_a_few_words_of_gbk_in_an_ascii_file_are_enough(word: str) -> None:
    text = "plain ascii line\n" * 200 + f"- {word}\n"
    assert decode(text.encode("gbk")).text == text


@pytest.mark.parametrize(
    ("bom", "codec"),
    [
        (codecs.BOM_UTF8, "utf-8"),
        (codecs.BOM_UTF16_LE, "utf-16-le"),
        (codecs.BOM_UTF16_BE, "utf-16-be"),
        (codecs.BOM_UTF32_LE, "utf-32-le"),
        (codecs.BOM_UTF32_BE, "utf-32-be"),
    ],
)
def test_a_byte_order_mark_names_the_encoding_and_is_not_text(bom: bytes, codec: str) -> None:
    decoded = decode(bom + "# 标题 😀\r\n".encode(codec))
    assert decoded.text == "# 标题 😀\r\n"
    assert decoded.encoding == codec


def test_utf8_with_a_broken_byte_stays_utf8_and_warns() -> None:
    data = SIMPLIFIED.encode() + b"\xff\n"
    decoded = decode(data)
    assert decoded.text == SIMPLIFIED + "\ufffd\n"
    assert decoded.encoding == "utf-8"
    assert decoded.warnings == ("1 place is not valid UTF-8 and read as U+FFFD.",)


def test_line_ends_are_kept() -> None:
    assert decode(b"a\r\nb\rc\nd").text == "a\r\nb\rc\nd"


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "The file is a PNG image, not text."),
        (b"PK\x03\x04\x14\0\0\0", "The file is a ZIP archive or an Office file, not text."),
        (b"SQLite format 3\0", "The file is a SQLite database, not text."),
        (b"%PDF-1.7\n1 0 obj", "The file is a PDF file, not text."),
    ],
)
def test_a_binary_file_is_refused_by_name(data: bytes, sentence: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(data)
    assert str(caught.value) == sentence
    assert caught.value.hint


@pytest.mark.parametrize(
    "data",
    [b"a\0b", "text".encode("utf-16-le"), codecs.BOM_UTF16_LE + b"a\0\0\0", bytes(range(1, 256))],
)
def test_nul_and_control_bytes_are_no_text(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(data)


def test_a_lone_surrogate_in_utf16_becomes_a_replacement_with_a_warning() -> None:
    decoded = decode(codecs.BOM_UTF16_LE + b"a\0\x00\xd8b\0")
    assert decoded.text == "a\ufffdb"
    assert len(decoded.warnings) == 1


def test_a_legacy_file_with_a_broken_byte_keeps_its_encoding_and_warns() -> None:
    text = "数据库的使用方法：先备份，再迁移，最后检查。"
    decoded = decode(text.encode("gb18030") + b"\xff\n")
    assert (decoded.text, decoded.encoding) == (text + "\ufffd\n", "gb18030")
    assert decoded.warnings == ("1 place is not valid gb18030 and read as U+FFFD.",)
